"""Rows written one column a line: for tables wider than any terminal."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TextIO

from warehouse.serve.table import escape

if TYPE_CHECKING:
    from warehouse.serve.result import Result


def write_expanded(result: Result, stream: TextIO, limit: int | None) -> int:
    """Write each row as a block of `column  value` lines, and say how many rows were written."""
    widest = max((len(column.name) for column in result.columns), default=0)
    rows = list(islice(result.rows, None if limit is None else limit + 1))
    shown = rows[:limit]
    for number, row in enumerate(shown, start=1):
        stream.write(f"── row {number} " + "─" * 20 + "\n")
        for column, value in zip(result.columns, row, strict=True):
            stream.write(f"{column.name:<{widest}}  {'NULL' if value is None else escape(value)}\n")
    if len(rows) > len(shown):
        stream.write(f"{result.count():,} rows, {len(shown):,} shown\n")
    elif not rows:
        stream.write("no rows\n")
    return len(shown)
