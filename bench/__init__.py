"""Benches: what things cost, measured against a named peer in the same run."""
