"""Comparison of the rows of two versions of a table: added, removed and changed rows, and changed columns.

Rows are matched by grain. Without a grain, or if it is not unique, whole rows are compared: rows are then added or
removed, never changed. One FULL JOIN gives a temporary table of the different rows, from which all else is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warehouse.base.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

    from warehouse.history.diff.sides import Table

_BROKEN = ("DOUBLE", "FLOAT")
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "HUGEINT", "DECIMAL", *_BROKEN)
_DIGITS = 12
"""Digits of a sum of DOUBLE values. Later digits depend on the order of addition."""
_CHANGES = {"changed": "o IS NOT NULL AND n IS NOT NULL", "removed": "n IS NULL", "added": "o IS NULL"}
"""Condition of each kind of change: `o` and `n` are the row before and after."""


@dataclass(frozen=True)
class Total:
    """Sum of a column, before and after."""

    column: str
    old: object
    new: object


@dataclass(frozen=True)
class Example:
    """Different row: its grain, and the different cells before and after."""

    change: str
    """`added`, `removed` or `changed`."""
    key: Mapping[str, object]
    cells: Mapping[str, tuple[object, object]]


@dataclass(frozen=True)
class RowDiff:
    """Differences of the rows of a table."""

    old: int
    """Number of rows before."""
    new: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    key: tuple[str, ...] = ()
    """Columns that rows are matched by; empty if whole rows are compared."""
    cells: Mapping[str, int] = field(default_factory=dict)
    """Number of changed rows for each column."""
    totals: tuple[Total, ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def is_equal(self) -> bool:
        """True if no row is added, removed or changed."""
        return not (self.added or self.removed or self.changed)


def count_rows(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    """Return the number of rows of a table."""
    return int(connection.execute(f"SELECT count(*) FROM ({table.select()})").fetchall()[0][0])


def compare_rows(
    connection: duckdb.DuckDBPyConnection, old: Table, new: Table, moved: frozenset[str] | None, examples: int
) -> RowDiff:
    """Compare the rows of two versions of a table in the columns of both.

    Parameters
    ----------
    old, new
        The table, before and after.
    moved
        The partitions that can differ; None for all.
    examples
        Rows to show of each kind of change.
    """
    before = {column.name: column.type for column in old.columns}
    types = {column.name: (before[column.name], column.type) for column in new.columns if column.name in before}
    sides = old.select(moved), new.select(moved)
    key = next((grain for grain in (new.grain, old.grain) if grain and set(grain) <= set(types)), ())
    has_same_parts = old.has_parts and new.has_parts and old.partition == new.partition
    is_checked = has_same_parts and old.grain == new.grain == key and set(new.partition) <= set(types)  # by builds
    if key and not is_checked and not all(_is_unique(connection, key, rows) for rows in sides):
        key = ()
    matched = list(dict.fromkeys([*key, *(new.partition if is_checked else ())])) or list(types)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE differing AS {_differing(sides, types, key, matched)}")
    cells = [name for name in types if name not in key] if key else []
    wanted = [*_CHANGES.values(), *(f"{_CHANGES['changed']} AND {_differs(name)}" for name in cells)]
    counted = ", ".join(f"count(*) FILTER ({condition})" for condition in wanted)
    changed, removed, added, *counts = connection.execute(f"SELECT {counted} FROM differing").fetchall()[0]
    summed = [name for name, kinds in types.items() if all(map(is_number, kinds)) and name not in key]
    (rows_before, *one), (rows_after, *other) = (_sums(connection, table, summed) for table in (old, new))
    totals = tuple(Total(*total) for total in zip(summed, one, other, strict=True))
    return RowDiff(
        rows_before,
        rows_after,
        added,
        removed,
        changed,
        key,
        cells={name: count for name, count in zip(cells, counts, strict=True) if count},
        totals=totals if changed or removed or added else (),
        examples=tuple(_examples(connection, types, key, examples)),
    )


def _is_unique(connection: duckdb.DuckDBPyConnection, key: Sequence[str], rows: str) -> bool:
    row = ", ".join(map(identifier, key))
    has_duplicates = f"SELECT count(*) > count(DISTINCT row({row})) FROM ({rows})"
    return not connection.execute(has_duplicates).fetchall()[0][0]


def _differing(
    sides: tuple[str, str], types: Mapping[str, tuple[str, str]], key: Sequence[str], matched: Sequence[str]
) -> str:
    """Return the SELECT of all different rows: `o` and `n` are the row before and after, NULL if there is none.

    Without a key, whole rows are matched with their number among equal rows.
    """
    cells = ", ".join(f"{identifier(name)} := {_value(name, kinds)}" for name, kinds in types.items())
    number = "1" if key else f"row_number() OVER (PARTITION BY {', '.join(map(identifier, types))})"
    one, other = (
        f"(SELECT struct_pack({cells}) AS {prefix}, {number} AS {prefix}_number FROM ({rows}))"
        for prefix, rows in zip("on", sides, strict=True)
    )
    same = " AND ".join(_differs(name, "IS NOT DISTINCT FROM") for name in matched)
    changed = " OR ".join(["o IS NULL", "n IS NULL", *(_differs(name) for name in types if name not in matched)])
    return f"SELECT o, n FROM {one} FULL JOIN {other} ON o_number = n_number AND {same} WHERE {changed}"


def _differs(name: str, how: str = "IS DISTINCT FROM") -> str:
    return f"o.{identifier(name)} {how} n.{identifier(name)}"


def _value(name: str, kinds: tuple[str, str]) -> str:
    """Return a column; cast to text if the types of both versions are not comparable."""
    plain = kinds[0] == kinds[1] or all(map(is_number, kinds))
    return identifier(name) if plain else f"CAST({identifier(name)} AS VARCHAR)"


def _examples(
    connection: duckdb.DuckDBPyConnection, types: Mapping[str, object], key: Sequence[str], limit: int
) -> Iterator[Example]:
    """Yield the first rows of each kind of change, sorted by key."""
    order = ", ".join(f"coalesce(o.{identifier(name)}, n.{identifier(name)})" for name in key or types)
    for change, condition in _CHANGES.items():
        asked = f"SELECT o, n FROM differing WHERE {condition} ORDER BY {order} LIMIT {limit:d}"
        for before, after in connection.execute(asked).fetchall():
            cells = {name: ((before or {}).get(name), (after or {}).get(name)) for name in types if name not in key}
            if change == "changed":
                cells = {name: pair for name, pair in cells.items() if not _same(*pair)}
            yield Example(change, {name: (before or after)[name] for name in key}, cells)


def _same(old: object, new: object) -> bool:
    return old == new or (old != old and new != new)  # NaN != NaN


def is_number(kind: str) -> bool:
    """Return True if values of a type can be summed."""
    return kind.partition("(")[0] in _NUMBERS


def _sums(connection: duckdb.DuckDBPyConnection, table: Table, names: Sequence[str]) -> list[Any]:
    """Return the number of rows, and the sum of each column over the whole table."""
    kinds = {column.name: column.type for column in table.columns}
    adding = [f"{'fsum' if kinds[name] in _BROKEN else 'sum'}({identifier(name)})" for name in names]
    row = connection.execute(f"SELECT {', '.join(['count(*)', *adding])} FROM ({table.select()})").fetchall()[0]
    return [float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value or 0 for value in row]
