"""Answers as tables for people: numbers with units, selected columns, shared values above the table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TextIO

from warehouse.base.startup import regex
from warehouse.reader.readable import header_unit, readable
from warehouse.reader.text_table import escape, make_console, print_rows, wrapped
from warehouse.reader.value_text import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.reader.result import Result, Row
    from warehouse.reader.value_text import Column

SHARED = {"cluster": "cluster", "hour_utc": "hour"}
"""Columns that move above the table if all rows share one value, and their labels there."""
_ARROWS = {"desc": "↓", "asc": "↑"}
_DIRECTIONS = {"desc": "largest first", "asc": "smallest first"}
_BYTES_IN_TEXT = regex(r"(?<![\w.])(\d{4,}) B\b")
"""Exact numbers of bytes in a sentence: `in 6785715334821 B`."""


class _Shown(NamedTuple):
    column: Column
    values: list[str | None]


def write_table(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> int:
    """Write a result as a table and return the number of rows written; columns that do not fit are named below."""
    if result.is_plan:
        rows = list(result.rows)
        stream.writelines(f"{escape(row[-1] or '', keep_lines=True).rstrip()}\n" for row in rows)
        return len(rows)
    rows = result.first_rows(limit)
    if result.units is None:
        print_rows(result.columns, rows, stream, width=width, all_by=result.shows_all)
    else:
        print_answer(result, rows, stream, width=width)
    return len(rows)


def print_answer(result: Result, rows: Sequence[Row], stream: TextIO, *, width: int | None = None) -> None:
    """Print the rows of a result prepared by `for_people`."""
    query = result.query
    names = [column.name for column in result.columns]
    by, _, direction = (query.ranked if query else "").rpartition(" ")
    ranks = names.index(by) if by in names else -1
    values = people_values(result.columns, result.units or (), rows, ranks=ranks)
    shown = [
        _Shown(column._replace(name=column.name + header_unit(unit)), texts)
        for column, unit, texts in zip(result.columns, result.units or (), values, strict=True)
    ]
    above = [
        f"{called} {_hour(value) if name == 'hour_utc' else value}"
        for name, called in SHARED.items()
        if name in names and (value := _same([row[names.index(name)] for row in rows])) is not None
    ]
    in_table = [at for at, name in enumerate(names) if not (name in SHARED and _is_same(rows, at))]
    if not in_table:
        in_table, above = list(range(len(names))), []
    hidden: list[str] = []
    if query and query.answer:
        hidden = [names[at] for at in in_table if names[at] not in query.answer]
        in_table = sorted(
            (at for at in in_table if names[at] in query.answer), key=lambda at: query.answer.index(names[at])
        )
    if by and ranks not in in_table:
        above.append(f"by {by}, {_DIRECTIONS[direction]}")
    elif by:
        one = shown[ranks]
        shown[ranks] = one._replace(column=one.column._replace(name=f"{one.column.name} {_ARROWS[direction]}"))
    if above and rows:
        stream.writelines(wrapped(" · ".join(above), make_console(stream, width).width))
    print_rows(
        [shown[at].column for at in in_table],
        [tuple(shown[at].values[number] for at in in_table) for number in range(len(rows))],
        stream,
        width=width,
        all_by=result.shows_all,
        hidden=hidden if rows else (),
        whole=bool(query and query.answer),
    )


def people_values(
    columns: Sequence[Column], units: Sequence[str | None], rows: Sequence[Row], *, ranks: int = -1
) -> list[list[str | None]]:
    """Return the values of each column: readable numbers, and texts with readable numbers of bytes.

    `ranks` is the position of the column that orders the rows: its neighbors with different values differ as text.
    """
    return [
        readable([row[at] for row in rows], unit, exact=column.type.lower() in INTEGERS, distinct=at == ranks)
        if column.kind == "number"
        else [row[at] and _BYTES_IN_TEXT.sub(_with_unit, row[at] or "") for row in rows]
        for at, (column, unit) in enumerate(zip(columns, units, strict=True))
    ]


def _with_unit(number: re.Match[str]) -> str:
    return (readable([number[1]], "B")[0] or "").strip()


def _is_same(rows: Sequence[Row], at: int) -> bool:
    return _same([row[at] for row in rows]) is not None


def _same(values: Sequence[str | None]) -> str | None:
    return values[0] if values and len(set(values)) == 1 else None


def _hour(text: str) -> str:
    return f"{text.removesuffix(':00')} UTC"
