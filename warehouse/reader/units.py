"""Units of columns: from the contract, and of a result's columns from the suffix of their names.

Tables name their columns by unit: `in_bytes`, `out_mean_bps`, `queue_seconds`, `leaving_share`. An expression has the
unit that its alias names, else it is a plain number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def column_meanings(
    connection: duckdb.DuckDBPyConnection, tables: Iterable[str], names: Sequence[str]
) -> list[tuple[str | None, str]]:
    """Return unit and meaning of each column of a result, from the contracts of the tables that it reads.

    A column that these tables do not have, or to which they give several meanings, has the unit of its name alone.
    """
    rows = connection.execute(
        "SELECT column_name, any_value(type), any_value(unit), any_value(about) FROM meta.columns "
        "WHERE list_contains($1, model) GROUP BY column_name HAVING count(DISTINCT [unit, about]) = 1",
        [[*tables]],
    ).fetchall()
    known = {name: (unit_of(name, kind, unit), about or "") for name, kind, unit, about in rows}
    found = (
        (known.get(name.lower(), (None, "")), unit)
        for name, unit in zip(names, result_units(connection, names), strict=True)
    )
    return [(unit or named, about) for (unit, about), named in found]


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
