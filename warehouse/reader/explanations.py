"""Explanations of an answer: why it is empty, and the number of all its rows.

An explanation never costs the answer. It begins when the whole answer is written, has time of its own, and is left
out if it fails or takes too long.

Only `meta` and small tables of names are read for a reason. `meta.models.needs` has groups of relations for each table:
a table is empty if all relations of a group are empty.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import QueryError, nearest
from warehouse.base.next_step import for_target
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.text import few, natural, wrapped
from warehouse.reader.connection import interruptible
from warehouse.reader.result import total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Result
    from warehouse.reader.user_query import Request

SECONDS = 5.0
"""Time for all explanations of a command."""
_COLUMNS = {"leaf": "switch", "hour": "hour_utc", "before": "hour_utc", "after": "hour_utc"}
"""Column of the values of a query's parameter that has another name."""
_DIMENSIONS = {
    "cluster": "reference.dim_cluster",
    "hour_utc": "reference.dim_hour",
    "server": "reference.dim_server",
    "switch": "reference.dim_switch",
    "task": "metrics.task_summary",
    "trace": "metrics.job_totals",
}
"""Small tables with the values of a column. Other columns have no known values: nothing large is read."""
_MOST_ROWS = 10_000
"""Rows of a small table."""


def explain(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    rows: int,
    result: Result | None,
    request: Request,
    out: TextIO,
    err: TextIO,
) -> None:
    """Write what explains an answer: the number of rows to `out`, why there are none to `err`.

    Parameters
    ----------
    connection
        Connection that ran the statement.
    statement
        Statement that was answered.
    rows
        Rows that were written.
    result
        Its result, if it was written as text.
    request
        Question of the user.
    out, err
        Streams; they may be the same.
    """
    from warehouse.base.startup import duckdb

    def write(line: str, stream: TextIO) -> None:
        from warehouse.reader.text_table import width_of

        width = None if stream is sys.stderr and not stream.isatty() else width_of(stream, None)
        stream.writelines(wrapped(for_target(line, request.target), width))
        stream.flush()

    def work() -> None:
        if not rows:
            write(no_rows(connection, statement, request), err)
        if result and result.is_cut:
            try:
                counted = total(rows + 1, result.rows)
            except (duckdb.Error, MemoryError):  # too slow, or a row that cannot be computed: it is cut nevertheless
                counted = f"more than {rows:,}"
            write(f"{counted} rows, {rows:,} shown", out)

    # The answer is already written, so no failure here may change the exit status.
    with suppress(TimeoutError, duckdb.Error, QueryError, MemoryError):
        interruptible(connection, work, timeout=SECONDS)


def no_rows(connection: duckdb.DuckDBPyConnection, statement: Statement, request: Request) -> str:
    """Return `no rows` with the reason: an unknown name, an hour that is not loaded, missing files."""
    found = (
        unknown_parameters(connection, request.query, request.parameters)
        if request.query
        else _unknown_values(connection, _conditions(statement))
    )
    reasons = list(found) or [
        f"{table} is empty: {reason}" for table, reason in reasons_of(connection, sorted(statement.tables)).items()
    ]
    return "no rows: " + ("; ".join(dict.fromkeys(reasons)) or "none meets the conditions of the query")


def reasons_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> dict[str, str]:
    """Return why each of these tables is empty; a table with rows is left out."""
    from warehouse.graph.empty_tables import UNMET, EmptyTables  # it knows all formats, and few queries need it

    rows = connection.execute("SELECT model, kind, rows, needs FROM meta.models").fetchall()
    loaded = set[str]()
    if any(name == "raw.files" for name, *_ in rows):
        loaded = {one for (one,) in connection.execute("SELECT DISTINCT format FROM raw.files").fetchall()}
    needs: dict[str, list[list[str]]] = {name: needs or [] for name, _, _, needs in rows}
    known = EmptyTables(
        {name: kind for name, kind, *_ in rows},
        {name: count for name, _, count, *_ in rows},
        needs,
        loaded,
    )
    empty = {table: known.reason(table) for table in tables if table in needs and known.is_empty(table)}
    return {table: why if why == UNMET else f"{why} (warehouse doctor)" for table, why in empty.items()}


def unknown_parameters(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]
) -> Iterator[str]:
    """Yield a sentence for each parameter whose value is in no loaded file: a server, a switch, an hour."""
    from warehouse.reader.named_queries import parse_value

    named = {name: str(one) for name, one in given.items() if one is not None and name in query.parameters}
    hours = {name for name in named if query.parameters[name].type == "TIMESTAMP"}
    for value in (named[name] for name in sorted(hours)):
        listed = _known_values(connection, "hour_utc")
        if listed and str(parse_value(value, "TIMESTAMP")) not in listed:
            loaded = few([hour.removesuffix(":00") for hour in listed])
            yield f"the hour {value} is not loaded; loaded (UTC): {loaded}"
    columns = {_COLUMNS.get(name, name): value for name, value in named.items() if name not in hours}
    yield from _unknown_values(connection, columns)


def _conditions(statement: Statement) -> dict[str, str]:
    """Return the values of each `column = 'value'` of a statement."""
    # Only for an empty answer: other queries need not pay for the import.
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(statement.text, read="duckdb")
    except SqlglotError:
        return {}
    pairs = ((one.this, one.expression) for one in tree.find_all(exp.EQ))
    return {
        column.name: value.name
        for column, value in pairs
        if isinstance(column, exp.Column) and isinstance(value, exp.Literal) and value.is_string
    }


def _unknown_values(connection: duckdb.DuckDBPyConnection, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each value that no loaded file has: a server, a switch, a trace."""
    for column, value in values.items():
        listed = _known_values(connection, column) if column != "hour_utc" else ()
        if listed and value.lower() not in map(str.lower, listed):
            close = nearest(value, listed)
            others = f"{'there is only' if len(listed) == 1 else 'there are'} {few(listed)}"
            yield f"no {column} {value}; {f'near: {close}' if close else others}"
        elif listed and column == "switch" and value.lower() not in map(str.lower, _counted(connection)):
            yield f"{value} is not loaded: no port counters of it in the data folders (warehouse doctor)"


def _known_values(connection: duckdb.DuckDBPyConnection, column: str) -> Sequence[str]:
    """Return the known values of a column in natural order; none if no small table has its values."""
    table = _DIMENSIONS.get(column)
    small = connection.execute(
        "SELECT model FROM meta.models WHERE model = $1 AND kind IN ('table', 'reference') AND coalesce(rows, 0) <= $2",
        [table, _MOST_ROWS],
    ).fetchone()
    if table is None or small is None:
        return ()
    name = identifier(column)
    rows = connection.execute(f"SELECT DISTINCT {name}::VARCHAR FROM {qualified(table)} WHERE {name} IS NOT NULL")
    return sorted((one for (one,) in rows.fetchall()), key=natural)


def _counted(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the switches whose counter files are loaded."""
    rows = connection.execute("SELECT switch FROM reference.dim_switch WHERE has_counters").fetchall()
    return [switch for (switch,) in rows]
