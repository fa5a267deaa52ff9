"""Kept builds of a target: list, compare, verify, roll back, relocate, clean, diagnose."""
