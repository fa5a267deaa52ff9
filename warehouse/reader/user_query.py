"""Run a user's query and write its answer."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.explanations import Answer, explain
from warehouse.reader.guard import Statement, check_read_only
from warehouse.reader.interrupt import interruptible
from warehouse.reader.output import JSON_FORMATS, write_result
from warehouse.reader.parquet import copy_to_parquet
from warehouse.reader.query_errors import from_engine
from warehouse.reader.request import Request
from warehouse.reader.result import OPENING, Asked, for_people, open_result
from warehouse.reader.sink import check_output, choose_format, leave_pipe, open_sink, output_errors
from warehouse.store.atomic import output_path, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.reader.citations import Citation

FAILED, INTERRUPTED = 2, 130


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
    from warehouse.reader.bounded_query import run_in_child

    return run_in_child(answer_here, request, sink, notes or sys.stderr)


def answer_here(
    request: Request,
    stream: TextIO | None = None,
    begins: Callable[[], object] = lambda: None,
    answered: Callable[[], object] = lambda: None,
) -> int:
    """Answer a request in this process, as `answer` does; call `begins` before the query, `answered` after its rows."""
    text, values, sink = request.text(), request.values(), stream or sys.stdout
    rows, output = request.rows(sink), request.output
    connection = connect(
        request.target,
        request.data_folders,
        memory=request.memory,
        threads=request.threads,
        outputs=[output_path(output)] if output and request.format == "parquet" else [],
        json_errors=True,
        tell_moved=lambda message: sys.stderr.write(f"note: {message}\n"),
    )

    citations: list[Citation | str] = []

    def work() -> list[Answer]:
        with _as_query_errors(connection, text, request.path) as at:
            answers = list(_answers(connection, statements, values, request, sink, rows, at))
            if request.cite:
                citations.append(_citation(connection, statements, values, request))
            return answers

    try:
        with _memory_errors(request):
            statements = _statements(connection, text, request)
            if request.query is None:
                _check_names(values, statements)
            refuse_damage(request.target, {name for statement in statements for name in statement.tables})
            begins()
            answers = interruptible(connection, work)
        answered()
        asked = Asked(request.target, request.query, values, request.parameters)
        explain(connection, answers, asked, sys.stderr if output else sink, sys.stderr, request.width)
        for cited in citations:
            if isinstance(cited, str):
                sys.stderr.write(f"{cited}\n")
                return FAILED
            from warehouse.reader.cited_sources import write_citation

            write_citation(request.target, cited, sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        leave_pipe(sink)
    finally:
        connection.close()
    return 0


def _citation(
    connection: duckdb.DuckDBPyConnection,
    statements: Sequence[Statement],
    values: Mapping[str, object],
    request: Request,
) -> Citation | str:
    """Keep the citation of an answer, or return why there is none."""
    from warehouse.reader.citations import cite

    if len(statements) != 1:
        return f"not cited: {len(statements)} statements, but a citation is of one"
    try:
        return cite(connection, request.target, statements[0], values, query=request.query and request.query.name)
    except QueryError as error:
        return f"not cited: {'; '.join(filter(None, (error.message, error.hint)))}"


def _answers(
    connection: duckdb.DuckDBPyConnection,
    statements: Sequence[Statement],
    values: Mapping[str, object],
    request: Request,
    sink: TextIO,
    rows: int | None,
    at: Callable[[Statement], None],
) -> Iterator[Answer]:
    """Write the answer of each statement and yield it; call `at` with each statement before it runs."""
    form = request.format or "csv"
    if request.output and form == "parquet":
        at(statements[0])
        with output_errors(request.output), replacing(request.output) as path:
            count = copy_to_parquet(connection, statements[0], values, path, limit=rows)
        yield Answer(statements[0], count, None)
        return
    with open_sink(request.output, sink) as to:
        for number, statement in enumerate(statements):
            at(statement)
            to.write("\n" if number else "")
            result = open_result(connection, statement, values, nested_as_json=form in JSON_FORMATS)
            result.target = request.target
            if request.is_for_people and not request.raw:
                for_people(result, request.query)
            count = write_result(result, form, to, width=request.width, limit=rows, escaped=request.escaped)
            to.flush()
            yield Answer(statement, count, result)


@contextmanager
def _memory_errors(request: Request) -> Iterator[None]:
    """Raise QueryError if the query exceeded its memory limit."""
    try:
        yield
    except MemoryError as error:
        from warehouse.reader.bounded_query import too_much

        raise too_much(request.memory) from error


def _statements(connection: duckdb.DuckDBPyConnection, text: str, request: Request) -> Sequence[Statement]:
    statements = check_read_only(connection, text, path=request.path)
    if not statements:
        raise QueryError("there is no query to run", hint='warehouse sql "SELECT ..."; warehouse ls lists the tables')
    if len(statements) > 1 and not request.is_for_people:
        raise QueryError(
            f"{len(statements)} statements, but a file or pipe takes the rows of one",
            hint="give one statement, or --format table",
        )
    return statements


def _check_names(given: Iterable[str], statements: Sequence[Statement]) -> None:
    known = {name for statement in statements for name in statement.parameters}
    for name in given:
        if name not in known:
            raise QueryError(f"the query has no ${name}", hint=nearest_hint(name, known))


@contextmanager
def _as_query_errors(
    connection: duckdb.DuckDBPyConnection, text: str, path: Path | None
) -> Iterator[Callable[[Statement], None]]:
    """Raise engine errors as errors of the statement that ran last."""
    from warehouse.base.startup import duckdb

    offset = 0

    def at(statement: Statement) -> None:
        nonlocal offset
        offset = statement.start - (len(OPENING) if statement.kind == "SELECT" else 0)

    try:
        yield at
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "bad_alloc" in str(error):
            raise MemoryError from error
        raise from_engine(error, text, connection, offset=offset, path=path) from error
