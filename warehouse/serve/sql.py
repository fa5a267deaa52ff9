"""Run a query that a user wrote, and write what it gives."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from warehouse.errors import QueryError, nearest_hint
from warehouse.serve.connect import connect
from warehouse.serve.guard import Statement, check_read_only, check_text
from warehouse.serve.interrupt import interruptible
from warehouse.serve.mistakes import from_engine
from warehouse.serve.output import FORMATS, JSON_FORMATS, SUFFIXES, check_format, write_result
from warehouse.serve.queries import Query, bind
from warehouse.serve.result import OPENING, open_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

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
    stream: TextIO | None = None,
) -> int:
    """Run one query, from its text, a file or by name, and return the exit status: 0, or 130 after Ctrl-C.

    Parameters
    ----------
    target
        The folder of the warehouse.
    sql, file, query
        Exactly one of them.
    parameters
        Text by name for `$name` in the query; typed where a named query says how, else as VARCHAR.
    data_folders
        Folders that may be read besides those that the build recorded.
    format
        One of `FORMATS`; from the suffix of `output`, else a table on a terminal and csv in a pipe.
    output
        A file to write, aside first; never below the target.
    limit
        Rows at most, 0 for all; where left out all, but 40 on a terminal.
    width, stream
        For a table, and instead of stdout.
    memory, threads
        Limits of the engine.

    Raises
    ------
    QueryError
        When the query is refused, is wrong or fails, or the output cannot be written.
    """
    if output:
        _check_output(output, target)
    text, path = _text(sql, file, query)
    given = dict(parameters or {})
    for name, value in given.items():
        check_text(value, f"the value of {name}")
    if query and limit and "limit" in query.parameters:
        given.setdefault("limit", str(limit))
    values: Mapping[str, object] = bind(query, given) if query else given
    sink = stream or sys.stdout
    chosen = _format(format, output, sink)
    rows = (
        (limit or None)
        if limit is not None
        else ROWS_ON_TERMINAL
        if chosen == "table" and _tty(sink)
        else None
    )
    aside = _aside(output) if output and chosen == "parquet" else None
    connection = connect(
        target,
        data_folders,
        memory=memory,
        threads=threads,
        outputs=[aside] if aside else [],
        json_errors=True,
    )
    try:
        statements = _statements(connection, text, path, one=chosen != "table")
        if query is None:
            _check_names(given, statements)

        def work() -> None:
            with _as_query_errors(connection, text, path) as at:
                if aside and output:
                    from warehouse.serve.parquet import copy_to_parquet

                    at(statements[0])
                    copy_to_parquet(connection, statements[0], values, aside, limit=rows)
                    aside.replace(output)
                    return
                with _sink(output, sink) as to:
                    for number, statement in enumerate(statements):
                        at(statement)
                        if number:
                            to.write("\n")
                        result = open_result(
                            connection, statement, values, nested_as_json=chosen in JSON_FORMATS
                        )
                        write_result(result, chosen, to, width=width, limit=rows)
                    to.flush()

        interruptible(connection, work)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _leave_pipe(sink)
    finally:
        connection.close()
        if aside:
            aside.unlink(missing_ok=True)
    return 0


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
        raise QueryError(
            "there is no query to run", hint='warehouse sql "SELECT ..."; warehouse ls lists the tables'
        )
    if one and len(statements) > 1:
        raise QueryError(
            f"{len(statements)} statements, but a file or pipe takes the rows of one",
            hint="give one statement, or --format table",
        )
    return statements


def _check_names(given: Mapping[str, str], statements: Sequence[Statement]) -> None:
    known = {name for statement in statements for name in statement.parameters}
    for name in given:
        if name not in known:
            raise QueryError(f"the query has no ${name}", hint=nearest_hint(name, known))


@contextmanager
def _as_query_errors(
    connection: duckdb.DuckDBPyConnection, text: str, path: Path | None
) -> Iterator[Callable[[Statement], None]]:
    """Tell errors of the engine as those of the statement that was named last."""
    import duckdb

    offset = 0

    def at(statement: Statement) -> None:
        nonlocal offset
        offset = statement.start - (len(OPENING) if statement.kind == "SELECT" else 0)

    try:
        yield at
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise from_engine(error, text, connection, offset=offset, path=path) from error


def _format(name: str | None, output: Path | None, sink: TextIO) -> str:
    if name is not None:
        chosen = check_format(name)
    elif output is not None:
        found = SUFFIXES.get(output.suffix.lower())
        if found is None:
            raise QueryError(f"no format is known for {output.name}", hint=f"--format {'|'.join(FORMATS)}")
        chosen = found
    else:
        chosen = "table" if _tty(sink) else "csv"
    if chosen == "parquet" and output is None:
        raise QueryError("Parquet is written to a file", hint="-o FILE.parquet")
    return chosen


def _tty(stream: TextIO) -> bool:
    return stream.isatty()


def _check_output(output: Path, target: Path) -> None:
    if output.is_dir():
        raise QueryError(f"{output} is a folder", hint="-o FILE")
    if not output.absolute().parent.is_dir():
        raise QueryError(f"{output} cannot be written: its folder does not exist")
    if output.resolve().is_relative_to(target.resolve()):
        raise QueryError(
            f"{output} lies in the target, which only `warehouse build` writes", hint="choose another place"
        )


def _aside(output: Path) -> Path:
    return output.absolute().with_name(f".{output.name}.{os.getpid()}")


@contextmanager
def _sink(output: Path | None, sink: TextIO) -> Iterator[TextIO]:
    """Open where text goes; a file appears whole or not at all, a pipe or device is written as it is."""
    if output is None:
        yield sink
        return
    if output.exists() and not output.is_file():
        with output.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    aside = _aside(output)
    try:
        with aside.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        aside.replace(output)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise QueryError(f"{output} cannot be written: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)


def _leave_pipe(stream: TextIO) -> None:
    """Send what is still buffered nowhere: the reader has gone, and no one needs to be told."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
