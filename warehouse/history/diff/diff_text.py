"""Comparison as text, in lines of 80 characters (paths may be longer), and as JSON-able values."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from warehouse.base.next_step import JOINED, joined
from warehouse.base.text import on_one_line, plural
from warehouse.history.diff import origins
from warehouse.history.diff.compare import ADDED, CHANGED, EQUAL, REMOVED, Comparison, TableDiff
from warehouse.history.diff.origins import Origin
from warehouse.history.diff.row_diff import Example, RowDiff
from warehouse.history.diff.sides import Side
from warehouse.project.contract import Column

WIDTH = 80
_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
_SHOWN_CELLS = 4
_SHOWN_FILES = 5
_ORIGIN_TEXTS = {
    origins.SQL: "the SQL of {name}",
    origins.CONTRACT: "the columns or grain of {name}",
    origins.ENGINE: "another engine made {name}",
    origins.VOLATILE: "{name} is other rows at any time",
    origins.UNSTABLE: "{name}: the same inputs and SQL gave other rows",
    origins.REFERENCE: "the reviewed table {name}",
    origins.NEW: "{name} is new",
    origins.GONE: "{name} is gone",
    origins.UNRECORDED: "not recorded: what {name} was made from, as state.sqlite was lost",
}


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
        builds = [side.build for side in (comparison.old, comparison.new) if not side.is_export]
        if len(set(builds)) == 2:
            lines.append("       Their ids differ: descriptions do, or the bytes of parts.")
    if rewritten := [table.name for table in equal if table.rewritten]:
        lines += wrapped(f"the same rows in other bytes: {', '.join(rewritten)}", "  ")
    if comparison.left_out:
        lines.append(f"{plural(len(comparison.left_out), 'table')} not in the export, not compared")
    return "\n".join(on_one_line(line) for line in lines)


def _side(word: str, side: Side) -> str:
    published = f", published {side.published_utc} UTC" if side.published_utc else ""
    build = f", build {side.build}" if side.is_export and side.build else ""
    return f"{word}    {side.label}{published}{build}"


def paragraphs(tables: Sequence[TableDiff]) -> list[str]:
    """Return a paragraph for each different table, then the numbered origins of changes."""
    numbers: dict[Origin, int] = {}
    lines = []
    for table in tables:
        lines += ["", *_table(table)]
        ways: dict[str, list[str]] = {}
        for origin in table.origins:
            number = numbers.setdefault(replace(origin, through=()), len(numbers) + 1)
            ways.setdefault(", ".join(origin.through), []).append(f"[{number}]")
        for way, origin_numbers in ways.items():
            lines += wrapped(f"  from {' '.join(origin_numbers)}{' through ' * bool(way)}{way}", "      ")
    if numbers:
        lines.append("")
    for origin, number in numbers.items():
        lines += _origin(origin, number)
    return lines


def _table(table: TableDiff) -> list[str]:
    lines = [*wrapped(f"{table.name}: {', '.join(_summary(table))}")]
    if table.change == CHANGED:
        lines += [f"  + column {_declared(column)}" for column in table.columns_added]
        lines += [f"  - column {_declared(column)}" for column in table.columns_removed]
        lines += [f"  ~ column {_declared(old)} → {_declared(new, name=False)}" for old, new in table.columns_retyped]
        lines += ["  ~ the columns come in another order"] if table.reordered else []
        if table.grain:
            old, new = (f"({', '.join(grain)})" for grain in table.grain)
            lines += wrapped(f"  ~ grain {old} → {new}")
        if table.rows:
            lines += _columns(table.rows)
            for example in table.rows.examples:
                lines += _example(example)
    return lines


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


def _declared(column: Column, *, name: bool = True) -> str:
    unit = f" [{column.unit}]" if column.unit else ""
    return f"{column.name} {column.type}{unit}" if name else f"{column.type}{unit}"


def _columns(rows: RowDiff) -> Iterator[str]:
    """Yield the changed columns and the different totals."""
    totals = {total.column: total for total in rows.totals if total.old != total.new}
    for name in dict.fromkeys([*rows.cells, *totals]):
        text = f"  {name}:"
        if name in rows.cells:
            text += f" in {plural(rows.cells[name], 'row')}"
        if name in totals:
            text += f"{',' * (name in rows.cells)} total {_sum(totals[name].old)} → {_sum(totals[name].new)}"
        yield from wrapped(text, "      ")


def _example(example: Example) -> Iterator[str]:
    sign = _SIGNS[example.change]
    key = [_shown(value) for value in example.key.values()]
    if example.change == CHANGED:
        yield from wrapped(f"  {sign} {', '.join(key)}", "      ")
        cells = [f"{name} {_shown(old)} → {_shown(new)}" for name, (old, new) in example.cells.items()]
    else:
        side = 1 if example.change == ADDED else 0
        cells = [f"{name} {_shown(pair[side])}" for name, pair in example.cells.items()]
        yield from wrapped(f"  {sign} {', '.join(key or cells)}", "      ")
        return
    for cell in cells[:_SHOWN_CELLS]:
        yield from wrapped(f"      {cell}", "        ")
    if len(cells) > _SHOWN_CELLS:
        yield f"      … {plural(len(cells) - _SHOWN_CELLS, 'more column')}"


def _origin(origin: Origin, number: int) -> Iterator[str]:
    if origin.kind == origins.RAW:
        yield f"[{number}] {plural(len(origin.files), 'raw file')} that {origin.name} reads"
    else:
        yield from wrapped(f"[{number}] {_ORIGIN_TEXTS[origin.kind].format(name=origin.name)}")
    for change, path in origin.files[:_SHOWN_FILES]:
        yield f"    {_SIGNS[change]} {path}"
    if len(origin.files) > _SHOWN_FILES:
        yield f"    … {plural(len(origin.files) - _SHOWN_FILES, 'more file')}: --json lists them"


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


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
    return {
        "equal": comparison.is_equal,
        "old": _side_json(comparison.old),
        "new": _side_json(comparison.new),
        "differing": [_table_json(table) for table in comparison.differing],
        "same": [table.name for table in comparison.tables if table.change == EQUAL],
        "rewritten": [table.name for table in comparison.tables if table.rewritten],
        "not_compared": list(comparison.left_out),
    }


def _side_json(side: Side) -> dict[str, object]:
    return {"name": side.label, "build": side.build, "published_utc": side.published_utc or None}


def _table_json(table: TableDiff) -> dict[str, object]:
    values = _plain(asdict(table))
    assert isinstance(values, dict)
    return values


def _plain(value: object) -> object:
    """Return a JSON-able value; values of other types as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
