"""Numbers and lists as readable text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.report.figure import Values

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def count(number: int, what: str) -> str:
    """Return a number with its noun, singular or plural.

    >>> count(1, "port"), count(2367, "port"), count(2, "leaf")
    ('1 port', '2,367 ports', '2 leaves')
    """
    if number != 1:
        what = "leaves" if what == "leaf" else f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {what}"


def size(number: float) -> str:
    """Return bytes in a readable unit.

    >>> size(313335706)
    '313 MB'
    """
    at = 0
    while number >= 1000 and at < len(_UNITS) - 1:
        number, at = number / 1000, at + 1
    return f"{number:,.3g} {_UNITS[at]}"


def number(value: float | None) -> str:
    """Return a number with commas, or `not known`.

    >>> number(91584.0), number(0.25), number(None)
    ('91,584', '0.25', 'not known')
    """
    if value is None:
        return "not known"
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def percent(value: float | None) -> str:
    """Return a percentage with its sign.

    >>> percent(18.6), percent(-2.0), percent(None)
    ('18.6 %', '-2 %', 'not known')
    """
    return number(value) + ("" if value is None else " %")


def rate(gbps: float) -> str:
    """Return a rate in Gb/s, from 1,000 on in Tb/s.

    >>> rate(69.0), rate(2345.6)
    ('69 Gb/s', '2.35 Tb/s')
    """
    return f"{gbps / 1000:.3g} Tb/s" if gbps >= 1000 else f"{gbps:.3g} Gb/s"


def span(seconds: float) -> str:
    """Return a duration in a readable unit.

    >>> span(0.4), span(45), span(600), span(7200), span(259200)
    ('0.4 s', '45 s', '10 min', '2 h', '3 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= (2 if unit == "d" else 1) * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def by_number(name: str) -> tuple[str, int, str]:
    """Return a sort key that orders names by their number: Leaf-2, Leaf-10, ST-leaf-1."""
    return name.rstrip("0123456789"), len(name), name


def short_name(switch: str) -> str:
    """Return a short name of a spine or leaf.

    >>> short_name("spine-10"), short_name("ST-leaf-1")
    ('10', 'ST-leaf-1')
    """
    return switch.removeprefix("spine-")


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are.

    >>> first_names(["a", "b"]), first_names(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def foremost(rows: Iterable[Values]) -> Values:
    """Return the row with `place` 1; queries rank by unrounded values."""
    return min(rows, key=lambda row: int(row["place"]))


def total(rows: Iterable[Values], column: str) -> Any:
    """Return the sum of a column."""
    return sum(row[column] or 0 for row in rows)


def distinct(rows: Iterable[Values], column: str) -> list[str]:
    """Return the distinct values of a column in order of first appearance."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row[column] is not None))


def listed(names: Sequence[str]) -> str:
    """Return names joined with commas and `and`.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1] if names else "") if part)
