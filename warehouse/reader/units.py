"""Units of columns: from the contract, and of a result's columns from the suffix of their names.

Tables name their columns by unit: `in_bytes`, `out_mean_bps`, `queue_seconds`, `leaving_share`. An expression has the
unit that its alias names, else it is a plain number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

SHARE = "share"
"""Unit of fractions of 1, shown as %."""
COUNT = "count"
"""Unit of counts."""
_SUFFIXES = {"bytes": "B", "bps": "bit/s", "seconds": "s", "ms": "ms", "ns": "ns", "share": SHARE, "utilization": SHARE,
             "watts": "W"}  # fmt: skip
_SHARES = frozenset({"duty_cycle", "in_out_difference", "mfu_6n", "mfu_6n_12lhs"})
_INTEGERS = "('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT')"


def result_units(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> list[str | None]:
    """Return the unit of each column of a result, or None if its name has none. Counts are known by name."""
    counts = connection.execute(
        f"SELECT DISTINCT lower(column_name) FROM meta.columns WHERE unit = '1' AND type IN {_INTEGERS}"
    ).fetchall()
    return [named_unit(name) or (COUNT if (name.lower(),) in counts else None) for name in names]


def named_unit(name: str) -> str | None:
    """Return the unit that the name of a column states.

    >>> named_unit("in_bytes"), named_unit("leaving_share"), named_unit("duty_cycle"), named_unit("polls")
    ('B', 'share', 'share', None)
    """
    name = name.lower()
    return SHARE if name in _SHARES or "_share_" in name else _SUFFIXES.get(name.rpartition("_")[2])


def unit_of(name: str, kind: str, unit: str | None) -> str | None:
    """Return the unit of a contract's column; unit `1` becomes a share, a count, or None.

    >>> unit_of("leaving_share", "DOUBLE", "1"), unit_of("polls", "BIGINT", "1"), unit_of("cov", "DOUBLE", "1")
    ('share', 'count', None)
    """
    if unit != "1":
        return unit
    if kind in ("DOUBLE", "FLOAT"):
        return SHARE if named_unit(name) == SHARE else None
    return COUNT
