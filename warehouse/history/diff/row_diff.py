"""Comparison of the rows of two versions of a table: added, removed and changed rows, and changed columns.

Rows are matched by grain. Without a grain, or if it is not unique, whole rows are compared: rows are then added or
removed, never changed. All results are read from a temporary table of the different rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

    from warehouse.history.diff.sides import Table

_WHOLE = frozenset({"BIGINT", "INTEGER", "SMALLINT", "HUGEINT"})
_BROKEN = frozenset({"DOUBLE", "FLOAT"})
_DIGITS = 12
"""Digits of a sum of DOUBLE values. Later digits depend on the order of addition."""


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
        """True if no row differs."""
        return not (self.added or self.removed or self.changed)


def count_rows(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    """Return the number of rows, from the manifest if possible."""
    if table.has_parts:
        return sum(part.rows for part in table.parts.values())
    return int(connection.execute(f"SELECT count(*) FROM ({table.select()})").fetchall()[0][0])


def compare_rows(
    connection: duckdb.DuckDBPyConnection, old: Table, new: Table, moved: frozenset[str] | None, examples: int
) -> RowDiff:
    """Compare the common columns of all rows.

    Parameters
    ----------
    connection
        A connection that can read both sides.
    old, new
        The table, before and after.
    moved
        The partitions that can differ; None for all.
    examples
        Rows to show of each kind of change.
    """
    pairs = list(_pairs(old, new, moved))
    pairing = _Pairing(old, new)
    checked = _has_same_parts(old, new) and old.grain == new.grain == pairing.key
    if not checked and not all(_is_unique(connection, pairing.key, rows) for pair in pairs for rows in pair):
        pairing = _Pairing(old, new, use_grain=False)
    connection.execute("DROP TABLE IF EXISTS differing")
    for number, (one, other) in enumerate(pairs):
        head = "INSERT INTO differing" if number else "CREATE TEMP TABLE differing AS"
        connection.execute(f"{head} {pairing.differing(one, other)}")
    counts = ", ".join(f"count(*) FILTER (o AND n AND {pairing.differs(at)})" for at in pairing.cells)
    row = connection.execute(
        "SELECT count(*) FILTER (o IS NULL), count(*) FILTER (n IS NULL), count(*) FILTER (o AND n)"
        f"{', ' * bool(counts)}{counts} FROM differing"
    ).fetchall()[0]
    counted, totals = _totals(connection, old, new, pairing)
    found = RowDiff(
        *counted,
        added=row[0],
        removed=row[1],
        changed=row[2],
        key=pairing.key,
        cells={pairing.names[at]: count for at, count in zip(pairing.cells, row[3:], strict=True) if count},
        totals=totals if any(row[:3]) else (),
        examples=tuple(pairing.examples(connection, examples)),
    )
    connection.execute("DROP TABLE differing")
    return found


def _pairs(old: Table, new: Table, moved: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """Yield the SELECTs of both sides: one pair for each partition, since the grain is unique within a part."""
    if _has_same_parts(old, new) and moved is not None:
        for partition in sorted(moved):
            yield old.select([partition]), new.select([partition])
    else:
        yield old.select(moved), new.select(moved)


def _has_same_parts(old: Table, new: Table) -> bool:
    """Return True if the rows of both sides are in parts, split by the same columns."""
    return old.has_parts and new.has_parts and old.partition == new.partition


def _is_unique(connection: duckdb.DuckDBPyConnection, key: Sequence[str], rows: str) -> bool:
    """Return True if the key is unique."""
    if not key:
        return True
    row = ", ".join(map(identifier, key))
    has_duplicates = f"SELECT count(*) > count(DISTINCT row({row})) FROM ({rows})"
    return not connection.execute(has_duplicates).fetchall()[0][0]


class _Pairing:
    """SQL that joins two versions of a table.

    Common columns are numbered: `o3` and `n3` are the fourth column before and after. `o` and `n` are true if the row
    exists before or after.
    """

    def __init__(self, old: Table, new: Table, *, use_grain: bool = True) -> None:
        before = {column.name: column.type for column in old.columns}
        self.types = {c.name: (before[c.name], c.type) for c in new.columns if c.name in before}
        self.names = list(self.types)
        grains = [grain for grain in (new.grain, old.grain) if grain and set(grain) <= set(self.names)]
        self.key: tuple[str, ...] = grains[0] if grains and use_grain else ()
        self.cells = [at for at, name in enumerate(self.names) if name not in self.key] if self.key else []

    def differs(self, at: int) -> str:
        """Return the condition that a column differs."""
        return f"o{at} IS DISTINCT FROM n{at}"

    def differing(self, one: str, other: str) -> str:
        """Return the SELECT of all different rows."""
        both = range(len(self.names))
        if not self.key:
            old, new = (", ".join(f"{prefix}{at}" for at in both) for prefix in "on")
            no_old, no_new = (", ".join(f"NULL AS {prefix}{at}" for at in both) for prefix in "on")
            rows = [self._side("o", one), self._side("n", other)]
            removed = f"SELECT {old}, o, {no_new}, NULL AS n FROM ({rows[0]} EXCEPT ALL {rows[1]})"
            added = f"SELECT {no_old}, NULL AS o, {new}, n FROM ({rows[1]} EXCEPT ALL {rows[0]})"
            return f"SELECT * FROM ({removed}) UNION ALL ({added})"
        same = " AND ".join(
            f"o{self.names.index(name)} IS NOT DISTINCT FROM n{self.names.index(name)}" for name in self.key
        )
        changed = " OR ".join(["o IS NULL", "n IS NULL", *(self.differs(at) for at in self.cells)])
        return f"FROM ({self._side('o', one)}) FULL JOIN ({self._side('n', other)}) ON {same} WHERE {changed}"

    def _side(self, prefix: str, rows: str) -> str:
        columns = ", ".join(f"{self._value(name)} AS {prefix}{at}" for at, name in enumerate(self.names))
        return f"SELECT {columns}, true AS {prefix} FROM ({rows})"

    def _value(self, name: str) -> str:
        """Return a column; cast to text if the types of both versions are not comparable."""
        old, new = self.types[name]
        plain = old == new or (is_number(old) and is_number(new))
        return identifier(name) if plain else f"CAST({identifier(name)} AS VARCHAR)"

    def examples(self, connection: duckdb.DuckDBPyConnection, limit: int) -> Iterator[Example]:
        """Yield the first rows of each kind of change, sorted by key."""
        both = range(len(self.names))
        columns = ", ".join([f"o{at}" for at in both] + [f"n{at}" for at in both])
        first = [self.names.index(name) for name in self.key] or both
        order = ", ".join(f"coalesce(o{at}, n{at})" for at in first)
        for change, condition in (("changed", "o AND n"), ("removed", "n IS NULL"), ("added", "o IS NULL")):
            for row in connection.execute(
                f"SELECT {columns} FROM differing WHERE {condition} ORDER BY {order} LIMIT {limit:d}"
            ).fetchall():
                pairs = dict(zip(self.names, zip(row[: len(both)], row[len(both) :], strict=True), strict=True))
                key = {name: pairs.pop(name)[change == "added"] for name in self.key}
                if change == "changed":
                    pairs = {name: pair for name, pair in pairs.items() if not _same(*pair)}
                yield Example(change, key, pairs)


def _same(old: object, new: object) -> bool:
    return old == new or (old != old and new != new)  # NaN != NaN


def is_number(kind: str) -> bool:
    """Return True if values of a type can be summed."""
    return kind in _WHOLE or kind in _BROKEN or kind.startswith("DECIMAL")


def _totals(
    connection: duckdb.DuckDBPyConnection, old: Table, new: Table, pairing: _Pairing
) -> tuple[tuple[int, int], tuple[Total, ...]]:
    """Return the numbers of rows before and after, and the sum of each numeric column over the whole table."""
    summed = [name for name, kinds in pairing.types.items() if all(map(is_number, kinds)) and name not in pairing.key]
    (before, *one), (after, *other) = (_sums(connection, table, summed) for table in (old, new))
    totals = tuple(Total(*total) for total in zip(summed, one, other, strict=True))
    return (int(str(before)), int(str(after))), totals


def _sums(connection: duckdb.DuckDBPyConnection, table: Table, names: Sequence[str]) -> list[object]:
    kinds = {column.name: column.type for column in table.columns}
    adding = [f"{'fsum' if kinds[name] in _BROKEN else 'sum'}({identifier(name)})" for name in names]
    row = connection.execute(f"SELECT {', '.join(['count(*)', *adding])} FROM ({table.select()})").fetchall()[0]
    return [float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value or 0 for value in row]
