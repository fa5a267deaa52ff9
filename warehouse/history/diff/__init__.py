"""Comparison of two builds or exports: sides, tables that can differ, rows, origins of changes."""
