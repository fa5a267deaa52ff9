"""Outputs for other tools: files, PostgreSQL."""
