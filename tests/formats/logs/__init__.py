"""Tests of the families of log lines."""
