"""Contract of a model: columns and checks, the comparison with the columns of its SELECT or function, and semantics.

Semantics of a table's columns are measures with their aggregation and display unit, dimensions, the column of time:

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
from typing import Any, NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint
from warehouse.base.startup import regex
from warehouse.base.yaml_text import TEXT, Form, Value, keys_of

TYPES = (
    *("BIGINT", "INTEGER", "SMALLINT", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "DATE"),
    *("VARCHAR[]", "INTEGER[]", "BIGINT[]"),
)
"""Types of columns, besides DECIMAL."""
_INTEGERS = frozenset({"BIGINT", "INTEGER", "SMALLINT"})
_FRACTIONS = ("DOUBLE", "FLOAT", "DECIMAL")


class Column(NamedTuple):
    """Column of the contract: name, type, unit, meaning."""

    name: str
    type: str
    unit: str | None = None
    about: str = ""

    @property
    def comment(self) -> str:
        """Comment of the column in the catalog, such as `[B] bytes that entered ...`."""
        return f"[{self.unit}] {self.about}" if self.unit else self.about


class Check(NamedTuple):
    """Line of `checks` as written, with its place."""

    text: str
    place: Place
    warn: bool = False
    says: str = ""
    """Sentence to print for a failing row, with `{column}` for values; see `warehouse.base.text`."""


def same_columns(
    columns: Sequence[Column], given: Sequence[tuple[str, str]], place: Place, *, is_python: bool = False
) -> None:
    """Compare the columns of a model's SELECT or function with its contract.

    Parameters
    ----------
    columns
        The contract.
    given
        Name and type of each column of the SELECT or function.
    place
        The place for an error.
    is_python
        True for a Python function.

    Raises
    ------
    ModelError
        When a column is missing, not in the contract or out of order, or when a cast to integer would lose a fraction.
    """
    subject = f"the {'function' if is_python else 'SELECT'}"
    declared = [column.name for column in columns]
    names = [name for name, _ in given]
    if names != declared:
        missing = [name for name in declared if name not in names]
        extra = [name for name in names if name not in declared]
        problems = [f"{subject} does not give {', '.join(missing)}"] if missing else []
        problems += [f"{', '.join(extra)} is not in the contract"] if extra else []
        if not problems:
            problems = [f"{subject} gives its columns in another order than the contract: {', '.join(names)}"]
        hint = nearest_hint(extra[0], missing) if extra and missing else None
        raise ModelError("; ".join(problems), place=place, hint=hint)
    for column, (name, kind) in zip(columns, given, strict=True):
        if column.type in _INTEGERS and kind.startswith(_FRACTIONS):
            raise ModelError(
                f"the contract has {name} as {column.type}, {subject} gives {kind}, whose fraction would be lost",
                place=place,
                hint="round it, and cast it to int64"
                if is_python
                else f"write CAST(round({name}) AS {column.type}), or // for division",
            )


# semantics ----------------------------------------------------------------------------------------

OTHERS = "others"
WAYS = ("sum", "mean", "min", "max", "none")
_MEASURE = regex(
    rf"(?:(?P<how>{'|'.join(WAYS)})(?:\s+except over (?P<but>[a-z0-9_]+(?:, [a-z0-9_]+)*))?"
    r"|(?P<above>[a-z0-9_]+) / (?P<below>[a-z0-9_]+))(?:,\s+shown in (?P<unit>\S+))?"
)
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_FACTORS = {
    **{(unit, prefix + unit): n for unit in ("B", "bit/s", "B/s", "FLOP/s") for prefix, n in _PREFIXES.items()},
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
SEMANTIC_FORMS = {
    "time": TEXT,
    "dimensions": [TEXT],
    "measures": {
        TEXT: Form(
            str(_MEASURE.pattern), f"{', '.join(WAYS)} or a / b, then `except over column` and `, shown in UNIT`"
        )
    },
}
"""Keys of a front matter."""


def read_semantics(
    keys: Mapping[str, Any], given: Mapping[str, Value], columns: Sequence[Column], grain: Sequence[str], shown: str
) -> Semantics:
    """Return the keys `time`, `dimensions` and `measures` of a front matter; `given` has their places.

    Raises
    ------
    ModelError
        With the line that names an unknown column, aggregates a non-numeric column, or has a wrong display unit.
    """
    if not any(key in keys for key in SEMANTIC_FORMS):
        return NOTHING_SAID
    known = {column.name: column for column in columns}
    time, dimensions = keys.get("time"), tuple(keys.get("dimensions", grain))
    places = {key: given[key].place(shown) for key in SEMANTIC_FORMS if key in given}
    for key, names in (("time", [time] if time else []), ("dimensions", dimensions)):
        for name in names:
            if name not in known:
                raise ModelError(f"`{key}`: no column {name}", place=places[key], hint=nearest_hint(name, known))
    if time and known[time].type not in ("TIMESTAMP", "DATE"):
        raise ModelError(f"{time} is {known[time].type}, no time", place=places["time"])
    found: dict[str, Measure] = {}
    for names, text in keys.get("measures", {}).items():
        place = keys_of(given["measures"])[names].place(shown)
        rest = _numbers(columns, {*grain, *dimensions, *found}) if names == OTHERS else names.split(",")
        for name in (one.strip() for one in rest):
            if name in found:
                raise ModelError(f"`measures` says twice how to sum {name}", place=place)
            found[name] = _measure(name, text, known, (*dimensions, time), place)
    for name in _numbers(columns, {*grain, *dimensions, *found}):
        hint = f"{name}: none, if not at all"
        raise ModelError(f"`measures` does not say how to sum {name}", place=[*places.values()][-1], hint=hint)
    return Semantics(time, dimensions, tuple(found[one.name] for one in columns if one.name in found))


def _numbers(columns: Sequence[Column], named: set[str]) -> list[str]:
    return [one.name for one in columns if is_number(one) and one.name not in named]


def is_number(column: Column) -> bool:
    """Return True if a column is numeric (not a list of numbers)."""
    return column.type.startswith(_NUMBERS) and not column.type.endswith("[]")


def _measure(
    name: str, text: str, known: Mapping[str, Column], dimensions: Sequence[str | None], place: Place
) -> Measure:
    match = _MEASURE.fullmatch(text)
    assert match is not None
    for one in filter(None, (name, match["above"], match["below"])):
        if one not in known:
            raise ModelError(f"`measures`: no column {one}", place=place, hint=nearest_hint(one, known))
    column = known[name]
    if not is_number(column):
        raise ModelError(f"measure {name} is {column.type}, no number", place=place)
    but = tuple(match["but"].split(", ")) if match["but"] else ()
    if others := [one for one in but if one not in dimensions]:
        hint = nearest_hint(others[0], [one for one in dimensions if one]) or "see `dimensions` and `time`"
        raise ModelError(f"{others[0]} is no dimension", place=place, hint=hint)
    own, unit = column.unit or "1", match["unit"]
    factor = 1.0 if unit is None else _FACTORS.get((own, unit))
    if factor is None:
        raise ModelError(f"{name} is in {own}, which cannot be shown in {unit}", place=place)
    return Measure(name, match["how"] or "ratio", but, match["above"], match["below"], unit or column.unit, factor)
