"""Benchmarks: costs measured against a named peer in the same run."""
