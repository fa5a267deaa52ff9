"""Paths as DuckDB's globs: what stands in a view, and what a reader may open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def patterns(paths: Sequence[Path]) -> list[str]:
    """The paths as few globs: one a folder and suffix where it names exactly these files, else the paths.

    DuckDB takes a backslash in a glob for a slash: below such a folder, too, it is the paths.
    """
    wanted: dict[tuple[Path, str], set[str]] = {}
    for path in paths:
        suffix = path.name[path.name.index(".") :] if "." in path.name else ""
        wanted.setdefault((path.parent, suffix), set()).add(path.name)
    found = []
    for (folder, suffix), names in wanted.items():
        there = {path.name for path in folder.iterdir() if path.name.endswith(suffix)} if suffix else set()
        if there == names and "\\" not in str(folder):
            found.append(f"{escape_glob(str(folder))}/*{suffix}")
        else:
            found += [escape_glob(str(folder / name)) for name in sorted(names)]
    return found


def escape_glob(path: str) -> str:
    """A path in which DuckDB's glob reads every character as itself.

    >>> escape_glob("/a [1]/*.csv")
    '/a [[]1]/[*].csv'
    """
    return "".join(f"[{char}]" if char in "[*?" else char for char in path)
