"""Numbers and lists as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.report.figure import Values

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def count(number: int, what: str) -> str:
    """A number of things.

    >>> count(1, "port"), count(2367, "port"), count(2, "leaf")
    ('1 port', '2,367 ports', '2 leaves')
    """
    if number != 1:
        what = "leaves" if what == "leaf" else f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what}"


def size(number: float) -> str:
    """Bytes in the unit that fits.

    >>> size(313335706)
    '313 MB'
    """
    at = 0
    while number >= 1000 and at < len(_UNITS) - 1:
        number, at = number / 1000, at + 1
    return f"{number:,.3g} {_UNITS[at]}"


def number(value: float | None) -> str:
    """A number as it is, with commas; `not known` where there is none.

    >>> number(91584.0), number(0.25), number(None)
    ('91,584', '0.25', 'not known')
    """
    if value is None:
        return "not known"
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def most(rows: Iterable[Values], column: str) -> Values:
    """The row with the highest value; the first of them, and any where none has a value."""
    return max(rows, key=lambda row: float("-inf") if row[column] is None else row[column])


def foremost(rows: Iterable[Values]) -> Values:
    """The row with the first `place`: queries rank by what they have not rounded."""
    return min(rows, key=lambda row: int(row["place"]))


def total(rows: Iterable[Values], column: str) -> Any:
    """The sum of a column."""
    return sum(row[column] or 0 for row in rows)


def distinct(rows: Iterable[Values], column: str) -> list[str]:
    """The values of a column, each once, in the order in which they come."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row[column] is not None))


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1] if names else "") if part)
