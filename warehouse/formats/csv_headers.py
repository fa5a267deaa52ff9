"""Headers of CSV files that a person saved again: other separators, columns without a name, columns of their own."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from warehouse.base.startup import regex

COLUMNS_IGNORED = "columns ignored: "
NOT_THAT = "the header is not that of "
HEAD_BYTES = 256 * 1024
"""Bytes of a file that hold its header and first rows."""
_UNNAMED = regex(r"\s*|Unnamed: \d+")
"""Name of a column without one; pandas writes it as `Unnamed: 0`."""
_STATED = regex(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""Line above the header by which spreadsheets state the separator."""
_SHOWN = 60


def is_unnamed(name: str) -> bool:
    """Return True if a column has no name: an index that pandas wrote, or a comma at the end of the header."""
    return _UNNAMED.fullmatch(name) is not None


def ignored(names: Sequence[str], known: Collection[str]) -> str | None:
    """Return a clause that names the columns of a header that are not read, or None."""
    shown = [shown_name(at, name) for at, name in enumerate(names, 1) if name not in known]
    return f"{COLUMNS_IGNORED}{', '.join(shown)[:200]}" if shown else None


def shown_name(at: int, name: str) -> str:
    """Return the name of a column for a reason, or its place if it has none."""
    if not name.strip():
        return f"column {at} without a name"
    return name[:_SHOWN] if name.isprintable() else repr(name[:_SHOWN])


def listed(names: Sequence[str], longest: int = 100) -> str:
    """Return the names of a header for a reason, shortened."""
    return ",".join(name if name.isprintable() else repr(name) for name in names)[:longest]


def foreign_header(line: bytes, known: Collection[str]) -> str | None:
    """Return why a first line has no known column: it is blank, or not separated by commas. None for other reasons."""
    written = line.decode("utf-8", "replace").strip("\ufeff\r\n")
    if not written.strip(" ,"):
        return "the first line is blank, not the header"
    stated = _STATED.fullmatch(written)
    if stated and stated[1] == ",":
        return (
            f"the first line is `{written.strip()}`, not the header: delete this line, the separator is a comma anyway"
        )
    for mark in (stated[1],) if stated else ";\t|":
        names = {name.strip(' "') for name in written.split(mark)}
        if stated or (len(names) > 1 and not names.isdisjoint(known)):
            shown = "a tab" if mark == "\t" else f"`{mark}`"
            return f"the separator is {shown}, not a comma: save the file with commas"
    return None


def fitted(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the names of the fields of the first rows: names that are blank at the end may have no field.

    Raises
    ------
    ValueError
        If no row has a field for each name.
    """
    found = list(names)
    width = max(map(len, rows), default=len(found))
    while len(found) > width and not found[-1].strip():
        found.pop()
    refuse_other_width(found, [row[: len(found)] if is_longer(row, len(found)) else row for row in rows])
    return found


def refuse_other_width(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Raise ValueError if none of the first rows has a field for each name of the header."""
    if rows and all(len(row) != len(names) for row in rows):
        raise ValueError(f"the header has {len(names):,} columns, the row below it {len(rows[0]):,}")


def is_longer(row: Sequence[object], width: int) -> bool:
    """Return True if a row has more fields, all blank: commas at the end of a line, which the engine skips."""
    return len(row) > width and not any(row[width:])
