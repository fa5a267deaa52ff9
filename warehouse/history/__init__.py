"""Builds over time: list, compare, verify, go back, move, clean, and look at the state of a target."""
