"""Mutants of `bench.python_mutations` that change no behavior, each with the reason."""

from __future__ import annotations

EQUIVALENT: dict[str, dict[str, str]] = {}
