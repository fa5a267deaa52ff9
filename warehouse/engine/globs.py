"""Paths as glob patterns of DuckDB, for views and for the list of allowed files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_ESCAPED = str.maketrans({char: f"[{char}]" for char in "[*?"})


def patterns(paths: Sequence[Path]) -> list[str]:
    """Return globs that match exactly these files: one per folder and suffix if possible, else the escaped paths.

    Paths with a backslash are never shortened: DuckDB treats it as a slash in a glob.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)  # faster than `path.parent` for thousands of paths
        suffix = name[name.index(".") :] if "." in name else ""
        wanted.setdefault((folder, suffix), set()).add(name)
    found = []
    for (folder, suffix), names in wanted.items():
        existing = {name for name in os.listdir(folder) if name.endswith(suffix)} if suffix else set()
        if existing == names and "\\" not in folder:
            found.append(f"{escape_glob(folder)}/*{suffix}")
        else:
            found += [escape_glob(f"{folder.removesuffix('/')}/{name}") for name in sorted(names)]
    return found


def escape_glob(path: str) -> str:
    """Return a glob that matches only this path.

    >>> escape_glob("/a [1]/*.csv")
    '/a [[]1]/[*].csv'
    """
    return path.translate(_ESCAPED)
