"""Mutants of `bench.python_mutations` that change no behavior, each with the reason."""

from __future__ import annotations

_FALSY = "callers test only whether the set is empty"
EQUIVALENT: dict[str, dict[str, str]] = {
    "warehouse/graph/fingerprints.py": {
        "RECIPE = 4  →  4: one more": "each number is a valid version; another one rebuilds every part",
        "return frozenset()  →  return frozenset(): None": _FALSY,
    },
    "warehouse/store/atomic.py": {
        "return path.lstat().st_mtime < _start_time(process) - _CLOCK_SECONDS  →  "
        "path.lstat().st_mtime < _start_time(process) - _CLOCK_SECONDS: the comparison": (
            "differs only for a file as old as the limit to the last bit"
        ),
        "temporary.unlink(missing_ok=True)  →  True: the other": (
            "if the temporary file cannot be opened, another error of the same type names the same file"
        ),
    },
    "warehouse/store/parts.py": {
        'write_text(part.path.with_suffix(".json"), json.dumps(content, sort_keys=True, ensure_ascii=False))  →  '
        f"{value}: the other": "the same JSON, written in another way"
        for value in (True, False)
    },
}
"""Module → mutant (changed line and change) → reason."""
