"""Explanations of an answer: why it is empty, and the number of all its rows.

An explanation never costs the answer. It begins when the whole answer is written, has time of its own, and is left
out if it fails or takes too long.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TextIO

from warehouse.base.errors import QueryError
from warehouse.base.next_step import for_target
from warehouse.base.text import wrapped
from warehouse.reader.interrupt import interruptible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.result import Asked, Result

SECONDS = 5.0
"""Time for all explanations of a command."""


class Answer(NamedTuple):
    """Answer that is written: its statement, number of rows, and result if it was written as text."""

    statement: Statement
    rows: int
    result: Result | None


def explain(
    connection: duckdb.DuckDBPyConnection,
    answers: Sequence[Answer],
    asked: Asked,
    out: TextIO,
    err: TextIO,
    width: int | None = None,
) -> None:
    """Write what explains these answers: the number of rows to `out`, reasons to `err`.

    Parameters
    ----------
    connection
        Connection that ran the statements; all rows that are wanted were read.
    answers
        Answers in their order.
    asked
        Named query with its parameters.
    out, err
        Streams; they may be the same.
    width
        Characters per line; by default those of the stream's terminal.
    """
    from warehouse.base.startup import duckdb
    from warehouse.reader.text_table import width_of

    def write(lines: Iterator[str], label: str, stream: TextIO) -> None:
        is_log = stream is sys.stderr and not stream.isatty()
        with suppress(duckdb.Error, QueryError, MemoryError):
            for line in lines:
                text = for_target(f"{label}{line}", asked.target)
                stream.writelines([f"{text}\n"] if is_log else wrapped(text, width_of(stream, width)))
        stream.flush()

    def work() -> None:
        for number, one in enumerate(answers, start=1):
            label = f"statement {number}: " if len(answers) > 1 else ""
            write(_reason(connection, one, asked), label, err)
            write(_total(one), label, out)

    with suppress(TimeoutError):
        interruptible(connection, work, timeout=SECONDS)


def _reason(connection: duckdb.DuckDBPyConnection, answer: Answer, asked: Asked) -> Iterator[str]:
    """Yield why the answer is empty."""
    if not answer.rows:
        from warehouse.reader.why_empty import no_rows

        yield no_rows(connection, answer.statement, asked)


def _total(answer: Answer) -> Iterator[str]:
    """Yield the number of all rows if the table does not show all of them."""
    from warehouse.base.startup import duckdb

    if answer.result and answer.result.is_cut:
        try:
            total = f"{answer.result.count():,}"
        except (duckdb.Error, MemoryError):
            total = f"more than {answer.rows:,}"
        yield f"{total} rows, {answer.rows:,} shown"
