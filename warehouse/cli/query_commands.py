"""Command `warehouse sql`: a query, the list of named queries, or the shell.

An input of the shell is SQL that ends in a semicolon, or options of `warehouse sql`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError, SettingsError
from warehouse.base.settings import Settings
from warehouse.cli.commands import SQL_OPTIONS, settings, with_parameters
from warehouse.reader.connection import connect
from warehouse.reader.request import Request
from warehouse.reader.user_query import answer

if TYPE_CHECKING:
    from warehouse.project.named_queries import Query


def run_sql(given: argparse.Namespace) -> int:
    """Run one query, list named queries, or open the shell."""
    settled = settings(given)
    sources = [value for value in (given.sql, given.file, given.query) if value]
    if given.list:
        return _list_queries(settled, given.query or given.sql)
    if not sources:
        return _shell(settled, given)
    if len(sources) > 1:
        raise SettingsError("give one of QUERY, --file or --query", hint="warehouse sql alone opens a shell")
    # A query given as SQL needs no project: importing its modules would cost 5% of a start.
    queries = _queries(settled) if given.query or given.project else {}
    query = None
    if given.query:
        from warehouse.reader.named_queries import find_query

        query = find_query(given.query, queries)
    request = Request(
        settled.target,
        sys.stdin.read() if given.sql == "-" else given.sql,
        file=Path(given.file) if given.file else None,
        query=query,
        parameters=dict(given.param),
        data_folders=settled.data,
        format=given.format,
        output=Path(given.output) if given.output else None,
        limit=given.limit,
        memory=given.memory,
        threads=settled.threads if given.threads else None,
        timeout=given.timeout,
        cite=given.cite,
    )
    return answer(request)


def _queries(settled: Settings) -> Mapping[str, Query]:
    """Return the named queries of the project."""
    from warehouse.project.named_queries import load_queries
    from warehouse.project.project import Project

    return load_queries(Project.open(settled.project).query_folders)


def _list_queries(settled: Settings, word: str | None) -> int:
    """Print the queries by question or, with a word, the matching queries with their parameters."""
    from warehouse.reader.finding import matching_queries, print_queries, print_query

    queries = _queries(settled)
    if word is None:
        print_queries(queries, sys.stdout, target=settled.target)
    else:
        for query in matching_queries(queries, word):
            print_query(query, sys.stdout)
    return 0


_NAMES = """
    SELECT schema_name || '.' || table_name FROM duckdb_columns() WHERE NOT internal
    UNION SELECT column_name FROM duckdb_columns() WHERE NOT internal
    UNION SELECT 'query.' || function_name FROM duckdb_functions() WHERE schema_name = 'query'
    UNION SELECT upper(keyword_name) FROM duckdb_keywords()
    ORDER BY ALL
"""
"""Words that Tab completes, beside options and named queries."""


def _shell(settled: Settings, given: argparse.Namespace) -> int:
    """Read inputs until the user leaves, and ask each; if stdin is no terminal, end at its end or the first error.

    Inputs are arguments of `warehouse sql`, after those that it was called with.
    """
    queries = _queries(settled)
    with connect(settled.target) as connection:
        build, published = connection.execute("SELECT build_id, published_utc::VARCHAR FROM meta.build").fetchall()[0]
        names = [*SQL_OPTIONS, *queries, *(name for (name,) in connection.execute(_NAMES).fetchall())]
    names += {f"--{name.replace('_', '-')}" for query in queries.values() for name in query.parameters}
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print(f"warehouse {build}, published {published} UTC")
        print("SQL ends in a semicolon, -q NAME is a named query, Tab completes, Ctrl-D leaves")
    with _line_editor(names) if is_terminal else nullcontext():
        for text in _inputs(is_terminal):
            try:
                again = argparse.Namespace(**vars(given))
                words = with_parameters(["sql", *_words(text)])[1:]
                if run_sql(given.parser.parse_args(words, again)) and is_terminal:
                    sys.stderr.write("interrupted\n")
            except KeyboardInterrupt:
                sys.stderr.write("\n")
            except (Exception, SystemExit) as error:
                if not is_terminal:
                    raise
                # argparse prints help and leaves by SystemExit, which must not end the shell.
                if isinstance(error, Exception):
                    from warehouse.cli import print_error

                    print_error(error, settled.target)
    return 0


def _inputs(is_terminal: bool) -> Iterator[str]:
    """Yield each input: a statement that ends in a semicolon or with stdin, or a line of options."""
    waiting = ""
    while True:
        try:
            waiting += input(("         . " if waiting else "warehouse> ") if is_terminal else "") + "\n"
        except KeyboardInterrupt:
            print()
            waiting = ""
        except EOFError:
            break
        text = waiting.strip()
        if text.rstrip("; ").lower() in ("exit", "quit", "\\q"):
            return
        if not text or text.endswith(";") or _is_options(text):
            waiting = ""
            if text.strip("; "):
                yield text
    if waiting.strip() and not is_terminal:
        yield waiting.strip()


def _is_options(text: str) -> bool:
    return text.split(maxsplit=1)[0].partition("=")[0] in SQL_OPTIONS


def _words(text: str) -> list[str]:
    """Return an input as arguments of `warehouse sql`."""
    import shlex

    if not _is_options(text):
        # SQL may begin with a dash, as a comment does.
        return ["--", text]
    try:
        return shlex.split(text.rstrip("; "))
    except ValueError as error:
        raise QueryError(f"{error} in: {text}") from error


@contextmanager
def _line_editor(names: Sequence[str]) -> Iterator[None]:
    """Let readline complete names and keep a history, where Python has it."""
    try:
        import readline
    except ImportError:  # some builds of Python lack readline
        yield
        return
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    history = Path(base) / "warehouse" / "history"
    with suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(history)
    readline.set_history_length(10_000)
    # Without the dot and the dash: `metrics.port_hour` and `--server` are one word each.
    readline.set_completer_delims(" \t\n()[]=,;'\"<>+*/")
    readline.set_completer(
        lambda begun, at: [*(one for one in names if one.lower().startswith(begun.lower())), None][at]
    )
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(history)
