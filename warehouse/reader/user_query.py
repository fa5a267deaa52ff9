"""Run a user's query and write its answer."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, TextIO

from warehouse.base.errors import QueryError
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.explanations import explain
from warehouse.reader.interrupt import interruptible
from warehouse.reader.output import JSON_FORMATS, check_output, choose_format, open_sink, output_errors, write_result
from warehouse.reader.parquet import copy_to_parquet
from warehouse.reader.query_errors import from_engine
from warehouse.reader.request import Request
from warehouse.reader.result import OPENING, for_people, open_result
from warehouse.store.atomic import output_path, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.result import Result

FAILED, INTERRUPTED = 2, 130  # exit statuses; 130 is 128 + SIGINT, as shells report it


def run_query(target: Path, sql: str | None = None, *, stream: TextIO | None = None, **asked: Any) -> int:
    """Run one query, as `answer` does; `asked` has the other fields of the request."""
    return answer(Request(target, sql, **asked), stream)


def answer(request: Request, stream: TextIO | None = None, notes: TextIO | None = None) -> int:
    """Answer a request on a stream, by default stdout, and return the exit status: 0, or 130 after Ctrl-C.

    A bounded query writes its notes, such as why there are no rows and its citation, to `notes`, by default stderr.

    A query with a timeout or memory limit runs in a child process (`warehouse.reader.bounded_query`).

    Raises
    ------
    QueryError
        If the query is refused, invalid or fails, or the output cannot be written.
    """
    if request.output:
        check_output(request.output, request.target)
    sink = stream or sys.stdout
    request = request._replace(format=choose_format(request.format, request.output, sink))
    if request.timeout is None and request.memory is None:
        return answer_here(request, sink)
    # Only here: a query without limits need not pay for `subprocess`.
    from warehouse.reader.bounded_query import run_in_child

    return run_in_child(answer_here, request, sink, notes or sys.stderr)


def answer_here(
    request: Request,
    stream: TextIO | None = None,
    begins: Callable[[], object] = lambda: None,
    answered: Callable[[], object] = lambda: None,
) -> int:
    """Answer a request in this process, as `answer` does; call `begins` before the query, `answered` after its rows."""
    values, sink = request.values(), stream or sys.stdout
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
            written, result, cited = interruptible(
                connection, lambda: _written(connection, statement, values, request, sink)
            )
            answered()
            out = sys.stderr if request.output else sink
            explain(connection, statement, written, result, request, out, sys.stderr)
            sys.stderr.writelines(cited)
        except KeyboardInterrupt:
            return INTERRUPTED
        except MemoryError as error:
            from warehouse.reader.bounded_query import too_much

            raise too_much(request.memory) from error
    return FAILED if request.cite and cited[0].startswith("not cited") else 0


def _written(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    values: Mapping[str, object],
    request: Request,
    sink: TextIO,
) -> tuple[int, Result | None, list[str]]:
    """Write the answer; return its number of rows, its result if it was written as text, and its citation."""
    from warehouse.base.startup import duckdb

    form, limit = request.format or "csv", request.rows(sink)
    result = None
    try:
        if request.output and form == "parquet":
            with output_errors(request.output), replacing(request.output) as path:
                rows = copy_to_parquet(connection, statement, values, path, limit=limit)
        else:
            with open_sink(request.output, sink) as to:
                result = open_result(connection, statement, values, nested_as_json=form in JSON_FORMATS)
                if form in ("table", "lines"):
                    for_people(result, request.query)
                rows = write_result(result, form, to, limit=limit)
                to.flush()
        return rows, result, _citation(connection, statement, values, request) if request.cite else []
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        # Memory that the address space refuses is a plain error of the engine.
        if isinstance(error, duckdb.OutOfMemoryException) or "bad_alloc" in str(error):
            raise MemoryError from error
        offset = statement.start - (len(OPENING) if statement.kind == "SELECT" else 0)
        raise from_engine(error, request.text(), connection, offset=offset, path=request.path) from error


def _citation(
    connection: duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, object], request: Request
) -> list[str]:
    """Keep the citation of an answer, and return its lines, or why there is none."""
    from warehouse.reader.citations import citation_lines, cite

    try:
        cited = cite(connection, request.target, statement, values, query=request.query and request.query.name)
    except QueryError as error:
        return [f"not cited: {'; '.join(filter(None, (error.message, error.hint)))}\n"]
    return citation_lines(request.target, cited, sys.stderr)
