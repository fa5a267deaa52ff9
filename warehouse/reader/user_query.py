"""Question of a user: what is asked, within which limits, and how its answer is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.reader.explanations import explain
from warehouse.reader.guard import check_read_only, check_text
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
from warehouse.reader.result import OPENING, for_people, open_result
from warehouse.store.atomic import output_path, replacing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Result

ROWS_ON_TERMINAL = 40


class Request(NamedTuple):
    """Question of a user."""

    target: Path
    """Folder of the warehouse."""
    sql: str | None = None
    file: Path | None = None
    query: Query | None = None
    """Exactly one of `sql`, `file` and `query`."""
    parameters: Mapping[str, str] = {}
    """Text by name for `$name` in the query; typed by the named query's header, else VARCHAR."""
    data_folders: Sequence[Path] = ()
    """Readable folders in addition to those recorded by the build."""
    format: str | None = None
    """By default from the suffix of `output`, else a table on a terminal and csv in a pipe."""
    output: Path | None = None
    """File to write atomically; never inside the target."""
    limit: int | None = None
    """Maximum number of rows, 0 for all; by default 40 in a table on a terminal, else all."""
    memory: str | None = None
    threads: int | None = None
    timeout: float | None = None
    """Seconds after which the query is stopped."""
    cite: bool = False
    """Keep a citation of the answer, and write it after the notes."""

    def text(self) -> str:
        """Return the SQL. Raises QueryError if its file cannot be read."""
        if self.query:
            return self.query.sql
        if self.file is None:
            return self.sql or ""
        try:
            return self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise QueryError(f"{self.file} cannot be read: {error}") from error

    @property
    def path(self) -> Path | None:
        """Return the file that has the SQL."""
        return self.query.path if self.query else self.file

    def values(self) -> Mapping[str, object]:
        """Return the values of the parameters. Raises QueryError if one is missing, unknown or of another type."""
        for name, value in self.parameters.items():
            check_text(value, f"the value of {name}")
        if self.query is None:
            return self.parameters
        from warehouse.reader.named_queries import bind

        limit = {"limit": str(self.limit)} if self.limit and "limit" in self.query.parameters else {}
        return bind(self.query, {**limit, **self.parameters})

    def statement(self, connection: duckdb.DuckDBPyConnection, values: Mapping[str, object]) -> Statement:
        """Return the statement if it only reads and has all of its values.

        Raises
        ------
        QueryError
            If there are several or none, if it is refused, or a value is missing or too much.
        """
        statements = check_read_only(connection, self.text(), path=self.path)
        if len(statements) != 1:
            problem = f"{len(statements)} statements, but an answer is of one" if statements else "no query is given"
            raise QueryError(
                problem, hint='warehouse sql "SELECT ..."; `warehouse sql < FILE` answers those that end a line'
            )
        [statement] = statements
        for name in sorted(values.keys() - statement.parameters if self.query is None else ()):
            raise QueryError(f"the query has no ${name}", hint=nearest_hint(name, statement.parameters))
        for name in sorted(statement.parameters - values.keys()):
            raise QueryError(f"no value is given for ${name}", hint=f"--param {name}=VALUE, in Python {name}=VALUE")
        return statement

    def rows(self, sink: TextIO) -> int | None:
        """Return the effective row limit; None for all rows."""
        if self.limit is None:
            return ROWS_ON_TERMINAL if self.format == "table" and sink.isatty() else None
        if self.limit < 0:
            raise QueryError(f"the limit is {self.limit}", hint="--limit N with N above 0, or 0 for all rows")
        return self.limit or None


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
