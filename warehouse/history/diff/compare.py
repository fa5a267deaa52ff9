"""Comparison of two builds or exports: tables, columns, rows by grain, totals, and origins of changes.

Tables whose parts have equal content hashes are equal and never read. Of other tables, only the different parts are
read.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from warehouse.base.errors import WarehouseError
from warehouse.base.startup import duckdb
from warehouse.base.text import few
from warehouse.engine.duckdb_errors import sentence
from warehouse.history.diff.origins import Origin, Trace
from warehouse.history.diff.row_diff import RowDiff, compare_rows, count_rows
from warehouse.history.diff.sides import Pair, Side, Table
from warehouse.project.contract import Column
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import scratch_folder

EXAMPLES = 3
EQUAL, ADDED, REMOVED, CHANGED = "equal", "added", "removed", "changed"


@dataclass(frozen=True)
class TableDiff:
    """Comparison of one table."""

    name: str
    change: str
    """`equal`, `added`, `removed` or `changed`."""
    columns_added: tuple[Column, ...] = ()
    columns_removed: tuple[Column, ...] = ()
    columns_retyped: tuple[tuple[Column, Column], ...] = ()
    """Columns with a different type or unit, before and after."""
    reordered: bool = False
    """True if the common columns are in a different order."""
    grain: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """Grain before and after, if it differs."""
    rows: RowDiff | None = None
    """None if the rows are known to be equal without reading them."""
    rewritten: bool = False
    """True if parts have different bytes but equal rows."""
    origins: tuple[Origin, ...] = ()
    """Origins of the change, if requested."""

    @property
    def has_same_columns(self) -> bool:
        """True if columns, their order and the grain are equal."""
        others = (self.columns_added, self.columns_removed, self.columns_retyped, self.reordered, self.grain)
        return not any(others)


@dataclass(frozen=True)
class Comparison:
    """Comparison of two sides."""

    old: Side
    new: Side
    tables: tuple[TableDiff, ...]
    left_out: tuple[str, ...] = ()
    """Tables that are not in the export, and so not compared."""

    @property
    def differing(self) -> tuple[TableDiff, ...]:
        """Tables that are not equal."""
        return tuple(table for table in self.tables if table.change != EQUAL)

    @property
    def is_equal(self) -> bool:
        """True if all tables have the same columns and rows; descriptions and bytes may differ."""
        return not self.differing


def diff(
    old: Side,
    new: Side,
    *,
    examples: int = EXAMPLES,
    where_from: bool = False,
    select: Sequence[str] = ("*",),
    memory: str | None = None,
    threads: int | None = None,
    bar: Bar | None = None,
) -> Comparison:
    """Compare two sides.

    Parameters
    ----------
    old, new
        The sides, from `warehouse.history.diff.sides.find`.
    examples
        Rows to show for each kind of change and table.
    where_from
        True to find the input or model that caused each change. Both sides must be builds.
    select
        Names of tables, or globs.
    memory, threads
        Limits of the engine.
    bar
        The progress bar, which shows the current table.

    Raises
    ------
    WarehouseError
        When a side cannot be read, or no table is selected.
    """
    if where_from and (old.is_export or new.is_export):
        raise WarehouseError("an export does not say where its rows are from", hint="compare builds of a target")
    with _engine(memory, threads) as connection:
        pair = Pair(connection, old, new)
        held = {*pair.before, *pair.after}
        if old.is_export != new.is_export:
            held = set(pair.before if old.is_export else pair.after)
        names = sorted(name for name in held if any(fnmatch.fnmatchcase(name, pattern) for pattern in select))
        if not names:
            raise WarehouseError("no table to compare", hint=f"there are {few(sorted(held)) or 'none'}")
        tables = [_table(connection, name, pair, examples) for name in with_progress(names, bar)]
        if where_from:
            with closing(Trace(pair)) as trace:
                tables = [
                    replace(one, origins=trace.origins(one.name)) if one.change != EQUAL or one.rewritten else one
                    for one in tables
                ]
        return Comparison(old, new, tuple(tables), tuple(sorted({*pair.before, *pair.after} - held)))


@contextmanager
def _engine(memory: str | None, threads: int | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB instance that spills to a temporary folder."""
    with scratch_folder("diff") as spill:
        config: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        config |= {"memory_limit": memory} if memory else {}
        config |= {"threads": threads} if threads else {}
        with duckdb.connect(":memory:", config=config) as connection:
            yield connection


def _table(connection: duckdb.DuckDBPyConnection, name: str, pair: Pair, examples: int) -> TableDiff:
    old, new = pair.before.get(name), pair.after.get(name)
    try:
        if old is None or new is None:
            return _one_sided(connection, old, new)
        found, moved = _columns(old, new), pair.moved(name)
        if moved is None or moved:
            found = replace(found, rows=compare_rows(connection, old, new, moved, examples))
    except duckdb.Error as error:
        raise WarehouseError(
            f"{name} cannot be compared: {sentence(error)}",
            hint="warehouse verify tells whether all parts are there and whole",
        ) from error
    is_equal = found.has_same_columns and (found.rows is None or found.rows.is_equal)
    rewritten = is_equal and found.rows is not None and old.has_parts and new.has_parts
    return replace(found, change=EQUAL if is_equal else CHANGED, rewritten=rewritten)


def _one_sided(connection: duckdb.DuckDBPyConnection, old: Table | None, new: Table | None) -> TableDiff:
    """Return the comparison of a table that only one side has."""
    if new is not None:
        rows = count_rows(connection, new)
        return TableDiff(new.name, ADDED, columns_added=new.columns, rows=RowDiff(0, rows, added=rows))
    assert old is not None
    rows = count_rows(connection, old)
    return TableDiff(old.name, REMOVED, columns_removed=old.columns, rows=RowDiff(rows, 0, removed=rows))


def _columns(old: Table, new: Table) -> TableDiff:
    """Return the differences in columns and grain."""
    before, after = ({column.name: column for column in table.columns} for table in (old, new))
    common = [name for name in after if name in before]
    return TableDiff(
        new.name,
        CHANGED,
        columns_added=tuple(after[name] for name in after if name not in before),
        columns_removed=tuple(before[name] for name in before if name not in after),
        columns_retyped=tuple(
            (before[name], after[name])
            for name in common
            if (before[name].type, before[name].unit) != (after[name].type, after[name].unit)
        ),
        reordered=common != [name for name in before if name in after],
        grain=None if old.grain == new.grain else (old.grain, new.grain),
    )
