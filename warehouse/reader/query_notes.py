"""Sentences in the header of a named query: reasons of NULLs and of empty answers, and notes below a table.

A sentence is a text, or a SELECT that returns it, or NULL for none. The SELECT may use the parameters of the query, and
read the rows of the answer as `answer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.base.startup import regex
from warehouse.reader.guard import check_read_only
from warehouse.reader.result import execute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.result import Result

_READS_ANSWER = regex(r"\b(?:FROM|JOIN) answer\b")


def notes_below(result: Result) -> Iterator[str]:
    """Yield the lines below the table of a named query: why columns that it shows are NULL, then its notes."""
    query, shown = result.query, result.shown
    if query is None:
        return

    def sentence(text: str) -> str | None:
        return sentence_of(result.connection, result.statement, result.parameters, text)

    for name in shown:
        if name in result.nulls and (text := sentence(query.unknown.get(name, ""))):
            yield f"{name} NULL: {text}"
    columns = {column.name for column in result.columns}
    for name, note in query.notes.items():
        if (name in shown or name not in columns) and (text := sentence(note)):
            yield f"{name if name in columns else name.replace('_', ' ')}: {text}"


def sentence_of(
    connection: duckdb.DuckDBPyConnection, statement: Statement, parameters: Mapping[str, object], text: str
) -> str | None:
    """Return a sentence of a query's header, or None if there is none or its SELECT fails or is interrupted.

    Parameters
    ----------
    connection
        Connection to the warehouse; nothing else runs on it.
    statement
        SELECT of the named query.
    parameters
        Values of its parameters.
    text
        Text or SELECT in the header.
    """
    if not text.startswith("SELECT "):
        return text or None
    if _READS_ANSWER.search(text):
        text = f"WITH answer AS ({statement.text}\n) {text}"
    from warehouse.base.startup import duckdb

    try:
        [asked] = check_read_only(connection, text)
        row = execute(connection, asked.text, {name: parameters[name] for name in asked.parameters}).fetchone()
    except (QueryError, duckdb.Error):
        return None
    return str(row[0]) if row and row[0] is not None else None
