"""Rows of two versions of a table, side by side: which were added, removed or changed, and in which columns.

Rows belong together by the grain. Where there is none, or it does not hold, a row is what stands in it: then rows
are added and removed, none changes. What differs goes into a temporary table; all that is said is read from that.
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
"""Sums of DOUBLE are rounded to so many: the digits after them depend on the order of adding."""


@dataclass(frozen=True)
class Total:
    """The sum of a column, before and after."""

    column: str
    old: object
    new: object


@dataclass(frozen=True)
class Example:
    """A row that differs: its grain, and the cells that differ, before and after."""

    change: str
    """`added`, `removed` or `changed`."""
    key: Mapping[str, object]
    cells: Mapping[str, tuple[object, object]]


@dataclass(frozen=True)
class RowDiff:
    """How the rows of a table differ."""

    old: int
    """Rows before."""
    new: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    key: tuple[str, ...] = ()
    """What rows were told apart by; nothing where they have no name of their own."""
    cells: Mapping[str, int] = field(default_factory=dict)
    """Rows that changed in a column, by column."""
    totals: tuple[Total, ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether no row differs."""
        return not (self.added or self.removed or self.changed)


def count_rows(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    """The number of rows, from the manifest where that says it."""
    if table.has_parts:
        return sum(part.rows for part in table.parts.values())
    return int(connection.execute(f"SELECT count(*) FROM ({table.select()})").fetchall()[0][0])


def compare_rows(
    connection: duckdb.DuckDBPyConnection, old: Table, new: Table, moved: frozenset[str] | None, examples: int
) -> RowDiff:
    """Compare the columns that both have.

    Parameters
    ----------
    connection
        Where both sides can be read.
    old, new
        The table, before and after.
    moved
        The partitions that can differ; None for all.
    examples
        Rows to show of each kind of change.
    """
    pairs = list(_pairs(old, new, moved))
    pairing = _Pairing(old, new)
    checked = old.has_parts and new.has_parts and old.grain == new.grain == pairing.key
    if not checked and not all(_holds(connection, pairing.key, rows) for pair in pairs for rows in pair):
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
    """What to read of both sides: part by part, since the grain is a name within a part."""
    if old.has_parts and new.has_parts and moved is not None:
        for partition in sorted(moved):
            yield old.select([partition]), new.select([partition])
    else:
        yield old.select(moved), new.select(moved)


def _holds(connection: duckdb.DuckDBPyConnection, key: Sequence[str], rows: str) -> bool:
    """Whether the key names each row once."""
    if not key:
        return True
    row = ", ".join(map(identifier, key))
    twice = f"SELECT count(*) > count(DISTINCT row({row})) FROM ({rows})"
    return not connection.execute(twice).fetchall()[0][0]


class _Pairing:
    """The SQL that lays two versions of a table side by side.

    Columns that both have are numbered; `o3` and `n3` are the fourth, before and after, `o` and `n` whether the row
    is there at all.
    """

    def __init__(self, old: Table, new: Table, *, use_grain: bool = True) -> None:
        before = {column.name: column.type for column in old.columns}
        self.types = {c.name: (before[c.name], c.type) for c in new.columns if c.name in before}
        self.names = list(self.types)
        grains = [grain for grain in (new.grain, old.grain) if grain and set(grain) <= set(self.names)]
        self.key: tuple[str, ...] = grains[0] if grains and use_grain else ()
        self.cells = [at for at, name in enumerate(self.names) if name not in self.key] if self.key else []

    def differs(self, at: int) -> str:
        """The condition that a column is another."""
        return f"o{at} IS DISTINCT FROM n{at}"

    def differing(self, one: str, other: str) -> str:
        """A SELECT of all rows that differ."""
        both = range(len(self.names))
        if not self.key:
            old, new = (", ".join(f"{mark}{at}" for at in both) for mark in "on")
            no_old, no_new = (", ".join(f"NULL AS {mark}{at}" for at in both) for mark in "on")
            rows = [self._side("o", one), self._side("n", other)]
            removed = f"SELECT {old}, o, {no_new}, NULL AS n FROM ({rows[0]} EXCEPT ALL {rows[1]})"
            added = f"SELECT {no_old}, NULL AS o, {new}, n FROM ({rows[1]} EXCEPT ALL {rows[0]})"
            return f"SELECT * FROM ({removed}) UNION ALL ({added})"
        same = " AND ".join(
            f"o{self.names.index(name)} IS NOT DISTINCT FROM n{self.names.index(name)}" for name in self.key
        )
        changed = " OR ".join(["o IS NULL", "n IS NULL", *(self.differs(at) for at in self.cells)])
        return f"FROM ({self._side('o', one)}) FULL JOIN ({self._side('n', other)}) ON {same} WHERE {changed}"

    def _side(self, mark: str, rows: str) -> str:
        columns = ", ".join(f"{self._value(name)} AS {mark}{at}" for at, name in enumerate(self.names))
        return f"SELECT {columns}, true AS {mark} FROM ({rows})"

    def _value(self, name: str) -> str:
        """A column, as text where its type became another that it cannot be compared with."""
        old, new = self.types[name]
        plain = old == new or (is_number(old) and is_number(new))
        return identifier(name) if plain else f"CAST({identifier(name)} AS VARCHAR)"

    def examples(self, connection: duckdb.DuckDBPyConnection, limit: int) -> Iterator[Example]:
        """The first rows of each kind of change, in order of the key."""
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
    return old == new or (old != old and new != new)  # NaN, which differs from itself


def is_number(kind: str) -> bool:
    """Whether a type is one that can be summed."""
    return kind in _WHOLE or kind in _BROKEN or kind.startswith("DECIMAL")


def _totals(
    connection: duckdb.DuckDBPyConnection, old: Table, new: Table, pairing: _Pairing
) -> tuple[tuple[int, int], tuple[Total, ...]]:
    """The rows before and after, and the sums of the numbers of the whole table, exact where the numbers are."""
    summed = [name for name, kinds in pairing.types.items() if all(map(is_number, kinds)) and name not in pairing.key]
    (before, *one), (after, *other) = (_sums(connection, table, summed) for table in (old, new))
    totals = tuple(Total(*total) for total in zip(summed, one, other, strict=True))
    return (int(str(before)), int(str(after))), totals


def _sums(connection: duckdb.DuckDBPyConnection, table: Table, names: Sequence[str]) -> list[object]:
    kinds = {column.name: column.type for column in table.columns}
    adding = [f"{'fsum' if kinds[name] in _BROKEN else 'sum'}({identifier(name)})" for name in names]
    row = connection.execute(f"SELECT {', '.join(['count(*)', *adding])} FROM ({table.select()})").fetchall()[0]
    return [float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value or 0 for value in row]
