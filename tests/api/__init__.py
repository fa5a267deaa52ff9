"""Tests of `warehouse.api`."""
