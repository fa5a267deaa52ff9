"""Format `lines`: one column per line, for tables wider than any terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from warehouse.reader.answer_table import people_values
from warehouse.reader.readable import header_unit
from warehouse.reader.text_table import escape, make_console, wrapped

if TYPE_CHECKING:
    from warehouse.reader.result import Result

_AT_LEAST = 20
"""Minimum width of a value, however long the column names are."""


def write_lines(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> int:
    """Write each row as a block of `column  value` lines and return the number of rows written.

    Long values wrap; continuation lines align with the start of the value.
    """
    from rich.cells import cell_len

    names = [escape(column.name) for column in result.columns]
    shown = result.first_rows(limit)
    if result.units is not None:
        shown = list(zip(*people_values(result.columns, result.units or (), shown), strict=True))
        names = [f"{name}{header_unit(unit)}" for name, unit in zip(names, result.units, strict=True)]
    widest = max((len(name) for name in names), default=0)
    room = max(make_console(stream, width).width - widest - 2, _AT_LEAST)
    for number, row in enumerate(shown, start=1):
        stream.write(f"── row {number} " + "─" * 20 + "\n")
        for name, value in zip(names, row, strict=True):
            text = "NULL" if value is None else escape(value.strip() if result.units is not None else value)
            first, *others = wrapped(text, room, indent="") if cell_len(text) > room else [text]
            stream.write(f"{name:<{widest}}  {first}".rstrip() + "\n")
            stream.writelines(f"{'':<{widest}}  {line}" for line in others)
    return len(shown)
