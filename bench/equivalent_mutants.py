"""Mutants of `bench.python_mutations` that change no behavior, each with the reason."""

from __future__ import annotations

_EQUAL_LENGTHS = "both sequences have one length by construction"
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
    "warehouse/kernels/port_seconds.py": {
        "if TYPE_CHECKING:  →  if TYPE_CHECKING: negated": "the names are for annotations alone",
        "FULL_SECONDS = 3601  →  3601: one more": "one more boundary after the hour, which no window reaches",
        "strict=True,  →  True: the other": _EQUAL_LENGTHS,
        "if np.all((file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (times[1:] > times[:-1]))):  →  "
        "times[1:] > times[:-1]: the comparison": "rows of equal time keep their order in the sort",
        "if raw.min(initial=0) >= 0:  →  0: one more": "the start value decides only for no rows",
        "if int(moved.max(initial=0)) * int(part.max(initial=0)) < 2**63:  →  0: one more": (
            "the start value decides only for no rows or zeros"
        ),
        "opens = np.append(first_edge * 1000 + start, edges * 1000)  →  1000: one more": (
            "the last element is any time after all windows"
        ),
    },
    "warehouse/project/check_language.py": {
        'same = " AND ".join(f"a.{name} = b.{there}" for name, there in zip(columns, others, strict=True))  →  '
        "True: the other": "`_pairs` compares the lengths before",
    },
    "warehouse/store/parts.py": {
        'write_text(part.path.with_suffix(".json"), json.dumps(content, sort_keys=True, ensure_ascii=False))  →  '
        f"{value}: the other": "the same JSON, written in another way"
        for value in (True, False)
    },
}
"""Module → mutant (changed line and change) → reason."""
