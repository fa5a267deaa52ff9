"""Known values of a column, from the dimension table of its name. Other columns have none: nothing large is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import nearest
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.text import few, natural

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_DIMENSIONS = {
    "cluster": "reference.dim_cluster",
    "hour_utc": "reference.dim_hour",
    "server": "reference.dim_server",
    "switch": "reference.dim_switch",
    "task": "metrics.task_summary",
    "trace": "metrics.job_totals",
}
_MOST_ROWS = 10_000
"""Rows of a small table."""


def known_values(connection: duckdb.DuckDBPyConnection, column: str) -> Sequence[str]:
    """Return the known values of a column in natural order; none if no small table has its values."""
    table = _DIMENSIONS.get(column)
    small = connection.execute(
        "SELECT model FROM meta.models WHERE model = $1 AND kind IN ('table', 'reference') AND coalesce(rows, 0) <= $2",
        [table, _MOST_ROWS],
    ).fetchone()
    if table is None or small is None:
        return ()
    name = identifier(column)
    rows = connection.execute(f"SELECT DISTINCT {name}::VARCHAR FROM {qualified(table)} WHERE {name} IS NOT NULL")
    return sorted((one for (one,) in rows.fetchall()), key=natural)


def near_or_listed(value: str, listed: Sequence[str]) -> str:
    """Return the end of a sentence on an unknown value: the nearest known one, else some of them."""
    if close := nearest(value, listed):
        return f"; near: {close}"
    return f"; {'there is only' if len(listed) == 1 else 'there are'} {few(listed)}"
