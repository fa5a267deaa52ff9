"""What a warehouse says of a table: columns, units, meanings, and how its numbers are summed, as Superset's metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

ROWS = "rows"
"""The measure that every table has: how many rows."""
_AGGREGATES = {"sum": "sum", "mean": "avg", "min": "min", "max": "max"}
_DOUBLE = "CAST({} AS DOUBLE PRECISION)"  # one quotient in both servers: neither whole numbers nor numerics


@dataclass(frozen=True)
class Measure:
    """A number of a table and how several rows of it become one."""

    column: str
    how: str
    not_over: tuple[str, ...] = ()
    above: str | None = None
    below: str | None = None
    unit: str = "1"
    factor: float = 1.0

    @property
    def title(self) -> str:
        """`in_bytes, GB`."""
        return self.column if self.unit == "1" else f"{self.column}, {self.unit}"

    @property
    def name(self) -> str:
        """`in_bytes_gb`: of letters alone, since `%` in a name means something to drivers."""
        unit = "" if self.unit == "1" else re.sub(r"\W+", "_", self.unit.replace("%", "percent")).lower()
        return f"{self.how}_{self.column}" + (f"_{unit}" if unit else "")

    @property
    def expression(self) -> str:
        """SQL over several rows, in the unit that is shown."""
        if self.above and self.below:
            value = f"{_DOUBLE.format(f'sum({self.above})')} / nullif(sum({self.below}), 0)"
        else:
            # where rows are at their grain, the largest of one row is that row
            value = _DOUBLE.format(f"{_AGGREGATES.get(self.how, 'max')}({self.column})")
        return value if self.factor == 1.0 else f"{value} / {self.factor!r}"


@dataclass(frozen=True)
class Table:
    """A table of the warehouse as a dataset."""

    name: str
    about: str
    grain: tuple[str, ...]
    columns: dict[str, tuple[str, str]]
    """Name -> (type, meaning and unit)."""
    measures: dict[str, Measure] = field(default_factory=dict)
    time: str | None = None


def read_table(connection: duckdb.DuckDBPyConnection, name: str) -> Table:
    """What `meta` says of a table; a LookupError names one that is not there."""
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
    time = connection.execute("SELECT column_name FROM meta.dimensions WHERE model = $1 AND is_time", [name]).fetchone()
    return Table(
        name,
        str(row[0]),
        tuple(row[1] or ()),
        {c: (str(kind), f"{about} [{unit}]" if unit else str(about or "")) for c, kind, about, unit in columns},
        {
            column: Measure(column, how, tuple(not_over or ()), above, below, unit, factor)
            for column, how, not_over, above, below, unit, factor in measures
        },
        str(time[0]) if time else None,
    )
