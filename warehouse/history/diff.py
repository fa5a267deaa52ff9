"""Comparison of two builds or exports: tables, columns, rows by grain, totals, origins of changes; as text and as JSON.

Tables whose parts have equal content hashes are equal and never read. Of other tables, only the different parts are
read. Rows are matched by grain. Without a grain, or if it is not unique, whole rows are compared: rows are then added
or removed, never changed. One FULL JOIN gives a temporary table of the different rows, from which all else is read.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from warehouse.base.errors import WarehouseError
from warehouse.base.sql_text import identifier
from warehouse.base.startup import duckdb
from warehouse.base.text import JOINED, few, grouped, joined, on_one_line, plural, wrapped
from warehouse.engine.duckdb_errors import sentence
from warehouse.history.sides import ORIGINS, RAW, Origin, Pair, Side, Table, Trace
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import scratch_folder

EQUAL, ADDED, REMOVED, CHANGED = "equal", "added", "removed", "changed"


@dataclass(frozen=True)
class TableDiff:
    """Comparison of one table."""

    name: str
    change: str
    """`equal`, `added`, `removed` or `changed`."""
    contract: tuple[str, ...] = ()
    """Lines of the contract (`- column speed BIGINT`) that are gone (-) or new (+), in a table of both sides."""
    rows: RowDiff | None = None
    """None if the rows are known to be equal without reading them."""
    rewritten: bool = False
    """True if parts have different bytes but equal rows."""
    origins: tuple[Origin, ...] = ()
    """Origins of the change, if requested."""


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
        """Tables with other columns or rows; descriptions and bytes of the other tables may differ."""
        return tuple(table for table in self.tables if table.change != EQUAL)


def diff(
    old: Side,
    new: Side,
    *,
    examples: int = 3,
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
        The sides, from `warehouse.history.sides.find`.
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
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **({"memory_limit": memory} if memory else {}),
        **({"threads": threads} if threads else {}),
    }
    with (
        scratch_folder("diff") as spill,
        duckdb.connect(":memory:", config=config | {"temp_directory": str(spill)}) as connection,
    ):
        pair = Pair(connection, old, new)
        held = {*pair.before, *pair.after}
        # An export may hold few tables: the others are not gone.
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


def _table(connection: duckdb.DuckDBPyConnection, name: str, pair: Pair, examples: int) -> TableDiff:
    old, new = pair.before.get(name), pair.after.get(name)
    try:
        if old is None or new is None:
            old_rows, new_rows = (_sums(connection, table, ())[0] if table else 0 for table in (old, new))
            rows = RowDiff(old_rows, new_rows, added=new_rows, removed=old_rows)
            return TableDiff(name, ADDED if new else REMOVED, rows=rows)
        moved = pair.moved(name)
        found = None if moved == frozenset() else compare_rows(connection, old, new, moved, examples)
    except duckdb.Error as error:
        raise WarehouseError(
            f"{name} cannot be compared: {sentence(error)}",
            hint="warehouse verify tells whether all parts are there and whole",
        ) from error
    contract = tuple(line for line in difflib.ndiff(old.contract, new.contract) if line[0] in "+-")
    is_equal = not contract and (found is None or found.is_equal)
    rewritten = is_equal and found is not None and old.has_parts and new.has_parts
    return TableDiff(name, EQUAL if is_equal else CHANGED, contract, found, rewritten)


_BROKEN = ("DOUBLE", "FLOAT")
_NUMBERS = ("BIGINT", "INTEGER", "SMALLINT", "HUGEINT", "DECIMAL", *_BROKEN)
_DIGITS = 12
"""Digits of a sum of DOUBLE values. Later digits depend on the order of addition."""
_CHANGES = {"changed": "o IS NOT NULL AND n IS NOT NULL", "removed": "n IS NULL", "added": "o IS NULL"}
"""Condition of each kind of change: `o` and `n` are the row before and after."""


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
    totals: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    """Sum of each column before and after, where it differs."""
    examples: tuple[Example, ...] = ()

    @property
    def is_equal(self) -> bool:
        """True if no row is added, removed or changed."""
        return not (self.added or self.removed or self.changed)


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
    # Each build has checked that its grains are unique, so the check need not run again.
    has_same_parts = old.has_parts and new.has_parts and old.partition == new.partition
    is_checked = has_same_parts and old.grain == new.grain == key and set(new.partition) <= set(types)  # by builds
    if key and not is_checked and not all(_is_unique(connection, key, rows) for rows in sides):
        key = ()
    matched = list(dict.fromkeys([*key, *(new.partition if is_checked else ())])) or list(types)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE differing AS {_differing(sides, types, key, matched)}")
    # Without a key no two rows belong together, so no cell has changed.
    cells = [name for name in types if name not in key] if key else []
    wanted = [*_CHANGES.values(), *(f"{_CHANGES['changed']} AND {_differs(name)}" for name in cells)]
    counted = ", ".join(f"count(*) FILTER ({condition})" for condition in wanted)
    changed, removed, added, *counts = connection.execute(f"SELECT {counted} FROM differing").fetchall()[0]
    summed = [name for name, kinds in types.items() if all(map(_is_number, kinds)) and name not in key]
    (rows_before, *one), (rows_after, *other) = (_sums(connection, table, summed) for table in (old, new))
    totals = zip(summed, zip(one, other, strict=True), strict=True)
    return RowDiff(
        rows_before,
        rows_after,
        added,
        removed,
        changed,
        key,
        cells={name: count for name, count in zip(cells, counts, strict=True) if count},
        totals={name: both for name, both in totals if both[0] != both[1] and (changed or removed or added)},
        examples=tuple(_examples(connection, types, key, examples)),
    )


def _is_unique(connection: duckdb.DuckDBPyConnection, key: Sequence[str], rows: str) -> bool:
    row = ", ".join(map(identifier, key))
    # A row counts even if one of its columns is NULL.
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
    plain = kinds[0] == kinds[1] or all(map(_is_number, kinds))
    return identifier(name) if plain else f"CAST({identifier(name)} AS VARCHAR)"


def _examples(
    connection: duckdb.DuckDBPyConnection, types: Mapping[str, object], key: Sequence[str], limit: int
) -> Iterator[Example]:
    """Yield the first rows of each kind of change, sorted by key."""
    order = ", ".join(f"coalesce(o.{identifier(name)}, n.{identifier(name)})" for name in key or types)
    for change, condition in _CHANGES.items():
        asked = f"SELECT o, n FROM differing WHERE {condition} ORDER BY {order} LIMIT {limit:d}"
        for before, after in connection.execute(asked).fetchall():
            old, new = ({name: _cell(value) for name, value in (row or {}).items()} for row in (before, after))
            cells = {name: (old.get(name), new.get(name)) for name in types if name not in key}
            if change == "changed":
                cells = {name: pair for name, pair in cells.items() if pair[0] != pair[1]}
            yield Example(change, {name: (old or new)[name] for name in key}, cells)


def _cell(value: object) -> object:
    """Return a value; as text if it may be or hold NaN, which JSON lacks and which differs from itself."""
    is_text = isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value))
    return str(value) if is_text else value


def _is_number(kind: str) -> bool:
    return kind.partition("(")[0] in _NUMBERS


def _sums(connection: duckdb.DuckDBPyConnection, table: Table, names: Sequence[str]) -> list[Any]:
    """Return the number of rows, and the sum of each column over the whole table."""
    kinds = {column.name: column.type for column in table.columns}
    # Kahan's sum: a plain one depends on the order of rows in more digits than are cut off.
    adding = [f"{'fsum' if kinds[name] in _BROKEN else 'sum'}({identifier(name)})" for name in names]
    row = connection.execute(f"SELECT {', '.join(['count(*)', *adding])} FROM ({table.select()})").fetchall()[0]
    return [_cell(float(f"{value:.{_DIGITS}g}")) if isinstance(value, float) else value or 0 for value in row]


_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
_SHOWN_FILES = 5


def as_lines(comparison: Comparison) -> list[str]:
    """Return a paragraph for each different table, and one line for all equal tables."""
    lines = [
        f"{word}    {side.label}, "
        + (f"build {side.build}" if side.is_export else f"published {side.published_utc} UTC")
        for word, side in (("Old", comparison.old), ("New", comparison.new))
    ]
    shown = [table for table in comparison.tables if table.change != EQUAL or table.origins]
    equal = [table for table in comparison.tables if table.change == EQUAL]
    lines += [*paragraphs(shown), ""] if shown else []
    if comparison.differing:
        lines.append(f"{plural(len(equal), 'more table')} equal")
    else:
        lines.append(f"Equal  {plural(len(equal), 'table')}: the same columns and rows")
        if len({side.build for side in (comparison.old, comparison.new) if not side.is_export}) == 2:
            lines.append("       Their ids differ: descriptions do, or the bytes of parts.")
    if rewritten := [table.name for table in equal if table.rewritten]:
        lines += lines_of(f"the same rows in other bytes: {', '.join(rewritten)}", "  ")
    if comparison.left_out:
        lines.append(f"{plural(len(comparison.left_out), 'table')} not in the export, not compared")
    return [on_one_line(line) for line in lines]


def paragraphs(tables: Sequence[TableDiff]) -> list[str]:
    """Return a paragraph for each different table, then the numbered origins of changes."""
    numbers: dict[Origin, int] = {}
    lines = []
    for table in tables:
        lines += ["", *_table_lines(table)]
        named = [(one.through, numbers.setdefault(replace(one, through=()), len(numbers) + 1)) for one in table.origins]
        for through, found in grouped(named).items():
            way = f" through {', '.join(through)}" if through else ""
            lines += lines_of(f"  from {' '.join(f'[{number}]' for number in found)}{way}", "      ")
    lines += [""] if numbers else []
    for origin, number in numbers.items():
        lines += _origin(origin, number)
    return lines


def _table_lines(table: TableDiff) -> Iterator[str]:
    yield from lines_of(f"{table.name}: {', '.join(_summary(table))}")
    if table.change != CHANGED:
        return
    for line in table.contract:
        yield from lines_of(f"  {line}", "      ")
    if table.rows:
        yield from _column_lines(table.rows)
        for example in table.rows.examples:
            yield from lines_of(f"  {_SIGNS[example.change]} {_example(example)}", "      ")


def _summary(table: TableDiff) -> list[str]:
    rows = table.rows
    if rows is None:
        return ["other columns or grain, the same rows"]
    if table.change == EQUAL:
        return [f"the same {plural(rows.new, 'row')} in other bytes"]
    if table.change != CHANGED:
        return [table.change, plural(rows.new or rows.old, "row")]
    texts = [plural(rows.old, "row") if rows.old == rows.new else f"{rows.old:,} → {plural(rows.new, 'row')}"]
    counts = ((rows.added, ADDED), (rows.removed, REMOVED), (rows.changed, CHANGED))
    texts += [f"{count:,} {word}" for count, word in counts if count]
    return texts if not rows.is_equal else [*texts, "all the same in the columns that both have"]


def _column_lines(rows: RowDiff) -> Iterator[str]:
    """Yield the changed columns and the different totals."""
    for name in dict.fromkeys([*rows.cells, *rows.totals]):
        texts = [f"in {plural(rows.cells[name], 'row')}"] if name in rows.cells else []
        texts += [f"total {' → '.join(map(_sum, rows.totals[name]))}"] if name in rows.totals else []
        yield from lines_of(f"  {name}: {', '.join(texts)}", "      ")


def _example(example: Example) -> str:
    key = ", ".join(map(_shown, example.key.values()))
    if example.change == CHANGED:
        cells = [f"{name} {_shown(old)} → {_shown(new)}" for name, (old, new) in example.cells.items()]
        return f"{key}: {', '.join(cells)}"
    side = 1 if example.change == ADDED else 0
    return key or ", ".join(f"{name} {_shown(pair[side])}" for name, pair in example.cells.items())


def _origin(origin: Origin, number: int) -> Iterator[str]:
    if origin.kind == RAW:
        yield f"[{number}] {plural(len(origin.files), 'raw file')} that {origin.name} reads"
    else:
        yield from lines_of(f"[{number}] {ORIGINS[origin.kind].format(name=origin.name)}")
    yield from (f"    {_SIGNS[change]} {path}" for change, path in origin.files[:_SHOWN_FILES])
    if len(origin.files) > _SHOWN_FILES:
        yield f"    … {plural(len(origin.files) - _SHOWN_FILES, 'more file')}: --json lists them"


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _sum(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else _shown(value)


def lines_of(text: str, indent: str = "    ") -> list[str]:
    """Return a text as wrapped lines, without breaking names or commands."""
    lines = wrapped(joined(on_one_line(text)), 80, indent=indent)
    return [line.rstrip("\n").replace(JOINED, " ") for line in lines]


def as_json(comparison: Comparison) -> dict[str, object]:
    """Return the comparison as JSON-able values; equal tables only by name."""
    sides = {
        word: {"name": side.label, "build": side.build, "published_utc": side.published_utc or None}
        for word, side in (("old", comparison.old), ("new", comparison.new))
    }
    return {
        "equal": not comparison.differing,
        **sides,
        "differing": [asdict(table) for table in comparison.differing],
        "same": [table.name for table in comparison.tables if table.change == EQUAL],
        "rewritten": [table.name for table in comparison.tables if table.rewritten],
        "not_compared": list(comparison.left_out),
    }
