"""Semantics of a table for Superset: columns, units, number formats, and metrics from `meta.measures`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

ROWS = "rows"
"""Metric of every table: the number of rows."""
_AGGREGATES = {"sum": "sum", "mean": "avg", "min": "min", "max": "max"}
_DOUBLE = "CAST({} AS DOUBLE PRECISION)"  # double in both servers: neither integers nor numerics
_FACTORS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
_FORMATS = {"%": ".1%", "TB": ",.1f", "GB": ",.1f", "h": ",.0f", "min": ",.1f", "W": ",.0f", "B": ",d", "ms": ",.0f"}
_TIMES = {"s": "seconds", "min": "minutes", "h": "hours"}
_HOUR = "substr(CAST(hour_utc AS VARCHAR), 1, 16) || ' UTC'"
_SHORT_PORT = "regexp_replace(port, '^[A-Za-z]+', '')"
_NUMBER = (  # the first letter, then the number
    "ascii({0}) * 10000000 + CAST(coalesce(nullif(regexp_replace({0}, '[^0-9]', '', 'g'), ''), '0') AS BIGINT)"
)
NAMED_WITH_NUMBERS = ("switch", "server", "port")
"""Columns sorted by their number: Leaf-5 before Leaf-10."""


@dataclass(frozen=True)
class Measure:
    """A numeric column and its aggregation."""

    column: str
    how: str
    not_over: tuple[str, ...] = ()
    above: str | None = None
    below: str | None = None
    unit: str = "1"
    factor: float = 1.0
    is_whole: bool = False

    @property
    def is_share(self) -> bool:
        """Return True if Superset's format shows the share as a percentage."""
        return self.unit == "%"

    @property
    def title(self) -> str:
        """Name with unit, such as `in_bytes, GB`; a percentage has no unit in its name."""
        if self.unit in _TIMES and self.column.endswith(("_seconds", "_ms")):
            return f"{self.column.rpartition('_')[0]}_{_TIMES[self.unit]}"
        is_said = self.unit in ("1", "%") or (self.unit == "1/s" and self.column.endswith("_per_second"))
        return self.column if is_said else f"{self.column}, {self.unit}"

    @property
    def name(self) -> str:
        """Metric name, such as `sum_in_bytes_gb`; drivers interpret `%` in names."""
        return f"{self.how}_" + re.sub(r"\W+", "_", self.title).lower()

    @property
    def number_format(self) -> str:
        """Number format in d3 notation."""
        if self.unit == "1":
            return ",d" if self.is_whole and self.how != "mean" else ",.3f"
        return _FORMATS.get(self.unit, ",.1f")

    @property
    def expression(self) -> str:
        """SQL of the default aggregation, in the displayed unit."""
        return self.sql(self.how)

    def sql(self, how: str, *, where: str = "", unit: str | None = None) -> str:
        """Return SQL of an aggregation.

        Parameters
        ----------
        how
            `sum`, `mean`, `min`, `max`, or `ratio`; `none` is the value of the row, for charts at the grain.
        where
            A condition on rows.
        unit
            A byte unit other than the model's.
        """

        def kept(column: str) -> str:
            return f"CASE WHEN {where} THEN {column} END" if where else column

        if how == "ratio" and self.above and self.below:
            value = f"{_DOUBLE.format(f'sum({kept(self.above)})')} / nullif(sum({kept(self.below)}), 0)"
        else:  # at the grain, the maximum is the value of the single row
            value = _DOUBLE.format(f"{_AGGREGATES.get(how, 'max')}({kept(self.column)})")
        factor = (
            self.factor * 100
            if self.is_share
            else self.factor * _FACTORS[unit] / _FACTORS[self.unit]
            if unit
            else self.factor
        )
        return value if factor == 1.0 else f"{value} / {factor!r}"


@dataclass(frozen=True)
class Column:
    """A column of a dataset."""

    type: str
    about: str
    expression: str | None = None
    """SQL of a computed column."""


@dataclass(frozen=True)
class Metric:
    """A handwritten metric: an expression over several rows."""

    name: str
    title: str
    expression: str
    about: str
    number_format: str = ",d"


@dataclass(frozen=True)
class Table:
    """A table of the warehouse or a virtual dataset."""

    name: str
    about: str
    grain: tuple[str, ...]
    columns: dict[str, Column]
    measures: dict[str, Measure] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    sql: str | None = None
    """Query of a virtual dataset."""

    @property
    def source(self) -> str:
        """Relation or subquery for FROM."""
        return f"({self.sql}) AS virtual" if self.sql else self.name

    def column_sql(self, name: str) -> str:
        """Return SQL of a column."""
        return self.columns[name].expression or name


def read_table(connection: duckdb.DuckDBPyConnection, name: str) -> Table:
    """Return a table with its description in `meta`.

    Raises
    ------
    LookupError
        The warehouse has no such table.
    """
    row = connection.execute("SELECT about, grain FROM meta.models WHERE model = $1", [name]).fetchone()
    if row is None:
        raise LookupError(f"the warehouse has no table {name}")
    columns = connection.execute(
        "SELECT column_name, type, about, unit FROM meta.columns WHERE model = $1 ORDER BY position", [name]
    ).fetchall()
    measures = connection.execute(
        "SELECT column_name, how, not_over, above, below, coalesce(display_unit, '1'), display_factor "
        "FROM meta.measures WHERE model = $1",
        [name],
    ).fetchall()
    types = {column: str(kind) for column, kind, _, _ in columns}
    return Table(
        name,
        str(row[0]),
        tuple(row[1] or ()),
        {c: Column(types[c], f"{about} [{unit}]" if unit else str(about or "")) for c, _, about, unit in columns},
        {
            column: Measure(
                column, how, tuple(not_over or ()), above, below, unit, factor or 1.0, "INT" in types[column]
            )
            for column, how, not_over, above, below, unit, factor in measures
        },
    )


def with_labels(table: Table) -> Table:
    """Return the table with columns and metrics for readable labels and sorting.

    `hour` is an hour as text with its zone, `short_port` the port without its speed. `place_of_switch`, and as a metric
    `order_of_switch`, sort Leaf-5 before Leaf-10.
    """
    more = {}
    if "hour_utc" in table.columns and "hour" not in table.columns:
        more["hour"] = Column("VARCHAR", "the hour, in UTC", _HOUR)
    if "port" in table.columns:
        more["short_port"] = Column("VARCHAR", "the port without the name of its speed", _SHORT_PORT)
    orders = {}
    for name in NAMED_WITH_NUMBERS:
        if name in table.columns:
            number = _NUMBER.format(table.column_sql(name))
            about = f"sorts names of the column {name} by their number [1]"
            more[f"place_of_{name}"] = Column("BIGINT", about, number)
            order = f"order_of_{name}"  # the title is the name: Superset draws a sort metric that has another title
            orders[order] = Metric(order, order, f"min({number})", about)
    return Table(
        table.name, table.about, table.grain, table.columns | more, table.measures, table.metrics | orders, table.sql
    )


def sort_key(table: Table, columns: Sequence[str]) -> str:
    """Return an aggregate that sorts groups by these columns, numbers in names by value.

    Texts sort equally in both servers; the order of unsorted rows differs from server to server.
    """
    return f"min({' || '.join(_sorting(table, name) for name in columns)})"


def _sorting(table: Table, name: str) -> str:
    sql = table.column_sql(name)
    if name in NAMED_WITH_NUMBERS:
        return f"substr({sql}, 1, 1) || lpad(regexp_replace({sql}, '[^0-9]', '', 'g'), 12, '0') || ' '"
    return f"CAST({sql} AS VARCHAR) || ' '"
