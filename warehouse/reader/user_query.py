"""Answer of a user's question: run, written, and explained.

An explanation says why an answer is empty, and the number of all its rows. It never costs the answer: it begins when
the whole answer is written, has time of its own, and is left out if it fails or takes too long. Only `meta` and small
tables of names are read for a reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TextIO

from warehouse.base import startup
from warehouse.base.errors import QueryError, nearest
from warehouse.base.sql_text import identifier, qualified
from warehouse.base.text import few, for_target, natural
from warehouse.engine.duckdb_errors import sentence
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.reader.guard import Statement
from warehouse.reader.output import (
    JSON_FORMATS,
    check_output,
    choose_format,
    copy_to_parquet,
    open_sink,
    output_errors,
    write_result,
)
from warehouse.reader.query_errors import from_engine
from warehouse.reader.request import EXPLANATION_SECONDS, INTERRUPTED, Request
from warehouse.reader.result import OPENING, Result, open_result, total
from warehouse.store.atomic import output_path, replacing

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query

FAILED = 2
"""Exit status if an answer could not be cited."""
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
_COUNTED = "SELECT 1 FROM reference.dim_switch WHERE has_counters AND lower(switch) = lower($1)"
"""Query with a row if the counter files of a switch are loaded."""


def answer(request: Request) -> int:
    """Answer a request on stdout and return the exit status: 0, or 130 after Ctrl-C.

    Notes, such as why there are no rows and a citation, go to stderr. A query with a timeout or memory limit runs in a
    child process (`warehouse.reader.bounded_query`).

    Raises
    ------
    QueryError
        If the query is refused, invalid or fails, or the output cannot be written.
    """
    if request.output:
        check_output(request.output, request.target)
    request = request._replace(format=choose_format(request.format, request.output, sys.stdout))
    if request.timeout is None and request.memory is None:
        return answer_here(request)
    # Only here: a query without limits need not pay for `subprocess`.
    from warehouse.reader.bounded_query import run_in_child

    return run_in_child(answer_here, request)


def answer_here(
    request: Request, begins: Callable[[], object] = lambda: None, answered: Callable[[], object] = lambda: None
) -> int:
    """Answer a request in this process, as `answer` does; call `begins` before the query, `answered` after its rows."""
    values = request.values()
    connection = connect(
        request.target,
        request.data_folders,
        memory=request.memory,
        threads=request.threads,
        # Only Parquet is written by the engine, so only then may it write a file.
        outputs=[output_path(request.output)] if request.output and request.format == "parquet" else [],
        json_errors=True,
        tell_moved=lambda message: sys.stderr.write(f"note: {message}\n"),
    )
    with closing(connection):
        try:
            statement = request.statement(connection, values)
            refuse_damage(request.target, statement.tables)
            # Opening the target and looking for damage is not the user's query, and has no part in its limits.
            begins()
            result = interruptible(connection, lambda: _written(connection, statement, values, request))
            # A cursor: on the connection itself, a citation would end the rows that are counted below a table.
            cursor = connection.cursor()
            cited = interruptible(cursor, lambda: _citation(cursor, statement, values, request)) if request.cite else []
            answered()
            explain(result, request)
            sys.stderr.writelines(cited)
        except KeyboardInterrupt:
            return INTERRUPTED
        except MemoryError as error:
            from warehouse.reader.bounded_query import too_much

            raise too_much(request.memory) from error
    return FAILED if request.cite and cited[0].startswith("not cited") else 0


def _written(
    connection: startup.duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, object], request: Request
) -> Result:
    """Write the answer; return its result."""
    form, limit = request.format or "csv", request.rows()
    try:
        if request.output and form == "parquet":
            with output_errors(request.output), replacing(request.output) as path:
                count = copy_to_parquet(connection, statement, values, path, limit=limit)
            result = Result((), iter(()), connection, statement, count)
        else:
            with open_sink(request.output, sys.stdout) as to:
                result = open_result(connection, statement, values, nested_as_json=form in JSON_FORMATS)
                write_result(result, form, to, limit=limit, query=request.query)
                to.flush()
        return result
    except startup.duckdb.InterruptException:
        raise
    except startup.duckdb.Error as error:
        # Memory that the address space refuses is a plain error of the engine.
        if isinstance(error, startup.duckdb.OutOfMemoryException) or "bad_alloc" in str(error):
            raise MemoryError from error
        offset = statement.start - (len(OPENING) if statement.kind == "SELECT" else 0)
        raise from_engine(error, request.text(), connection, offset=offset, path=request.path) from error


def _citation(
    connection: startup.duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, object], request: Request
) -> list[str]:
    """Keep the citation of an answer, and return its lines, or why there is none."""
    from warehouse.reader.citations import cite, source_lines
    from warehouse.reader.text_table import for_terminal

    try:
        cited = cite(connection, request.target, statement, values, query=request.query and request.query.name)
    except (QueryError, startup.duckdb.Error) as error:
        why = (error.message, error.hint) if isinstance(error, QueryError) else (sentence(error),)
        return [f"not cited: {'; '.join(filter(None, why))}\n"]
    return list(for_terminal([cited.text(), *source_lines(connection, statement.tables)], sys.stderr))


def explain(result: Result, request: Request) -> None:
    """Write what explains an answer: the number of its rows below a table, why there are none to stderr."""
    shown = f"{result.count:,}"

    def write(line: str, stream: TextIO) -> None:
        from warehouse.reader.text_table import for_terminal

        stream.writelines(for_terminal([for_target(line, request.target)], stream))
        stream.flush()

    def work() -> None:
        if not result.count:
            write(no_rows(result.connection, result.statement, request), sys.stderr)
        if request.format not in ("table", "lines"):
            return
        try:
            counted = total(result.count, result.rows)
        # Too slow, or a row that cannot be computed: the table is cut nevertheless.
        except (startup.duckdb.Error, MemoryError):
            counted = f"more than {shown}"
        if counted != shown:
            write(f"{counted} rows, {shown} shown", sys.stderr if request.output else sys.stdout)

    # The answer is already written, so no failure here may change the exit status.
    with suppress(TimeoutError, startup.duckdb.Error, QueryError, MemoryError):
        interruptible(result.connection, work, timeout=EXPLANATION_SECONDS)


def no_rows(connection: startup.duckdb.DuckDBPyConnection, statement: Statement, request: Request) -> str:
    """Return `no rows` with the reason: an unknown name, an hour that is not loaded, missing files."""
    from warehouse.reader.table_info import reasons_of  # few queries need it

    found = (
        unknown_parameters(connection, request.query, request.parameters)
        if request.query
        else _unknown_values(connection, _conditions(statement))
    )
    reasons = list(found) or [
        f"{table} is empty: {reason}" for table, reason in reasons_of(connection, sorted(statement.tables)).items()
    ]
    return "no rows: " + ("; ".join(dict.fromkeys(reasons)) or "none meets the conditions of the query")


def unknown_parameters(
    connection: startup.duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]
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


def _unknown_values(connection: startup.duckdb.DuckDBPyConnection, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each value that no loaded file has: a server, a switch, a trace."""
    for column, value in values.items():
        listed = _known_values(connection, column) if column != "hour_utc" else ()
        if listed and value.lower() not in map(str.lower, listed):
            close = nearest(value, listed)
            others = f"{'there is only' if len(listed) == 1 else 'there are'} {few(listed)}"
            yield f"no {column} {value}; {f'near: {close}' if close else others}"
        elif listed and column == "switch" and not connection.execute(_COUNTED, [value]).fetchall():
            yield f"{value} is not loaded: no port counters of it in the data folders (warehouse doctor)"


def _known_values(connection: startup.duckdb.DuckDBPyConnection, column: str) -> Sequence[str]:
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
