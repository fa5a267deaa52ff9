"""Semantics of a table's columns: measures with their aggregation and display unit, dimensions, column of time.

    time: hour_utc                                  the column of time, if any
    dimensions: [cluster, switch]                   what to group by; default: the grain
    measures:
      in_bytes, out_bytes: sum, shown in GB         add up over any rows
      nics: sum except over hour_utc                adds up over all but these dimensions
      in_max_bps: max, shown in Gbit/s              the largest of several rows; also `min`
      in_p50_bps: none                              cannot be aggregated
      in_utilization: mean, shown in %              the unweighted mean of several rows
      leaving_share: uplink_out_bytes / access_in_bytes, shown in %    a ratio of sums, not a mean of ratios

      others: none                                  all other numeric columns

If a table has any of these keys, every numeric column must be a measure, a dimension or part of the grain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.startup import regex

if TYPE_CHECKING:
    from warehouse.base.yaml_text import Value
    from warehouse.project.contract import Column

OTHERS = "others"
WAYS = ("sum", "mean", "min", "max", "none")
_MEASURE = regex(
    rf"^(?:(?P<how>{'|'.join(WAYS)})(?: except over (?P<but>[a-z0-9_]+(?:, [a-z0-9_]+)*))?"
    r"|(?P<above>[a-z0-9_]+) / (?P<below>[a-z0-9_]+))(?:, shown in (?P<unit>\S+))?$"
)
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXED = ("B", "bit/s", "B/s", "FLOP/s")
_FACTORS = {
    ("1", "%"): 0.01,
    ("s", "min"): 60.0,
    ("s", "h"): 3600.0,
    ("s", "d"): 86400.0,
    ("s", "ms"): 1e-3,
    ("ms", "s"): 1e3,
    ("ns", "us"): 1e3,
    ("ns", "ms"): 1e6,
}
"""(unit of the column, display unit): number of the first in one of the second."""
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "DOUBLE", "DECIMAL")


class Measure(NamedTuple):
    """Numeric column and its aggregation."""

    column: str
    how: str
    """One of `WAYS`, or `ratio`."""
    not_over: tuple[str, ...] = ()
    """Dimensions over which the column must not be summed."""
    above: str | None = None
    """Numerator of a ratio of sums."""
    below: str | None = None
    """Denominator of a ratio of sums."""
    unit: str | None = None
    """Display unit; default: the unit of the column."""
    factor: float = 1.0
    """Number of the column's own unit in one display unit."""

    def __str__(self) -> str:
        how = f"sum({self.above}) / sum({self.below})" if self.above else self.how
        return how + (f", not over {', '.join(self.not_over)}" if self.not_over else "")


class Semantics(NamedTuple):
    """Semantics of one table."""

    time: str | None = None
    dimensions: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()


NOTHING_SAID = Semantics()
KEYS = ("time", "dimensions", "measures")


def read_semantics(
    values: Mapping[str, Value], columns: Sequence[Column], grain: Sequence[str], shown: str
) -> Semantics:
    """Return the keys `time`, `dimensions` and `measures` of a front matter.

    Raises
    ------
    ModelError
        With the line that names an unknown column, aggregates a non-numeric column, or has a wrong display unit.
    """
    if not any(key in values for key in KEYS):
        return Semantics()
    known = {column.name: column for column in columns}
    time = _time(values.get("time"), known, shown)
    dimensions = _dimensions(values.get("dimensions"), known, grain, shown)
    measures = values["measures"].content if "measures" in values else {}
    if not isinstance(measures, Mapping):
        raise ModelError("`measures` is a list of `column: how`", place=values["measures"].place(shown))
    found: dict[str, Measure] = {}
    for names, value in measures.items():
        rest = _numbers(columns, {*grain, *dimensions, *found}) if names == OTHERS else names.split(",")
        for name in (one.strip() for one in rest):
            if name in found:
                raise ModelError(f"`measures` says twice how to sum {name}", place=value.place(shown))
            found[name] = _measure(name, value, known, (*dimensions, time), shown)
    for name in _numbers(columns, {*grain, *dimensions, *found}):
        place = next(values[key] for key in reversed(KEYS) if key in values).place(shown)
        raise ModelError(f"`measures` does not say how to sum {name}", place=place, hint=f"{name}: none, if not at all")
    return Semantics(time, dimensions, tuple(found[one.name] for one in columns if one.name in found))


def _numbers(columns: Sequence[Column], named: set[str]) -> list[str]:
    return [one.name for one in columns if is_number(one) and one.name not in named]


def is_number(column: Column) -> bool:
    """Return True if a column is numeric (not a list of numbers)."""
    return column.type.startswith(_NUMBERS) and not column.type.endswith("[]")


def _time(value: Value | None, known: Mapping[str, Column], shown: str) -> str | None:
    if value is None:
        return None
    name = str(value.content)
    column = _column(name, known, value.place(shown))
    if column.type not in ("TIMESTAMP", "DATE"):
        raise ModelError(f"{name} is {column.type}, no time", place=value.place(shown))
    return name


def _dimensions(value: Value | None, known: Mapping[str, Column], grain: Sequence[str], shown: str) -> tuple[str, ...]:
    if value is None:
        return tuple(grain)
    if isinstance(value.content, (str, Mapping)):
        raise ModelError("`dimensions` is a list of columns", place=value.place(shown))
    names = tuple(str(item.content) for item in value.content)
    for name, item in zip(names, value.content, strict=True):
        _column(name, known, item.place(shown))
    return names


def _measure(
    name: str, value: Value, known: Mapping[str, Column], dimensions: Sequence[str | None], shown: str
) -> Measure:
    place = value.place(shown)
    column = _column(name, known, place)
    text = str(value.content) if isinstance(value.content, str) else ""
    match = _MEASURE.match(" ".join(text.split()))
    if match is None:
        raise ModelError(
            f"measure {name} is {text!r}, which says no way to sum",
            place=place,
            hint=f"{', '.join(WAYS)}, or a / b; then `except over column` and `, shown in UNIT`",
        )
    if not is_number(column):
        raise ModelError(f"measure {name} is {column.type}, no number", place=place)
    but = tuple(match["but"].split(", ")) if match["but"] else ()
    for one in but:
        if one not in dimensions:
            hint = nearest_hint(one, [name for name in dimensions if name]) or "see `dimensions` and `time`"
            raise ModelError(f"{one} is no dimension", place=place, hint=hint)
    for one in (match["above"], match["below"]):
        if one:
            _column(one, known, place)
    unit, factor = _unit(match["unit"], column, place)
    how = match["how"] or "ratio"
    return Measure(name, how, but, match["above"], match["below"], unit, factor)


def _unit(wanted: str | None, column: Column, place: Place) -> tuple[str | None, float]:
    if wanted is None:
        return column.unit, 1.0
    own = column.unit or "1"
    if own in _PREFIXED and wanted[:1] in _PREFIXES and wanted[1:] == own:
        return wanted, _PREFIXES[wanted[0]]
    if (own, wanted) in _FACTORS:
        return wanted, _FACTORS[own, wanted]
    raise ModelError(f"{column.name} is in {own}, which cannot be shown in {wanted}", place=place)


def _column(name: str, known: Mapping[str, Column], place: Place) -> Column:
    if name not in known:
        raise ModelError(f"no column {name}", place=place, hint=nearest_hint(name, known))
    return known[name]
