"""Comparing builds and exports: sides to compare, what of them can differ, their rows, where a change came from."""
