"""Tables read by the names in their header, in whatever order and spelling the columns come.

The release's document and its files disagree about names (`NIC name1`, `NIC name 2`, `server IP`), so names
are compared without case, blanks and underscores. What is missing or stands twice is a problem, not a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

Columns = Mapping[str, Sequence[str]]
"""Column of a relation -> the headers that stand for it."""


class Row(NamedTuple):
    """A row below the header, whether of a sheet or of a CSV."""

    number: int
    """The sheet's row, or the line of the file; the header's is usually 1."""
    values: Mapping[str, str | None]
    """Column -> text; None where nothing is written."""
    problem: str | None
    """Why it cannot be used."""
    text: str
    """The row as it stands, for those who look into it."""


@dataclass(frozen=True)
class Header:
    """Which of a header's names stands for which column."""

    positions: Mapping[str, int]
    problem: str | None
    """What is missing or stands twice."""
    ignored: tuple[str, ...]
    """Names that no column answers to."""

    def pick(self, cells: Sequence[str | None]) -> dict[str, str | None]:
        """Take the columns' values; what is blank, or lies beyond a short row, is None."""
        values = {name: cells[at] if at < len(cells) else None for name, at in self.positions.items()}
        return {name: value if value and not value.isspace() else None for name, value in values.items()}


NO_HEADER = Header({}, None, ())


def fold(name: str) -> str:
    """Strip a name of what is not compared: case, blanks and underscores.

    >>> fold("NIC name 2") == fold("nic_name2")
    True
    """
    return "".join(name.split()).replace("_", "").casefold()


def match_header(names: Sequence[str | None], columns: Columns, optional: Collection[str] = ()) -> Header:
    """Find each column's place in a header, in whatever order it stands.

    The second of two equal names counts as that name with a 2 behind it, so that a table which repeats a
    name on purpose can be described; any other name that stands twice is a problem, never a choice.
    """
    column_of = {fold(spelling): column for column, known in columns.items() for spelling in known}
    positions: dict[str, int] = {}
    repeated: list[str] = []
    ignored: list[str] = []
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        folded = fold(name or "")
        seen[folded] = seen.get(folded, 0) + 1
        key = folded if seen[folded] == 1 else f"{folded}{seen[folded]}"
        column = column_of.get(key)
        if column is not None and column not in positions:
            positions[column] = at
        elif column is not None or folded in column_of:
            repeated.append((name or "").strip())
        elif folded:
            ignored.append((name or "").strip())
    missing = [column for column in columns if column not in positions and column not in optional]
    problems = [f"no column {', '.join(missing)}"] if missing else []
    problems += [f"column {', '.join(repeated)} stands twice"] if repeated else []
    return Header(positions, " and ".join(problems) or None, tuple(ignored))


def ignored_columns(names: Sequence[str]) -> list[str]:
    """Say which columns nobody asked for, if any, as a clause of a reason."""
    return [f"columns ignored: {', '.join(names)[:200]}"] if names else []
