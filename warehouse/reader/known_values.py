"""Known values of a column: from its own table if that is small, else from the dimension table of its name.

An explanation must not scan a large table, so a column without a small source has no known values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import nearest
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.text import few

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


class Known(NamedTuple):
    """Known values of a column."""

    table: str = ""
    """Small table that has them."""
    values: Sequence[str] = ()
    """Distinct values as text, in natural order; empty if no small table has the column."""


def known_values(connection: duckdb.DuckDBPyConnection, column: str, table: str = "") -> Known:
    """Return the known values of a column, of any table or of a given one."""
    small = connection.execute(
        "SELECT model FROM meta.models WHERE kind IN ('table', 'reference') AND coalesce(rows, 0) <= $1 "
        "AND model IN ($2, $3) ORDER BY model = $2 DESC",
        [_MOST_ROWS, table, _DIMENSIONS.get(column, "")],
    ).fetchone()
    if small is None:
        return Known()
    name = identifier(column)
    rows = connection.execute(f"SELECT DISTINCT {name}::VARCHAR FROM {qualified(small[0])} WHERE {name} IS NOT NULL")
    return Known(small[0], sorted((one for (one,) in rows.fetchall()), key=_natural))


def _natural(text: str) -> list[str | int]:
    """Return a sort key that orders `Leaf-9` before `Leaf-10`."""
    return [int(one) if one.isdecimal() else one for one in re.split(r"(\d+)", text)]


def near_or_listed(value: str, listed: Sequence[str]) -> str:
    """Return the end of a sentence on an unknown value: the nearest known one, else some of them."""
    if close := nearest(value, listed):
        return f"; near: {close}"
    return f"; {'there is only' if len(listed) == 1 else 'there are'} {few(listed)}"
