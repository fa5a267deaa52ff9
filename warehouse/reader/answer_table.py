"""Answers for people, with units: as a table, or as lines, one column per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from warehouse.base.text import wrapped
from warehouse.reader.readable import header_unit, readable
from warehouse.reader.text_table import escape, print_rows, width_of
from warehouse.reader.value_text import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.reader.result import Result, Row
    from warehouse.reader.value_text import Column

SHARED = {"cluster": "cluster", "hour_utc": "hour"}
"""Columns that move above the table if all rows share one value, and their labels there."""
_ARROWS = {"desc": "↓", "asc": "↑"}
_DIRECTIONS = {"desc": "largest first", "asc": "smallest first"}
_AT_LEAST = 20
"""Minimum width of a value in lines, however long the column names are."""


def write_table(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> int:
    """Write a result as a table and return the number of rows written; columns that do not fit are named below.

    Of columns that the named query chose, the last texts then stand below their row.
    """
    rows = list(result.rows) if result.is_plan else result.first_rows(limit)
    if result.is_plan:
        stream.writelines(f"{escape(row[-1] or '', keep_lines=True).rstrip()}\n" for row in rows)
    else:
        _print_answer(result, rows, stream, width_of(stream, width))
    return len(rows)


def write_lines(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> int:
    """Write each row as a block of `column  value` lines and return the number of rows written."""
    rows = result.first_rows(limit)
    _print_lines(*_for_people(result, rows), stream, width_of(stream, width))
    return len(rows)


def people_values(
    columns: Sequence[Column], units: Sequence[str | None], rows: Sequence[Row]
) -> list[list[str | None]]:
    """Return the values of each column, with readable numbers."""
    return [
        readable([row[at] for row in rows], unit, exact=column.type.lower() in INTEGERS)
        if column.kind == "number"
        else [row[at] for row in rows]
        for at, (column, unit) in enumerate(zip(columns, units, strict=True))
    ]


def _for_people(result: Result, rows: Sequence[Row]) -> tuple[list[Column], list[Row]]:
    """Return columns with units in their headers, and rows with readable numbers."""
    columns = [
        column._replace(name=column.name + header_unit(unit))
        for column, unit in zip(result.columns, result.units, strict=True)
    ]
    return columns, list(zip(*people_values(result.columns, result.units, rows), strict=True))


def _print_answer(result: Result, rows: Sequence[Row], stream: TextIO, width: int) -> None:
    """Print the rows of a result prepared by `for_people`."""
    names = [column.name for column in result.columns]
    columns, texts = _for_people(result, rows)
    shared = [name for name in SHARED if name in names and _is_same(rows, names.index(name))]
    above = [f"{SHARED[name]} {_shared(name, rows[0][names.index(name)])}" for name in shared]
    rest = [name for name in names if name not in shared]
    if not rest:
        rest, above = names, []
    answer = result.query.answer if result.query else ()
    shown = [name for name in answer if name in rest] or rest
    by, _, direction = (result.query.ranked if result.query else "").rpartition(" ")
    if by in shown:
        at = names.index(by)
        columns[at] = columns[at]._replace(name=f"{columns[at].name} {_ARROWS[direction]}")
    elif by:
        above.append(f"by {by}, {_DIRECTIONS[direction]}")
    if above and rows:
        stream.writelines(wrapped(" · ".join(above), width))
    places = [names.index(name) for name in shown]
    columns, texts = [columns[at] for at in places], [tuple(row[at] for at in places) for row in texts]
    hidden = [name for name in rest if name not in shown] if rows else []
    print_rows(columns, texts, stream, width=width, all_by=result.shows_all, hidden=hidden, whole=bool(answer and rows))


def _print_lines(columns: Sequence[Column], rows: Sequence[Row], stream: TextIO, width: int) -> None:
    """Print each row as a block of lines; a long value wraps, aligned with its start."""
    names = [escape(column.name) for column in columns]
    widest = max((len(name) for name in names), default=0)
    room = max(width - widest - 2, _AT_LEAST)
    for number, row in enumerate(rows, start=1):
        stream.write(f"── row {number} " + "─" * 20 + "\n")
        for name, value in zip(names, row, strict=True):
            first, *others = wrapped("NULL" if value is None else escape(value), room, indent="")
            stream.write(f"{name:<{widest}}  {first}".rstrip() + "\n")
            stream.writelines(f"{'':<{widest}}  {line}" for line in others)


def _is_same(rows: Sequence[Row], at: int) -> bool:
    values = {row[at] for row in rows}
    return len(values) == 1 and None not in values


def _shared(name: str, value: str | None) -> str:
    return f"{(value or '').removesuffix(':00')} UTC" if name == "hour_utc" else value or ""
