"""Comparison as text, in lines of 80 characters (paths may be longer), and as JSON-able values."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from warehouse.base.text import JOINED, grouped, joined, on_one_line, plural
from warehouse.history.diff.compare import ADDED, CHANGED, EQUAL, REMOVED, Comparison, Example, RowDiff, TableDiff
from warehouse.history.diff.origins import ORIGINS, RAW, Origin
from warehouse.history.diff.sides import Side
from warehouse.project.contract import Column

WIDTH = 80
_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
_SHOWN_FILES = 5


def as_text(comparison: Comparison) -> str:
    """Return a paragraph for each different table, and one line for all equal tables."""
    lines = [_side("Old", comparison.old), _side("New", comparison.new)]
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
        lines += wrapped(f"the same rows in other bytes: {', '.join(rewritten)}", "  ")
    if comparison.left_out:
        lines.append(f"{plural(len(comparison.left_out), 'table')} not in the export, not compared")
    return "\n".join(on_one_line(line) for line in lines)


def _side(word: str, side: Side) -> str:
    return f"{word}    {side.label}, " + (
        f"build {side.build}" if side.is_export else f"published {side.published_utc} UTC"
    )


def paragraphs(tables: Sequence[TableDiff]) -> list[str]:
    """Return a paragraph for each different table, then the numbered origins of changes."""
    numbers: dict[Origin, int] = {}
    lines = []
    for table in tables:
        lines += ["", *_table(table)]
        named = [(one.through, numbers.setdefault(replace(one, through=()), len(numbers) + 1)) for one in table.origins]
        for through, found in grouped(named).items():
            way = f" through {', '.join(through)}" if through else ""
            lines += wrapped(f"  from {' '.join(f'[{number}]' for number in found)}{way}", "      ")
    lines += [""] if numbers else []
    for origin, number in numbers.items():
        lines += _origin(origin, number)
    return lines


def _table(table: TableDiff) -> Iterator[str]:
    yield from wrapped(f"{table.name}: {', '.join(_summary(table))}")
    if table.change != CHANGED:
        return
    yield from (f"  + column {column.name} {_declared(column)}" for column in table.columns_added)
    yield from (f"  - column {column.name} {_declared(column)}" for column in table.columns_removed)
    yield from (f"  ~ column {old.name} {_declared(old)} → {_declared(new)}" for old, new in table.columns_retyped)
    if table.reordered:
        yield "  ~ the columns come in another order"
    if table.grain:
        yield from wrapped("  ~ grain " + " → ".join(f"({', '.join(grain)})" for grain in table.grain))
    if table.rows:
        yield from _columns(table.rows)
        for example in table.rows.examples:
            yield from wrapped(f"  {_SIGNS[example.change]} {_example(example)}", "      ")


def _summary(table: TableDiff) -> list[str]:
    rows = table.rows
    if rows is None:
        return ["other columns, the same rows"]
    if table.change == EQUAL:
        return [f"the same {plural(rows.new, 'row')} in other bytes"]
    if table.change != CHANGED:
        return [table.change, plural(rows.new or rows.old, "row")]
    texts = [plural(rows.old, "row") if rows.old == rows.new else f"{rows.old:,} → {plural(rows.new, 'row')}"]
    counts = ((rows.added, ADDED), (rows.removed, REMOVED), (rows.changed, CHANGED))
    texts += [f"{count:,} {word}" for count, word in counts if count]
    return texts if not rows.is_equal else [*texts, "all the same in the columns that both have"]


def _declared(column: Column) -> str:
    return column.type + (f" [{column.unit}]" if column.unit else "")


def _columns(rows: RowDiff) -> Iterator[str]:
    """Yield the changed columns and the different totals."""
    totals = {one.column: f"total {_sum(one.old)} → {_sum(one.new)}" for one in rows.totals if one.old != one.new}
    for name in dict.fromkeys([*rows.cells, *totals]):
        texts = [f"in {plural(rows.cells[name], 'row')}"] if name in rows.cells else []
        texts += [totals[name]] if name in totals else []
        yield from wrapped(f"  {name}: {', '.join(texts)}", "      ")


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
        yield from wrapped(f"[{number}] {ORIGINS[origin.kind].format(name=origin.name)}")
    yield from (f"    {_SIGNS[change]} {path}" for change, path in origin.files[:_SHOWN_FILES])
    if len(origin.files) > _SHOWN_FILES:
        yield f"    … {plural(len(origin.files) - _SHOWN_FILES, 'more file')}: --json lists them"


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _sum(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else _shown(value)


def wrapped(text: str, indent: str = "    ") -> list[str]:
    """Return a text as wrapped lines, without breaking names or commands."""
    lines = textwrap.wrap(
        joined(on_one_line(text)), WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return [line.replace(JOINED, " ") for line in lines]


def as_json(comparison: Comparison) -> dict[str, object]:
    """Return the comparison as JSON-able values; equal tables only by name."""
    sides = {
        word: {"name": side.label, "build": side.build, "published_utc": side.published_utc or None}
        for word, side in (("old", comparison.old), ("new", comparison.new))
    }
    return {
        "equal": comparison.is_equal,
        **sides,
        "differing": [_plain(asdict(table)) for table in comparison.differing],
        "same": [table.name for table in comparison.tables if table.change == EQUAL],
        "rewritten": [table.name for table in comparison.tables if table.rewritten],
        "not_compared": list(comparison.left_out),
    }


def _plain(value: object) -> object:
    """Return a JSON-able value; values of other types as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    is_json = value is None or isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
    return value if is_json else str(value)
