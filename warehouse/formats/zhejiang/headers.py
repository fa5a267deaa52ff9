"""Tables whose columns are found by the names in their header, in any order and spelling.

The release's document and its files disagree about names (`NIC name1`, `NIC name 2`, `server IP`). So names are
compared without case, blanks and underscores. A missing or repeated column is a problem; the reader never guesses.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Columns = Mapping[str, Sequence[str]]
"""Column of a relation -> its spellings in headers."""


class Row(NamedTuple):
    """Row below the header."""

    number: int
    """Row of the sheet; the header is usually 1."""
    values: Mapping[str, str | None]
    """Column -> text; None for a blank cell."""
    problem: str | None
    """Why the row is unusable, or None."""
    text: str
    """Text of the row, unchanged, for the report of a rejected row."""


@dataclass(frozen=True)
class Header:
    """Positions of the columns in a header."""

    positions: Mapping[str, int]
    problem: str | None
    """Missing or repeated columns, or None."""
    ignored: tuple[str, ...]
    """Names in the header that match no column."""

    def pick(self, cells: Sequence[str | None]) -> dict[str, str | None]:
        """Return the value of each column; None if it is blank or missing from a short row."""
        values = {name: cells[at] if at < len(cells) else None for name, at in self.positions.items()}
        return {name: value if value and not value.isspace() else None for name, value in values.items()}


def fold(name: str) -> str:
    """Return a name without case, blanks, hyphens and underscores, for comparison.

    >>> fold("NIC name 2") == fold("nic_name2")
    True
    """
    written = unicodedata.normalize("NFKC", name)
    return "".join(written.split()).replace("_", "").replace("-", "").casefold()


def match_header(names: Sequence[str | None], columns: Columns) -> Header:
    """Return the positions of the columns in a header. A missing or repeated column is a problem."""
    column_of = {fold(spelling): column for column, known in columns.items() for spelling in known}
    positions: dict[str, int] = {}
    repeated: list[str] = []
    ignored: list[str] = []
    for at, name in enumerate(names):
        folded = fold(name or "")
        column = column_of.get(folded)
        if column is not None and column not in positions:
            positions[column] = at
        elif column is not None:
            repeated.append((name or "").strip())
        elif folded:
            ignored.append((name or "").strip())
    missing = [column for column in columns if column not in positions]
    problems = [f"no column {', '.join(missing)}"] if missing else []
    problems += [f"column {', '.join(repeated)} stands twice"] if repeated else []
    return Header(positions, " and ".join(problems) or None, tuple(ignored))
