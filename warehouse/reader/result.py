"""Rows of a statement as exact text, streamed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from warehouse.reader.units import result_units
from warehouse.reader.value_text import Column, column, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query

Row = tuple[str | None, ...]

OPENING = "FROM (\n"
"""Text before a wrapped query; positions in engine errors are too high by its length."""
_BATCH = 2048  # rows of a vector of the engine
COUNTED = 100_000
"""Rows that are counted at most."""


class Result:
    """Columns and rows of a statement.

    The rows can be read once, and the connection must not run anything else meanwhile.
    """

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: Iterator[Row],
        connection: duckdb.DuckDBPyConnection,
        statement: Statement,
        parameters: Mapping[str, object],
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.connection = connection
        self.statement = statement
        self.parameters = parameters
        self.units: Sequence[str | None] = [None] * len(columns)
        """Units of the columns, if they are written for people."""
        self.query: Query | None = None
        """Named query that was run."""
        self.shows_all = "--format lines"
        """Option that shows the columns that a table leaves out."""
        self.is_cut = False
        """True if rows were left out of a table."""

    def first_rows(self, limit: int | None) -> list[Row]:
        """Read the rows for a table; record if rows are left out."""
        # One row more tells if rows are left out.
        rows = list(islice(self.rows, None if limit is None else limit + 1))
        self.is_cut = limit is not None and len(rows) > limit
        return rows[:limit]

    @property
    def is_plan(self) -> bool:
        """Return True if this is the output of EXPLAIN: text of many lines, not a table."""
        return self.statement.kind == "EXPLAIN"


def open_result(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    parameters: Mapping[str, object] | None = None,
    *,
    nested_as_json: bool = False,
) -> Result:
    """Start a checked statement and return its result.

    Parameters
    ----------
    connection
        Connection to a warehouse; it must not run anything else until the rows are read.
    statement
        Statement from `warehouse.reader.guard.check_read_only`.
    parameters
        Values of its `$name` parameters; unused ones are ignored.
    nested_as_json
        Return lists and structs as JSON instead of the engine's text.
    """
    used = {name: value for name, value in (parameters or {}).items() if name in statement.parameters}
    if statement.kind != "SELECT":
        cursor = execute(connection, statement.text, used)
        columns = tuple(column(name, kind, nested_as_json=False) for name, kind, *_ in cursor.description)
        return Result(columns, map(_shown, _batches(cursor)), connection, statement, used)
    # Types come first: they decide how the second run writes values as text.
    cursor = execute(connection, wrap(statement, "LIMIT 0"), used)
    types = [(name, kind) for name, kind, *_ in cursor.description]
    texts = [
        text_of(f"#{position}", kind, nested_as_json=nested_as_json)
        for position, (_, kind) in enumerate(types, start=1)
    ]
    cursor = execute(connection, wrap(statement, f"SELECT {', '.join(texts)}"), used)
    columns = tuple(column(name, kind, nested_as_json=nested_as_json) for name, kind in types)
    return Result(columns, _batches(cursor), connection, statement, used)


def for_people(result: Result, query: Query | None = None) -> Result:
    """Return the result with units on its numbers and with the columns chosen by the named query's header."""
    # A cursor, as the rows of the answer still wait on the connection itself.
    units = result_units(result.connection.cursor(), [column.name for column in result.columns])
    result.units, result.query = units, query
    return result


def total(read: int, rows: Iterator[Row]) -> str:
    """Return the number of rows of which some were read; at most 100,000 others are counted."""
    most = read + COUNTED
    read += sum(1 for _ in islice(rows, COUNTED))
    return f"{read:,}" if read < most else f"more than {COUNTED:,}"


def wrap(statement: Statement, around: str) -> str:
    """Wrap the statement as a subquery: `FROM (...) SELECT count(*)`."""
    # On a new line, as the query may end in a comment.
    return f"{OPENING}{statement.text}\n) {around}"


def execute(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]
) -> duckdb.DuckDBPyConnection:
    """Run a statement with the values of its parameters."""
    return connection.execute(sql, dict(parameters)) if parameters else connection.execute(sql)


def _batches(cursor: duckdb.DuckDBPyConnection) -> Iterator[Row]:
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _shown(row: tuple[object, ...]) -> Row:
    return tuple(
        None if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in row
    )
