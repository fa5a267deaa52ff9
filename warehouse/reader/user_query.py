"""Run a user's query and write its answer."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.reader.connection import connect
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.explanations import Answer, explain
from warehouse.reader.guard import Statement, check_read_only, check_text
from warehouse.reader.interrupt import interruptible
from warehouse.reader.output import JSON_FORMATS, write_result
from warehouse.reader.parquet import copy_to_parquet
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import OPENING, Asked, for_people, open_result
from warehouse.reader.sink import check_output, choose_format, leave_pipe, open_sink, output_errors
from warehouse.store.atomic import output_path, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.reader.named_queries import Query

INTERRUPTED = 130
ROWS_ON_TERMINAL = 40


def run_query(
    target: Path,
    sql: str | None = None,
    *,
    file: Path | None = None,
    query: Query | None = None,
    parameters: Mapping[str, str] | None = None,
    data_folders: Sequence[Path] = (),
    format: str | None = None,  # noqa: A002
    output: Path | None = None,
    limit: int | None = None,
    width: int | None = None,
    memory: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    stream: TextIO | None = None,
    escaped: bool | None = None,
    raw: bool = False,
) -> int:
    """Run one query, from its text, a file or by name, and return the exit status: 0, or 130 after Ctrl-C.

    A query with a timeout or memory limit runs in a child process (`warehouse.reader.bounded_query`).

    Parameters
    ----------
    target
        Folder of the warehouse.
    sql, file, query
        Exactly one of them.
    parameters
        Text by name for `$name` in the query; typed by the named query's header, else VARCHAR.
    data_folders
        Readable folders in addition to those recorded by the build.
    format
        One of `FORMATS`; by default from the suffix of `output`, else a table on a terminal and csv in a pipe.
    output
        File to write atomically; never inside the target.
    limit
        Maximum number of rows, 0 for all; by default 40 on a terminal, else all.
    width, stream
        Width of a table, and stream to write to instead of stdout.
    memory, threads
        Limits of the engine.
    timeout
        Seconds after which the query is stopped.
    escaped
        Escape control characters; by default only on a terminal.
    raw
        Write exact values and all columns in a table, as the other formats always do.

    Raises
    ------
    QueryError
        If the query is refused, invalid or fails, or the output cannot be written.
    """
    if output:
        check_output(output, target)
    sink = stream or sys.stdout
    arguments: dict[str, Any] = {
        "target": target, "sql": sql, "file": file, "query": query, "parameters": parameters,
        "data_folders": data_folders, "format": choose_format(format, output, sink), "output": output,
        "limit": limit, "width": width, "memory": memory, "threads": threads, "timeout": timeout, "escaped": escaped,
        "raw": raw,
    }  # fmt: skip
    if timeout is None and memory is None:
        return run_here(**arguments, stream=sink)
    from warehouse.reader.bounded_query import run_in_child

    return run_in_child(arguments, sink)


def run_here(
    target: Path,
    sql: str | None,
    *,
    file: Path | None,
    query: Query | None,
    parameters: Mapping[str, str] | None,
    data_folders: Sequence[Path],
    format: str,  # noqa: A002
    output: Path | None,
    limit: int | None,
    width: int | None,
    memory: str | None,
    threads: int | None,
    timeout: float | None,
    escaped: bool | None,
    raw: bool = False,
    stream: TextIO | None = None,
    begins: Callable[[], object] = lambda: None,
    answered: Callable[[], object] = lambda: None,
) -> int:
    """Run a query in this process, as `run_query` describes; call `begins` before it, `answered` after its answer."""
    text, path = _text(sql, file, query)
    values = _values(query, dict(parameters or {}), limit)
    sink = stream or sys.stdout
    settings = _OutputSettings(target, format, output, sink, _rows(limit, format, sink), width, escaped, raw)
    connection = connect(
        target,
        data_folders,
        memory=memory,
        threads=threads,
        outputs=[output_path(output)] if output and format == "parquet" else [],
        json_errors=True,
        tell_moved=lambda message: sys.stderr.write(f"note: {message}\n"),
    )

    def answer(statements: Sequence[Statement]) -> list[Answer]:
        with _as_query_errors(connection, text, path) as at:
            return list(_answers(connection, statements, values, settings, query, at))

    try:
        with _limit_errors(timeout, memory):
            statements = _statements(connection, text, path, one=format not in ("table", "lines"))
            if query is None:
                _check_names(values, statements)
            refuse_damage(target, {name for statement in statements for name in statement.tables})
            begins()
            answers = interruptible(connection, lambda: answer(statements), timeout=timeout)
        answered()
        asked = Asked(target, query, values, parameters or {})
        explain(connection, answers, asked, sys.stderr if output else sink, sys.stderr, width)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        leave_pipe(sink)
    finally:
        connection.close()
    return 0


class _OutputSettings(NamedTuple):
    """Output settings of an answer."""

    target: Path
    format: str
    output: Path | None
    sink: TextIO
    rows: int | None
    width: int | None
    escaped: bool | None
    raw: bool


def _answers(
    connection: duckdb.DuckDBPyConnection,
    statements: Sequence[Statement],
    values: Mapping[str, object],
    settings: _OutputSettings,
    query: Query | None,
    at: Callable[[Statement], None],
) -> Iterator[Answer]:
    """Write the answer of each statement and yield it; call `at` with each statement before it runs."""
    if settings.output and settings.format == "parquet":
        at(statements[0])
        with output_errors(settings.output), replacing(settings.output) as path:
            count = copy_to_parquet(connection, statements[0], values, path, limit=settings.rows)
        yield Answer(statements[0], count, None)
        return
    with open_sink(settings.output, settings.sink) as to:
        for number, statement in enumerate(statements):
            at(statement)
            to.write("\n" if number else "")
            result = open_result(connection, statement, values, nested_as_json=settings.format in JSON_FORMATS)
            result.target = settings.target
            if settings.format in ("table", "lines") and not settings.raw:
                for_people(result, query)
            count = write_result(
                result, settings.format, to, width=settings.width, limit=settings.rows, escaped=settings.escaped
            )
            to.flush()
            yield Answer(statement, count, result)


@contextmanager
def _limit_errors(timeout: float | None, memory: str | None) -> Iterator[None]:
    """Convert timeouts and memory errors of a query to one sentence.

    Raises
    ------
    QueryError
        If the query exceeded its time or memory limit.
    """
    try:
        yield
    except TimeoutError as error:
        from warehouse.reader.bounded_query import too_long

        raise too_long(timeout or 0) from error
    except MemoryError as error:
        from warehouse.reader.bounded_query import too_much

        raise too_much(memory) from error


def _values(query: Query | None, given: dict[str, str], limit: int | None) -> Mapping[str, object]:
    for name, value in given.items():
        check_text(value, f"the value of {name}")
    if query is None:
        return given
    from warehouse.reader.named_queries import bind

    if limit and "limit" in query.parameters:
        given.setdefault("limit", str(limit))
    return bind(query, given)


def _rows(limit: int | None, form: str, sink: TextIO) -> int | None:
    """Return the effective row limit; a given limit of 0 means all rows."""
    if limit is None:
        return ROWS_ON_TERMINAL if form == "table" and sink.isatty() else None
    if limit < 0:
        raise QueryError(f"the limit is {limit}", hint="--limit N with N above 0, or 0 for all rows")
    return limit or None


def _text(sql: str | None, file: Path | None, query: Query | None) -> tuple[str, Path | None]:
    if query:
        return query.sql, query.path
    if file:
        try:
            return file.read_text(encoding="utf-8"), file
        except (OSError, UnicodeDecodeError) as error:
            raise QueryError(f"{file} cannot be read: {error}") from error
    return sql or "", None


def _statements(
    connection: duckdb.DuckDBPyConnection, text: str, path: Path | None, *, one: bool
) -> Sequence[Statement]:
    statements = check_read_only(connection, text, path=path)
    if not statements:
        raise QueryError("there is no query to run", hint='warehouse sql "SELECT ..."; warehouse ls lists the tables')
    if one and len(statements) > 1:
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
