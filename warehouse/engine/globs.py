"""Paths as DuckDB's globs: what stands in a view, and what a reader may open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def patterns(paths: Sequence[Path]) -> list[str]:
    """The paths as few globs: one a folder and suffix where it names exactly these files, else the paths.

    DuckDB takes a backslash in a glob for a slash: below such a folder, too, it is the paths.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)  # of many paths: `path.parent` is dear
        suffix = name[name.index(".") :] if "." in name else ""
        wanted.setdefault((folder, suffix), set()).add(name)
    found = []
    for (folder, suffix), names in wanted.items():
        there = {name for name in os.listdir(folder) if name.endswith(suffix)} if suffix else set()
        if there == names and "\\" not in folder:
            found.append(f"{escape_glob(folder)}/*{suffix}")
        else:
            found += [escape_glob(f"{folder.removesuffix('/')}/{name}") for name in sorted(names)]
    return found


def escape_glob(path: str) -> str:
    """A path in which DuckDB's glob reads every character as itself.

    >>> escape_glob("/a [1]/*.csv")
    '/a [[]1]/[*].csv'
    """
    return "".join(f"[{char}]" if char in "[*?" else char for char in path)
