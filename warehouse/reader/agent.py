"""Agent mode: answers and errors for programs that read text, as DuckDB's command line has since 2.0.

An answer is a Markdown table without padding, with type and unit in its header, and the number of rows below it. The
variables, their meaning and the form of a header are those of DuckDB (tools/shell/tests/test_agent_mode.py of its
repository, and https://duckdb.org/docs/preview/clients/cli/agent_mode).
"""

from __future__ import annotations

import json
import os
from itertools import islice
from typing import TYPE_CHECKING

from warehouse.reader.result import total
from warehouse.reader.units import COUNT, SHARE, column_meanings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.base.errors import WarehouseError
    from warehouse.reader.result import Result, Row

AGENT = "agent"
"""Name of the format."""
VARIABLES = ("AI_AGENT", "AGENT", "CLAUDECODE", "CODEX_CI", "CURSOR_AGENT", "GEMINI_CLI", "COPILOT_AGENT")
"""Variables that coding agents set for the commands that they run. An empty one does not count."""
SWITCH = "DUCKDB_AGENT_MODE"
"""Variable that switches the mode: 1 on, 0 off; any other value leaves it to the others."""
# With its notes, an answer through `warehouse mcp` then has at most 20,000 characters
# (warehouse/cli/agent_commands.py).
MOST_ROWS, MOST_CHARACTERS, MOST_IN_CELL = 200, 18_000, 500


def is_agent() -> bool:
    """Return True if the environment is that of a coding agent, or asks for agent mode."""
    switch = os.environ.get(SWITCH)
    return switch == "1" if switch in ("0", "1") else any(os.environ.get(name) for name in VARIABLES)


def agent_lines(result: Result, rows: Iterator[Row], limit: int | None, line: Callable[[Row], str]) -> Iterator[str]:
    """Yield the lines of an answer: the header, the rows, and the number of rows.

    Parameters
    ----------
    result
        The answer.
    rows
        Its rows.
    limit
        Number of rows; by default as many as fit into 200 rows and 18,000 characters. Up to 100,000 others are counted.
    line
        Function that writes the line of a row.
    """
    names = [column.name for column in result.columns]
    described = column_meanings(result.connection.cursor(), result.statement.tables, names)
    header = [f"{one.name}:{one.type}{_unit(unit)}" for one, (unit, _) in zip(result.columns, described, strict=True)]
    first = line(tuple(header))
    yield first
    yield "|" + "---|" * len(names) + "\n"
    shown = read = 0
    characters = len(first)
    for row in islice(rows, limit or MOST_ROWS):
        read += 1
        text = line(tuple(map(_cell, row)))
        characters += len(text)
        if limit is None and characters > MOST_CHARACTERS:
            break
        shown += 1
        yield text
    # The rows that did not fit are counted from the same stream: the query runs once.
    of = total(read, rows)
    yield f"first {shown:,} of {of} rows\n" if of != f"{shown:,}" else f"{shown:,} row{'' if shown == 1 else 's'}\n"


def error_line(error: WarehouseError) -> str:
    r"""Return an error as one line of JSON, with the keys of DuckDB, and with its place and hint if it has them.

    >>> from warehouse.base.errors import QueryError
    >>> error_line(QueryError("no table x", hint="nearest: y"))
    '{"exception_type": "Query", "exception_message": "no table x", "hint": "nearest: y"}\n'
    """
    found = {
        "exception_type": type(error).__name__.removesuffix("Error"),
        "exception_message": " ".join([error.message, *error.details]),
        "position": str(error.source[1]) if error.source else "",
        "place": str(error.place or ""),
        "hint": error.hint or "",
    }
    return json.dumps({key: text for key, text in found.items() if text}, ensure_ascii=False) + "\n"


def _unit(unit: str | None) -> str:
    return "" if unit in (None, COUNT) else " [share of 1]" if unit == SHARE else f" [{unit}]"


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    over = len(value) - MOST_IN_CELL
    return f"{value[:MOST_IN_CELL]}…(+{over:,} characters)" if over > 0 else value
