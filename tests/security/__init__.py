"""Guarantees of SECURITY.md: no input writes, reads outside, runs code, or damages the last good warehouse."""
