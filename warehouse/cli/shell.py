"""Shell: `warehouse sql` without a query. An input is SQL that ends in a semicolon, or options of `warehouse sql`."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.cli.failures import print_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from warehouse.base.settings import Settings

_PROMPT, _GOES_ON = "warehouse> ", "         . "
_LEAVE = frozenset({"exit", "quit", "\\q"})
_MOST_HISTORY = 10_000
_NAMES = """
    SELECT schema_name || '.' || table_name FROM duckdb_columns() WHERE NOT internal
    UNION SELECT column_name FROM duckdb_columns() WHERE NOT internal
    UNION SELECT 'query.' || function_name FROM duckdb_functions() WHERE schema_name = 'query'
    UNION SELECT upper(keyword_name) FROM duckdb_keywords()
    ORDER BY ALL
"""


def run_shell(
    settled: Settings, options: Collection[str], names: Sequence[str], ask: Callable[[Sequence[str]], int]
) -> int:
    """Read inputs until the user leaves, and ask each; if stdin is no terminal, end at its end or the first error.

    Parameters
    ----------
    options
        Options of `warehouse sql`.
    names
        Words that Tab completes, in addition to options, tables, columns and keywords.
    ask
        Function that runs `warehouse sql` with these arguments.
    """
    from warehouse.reader.connection import connect

    with connect(settled.target) as connection:
        build, published = connection.execute("SELECT build_id, published_utc::VARCHAR FROM meta.build").fetchall()[0]
        names = [*options, *names, *(name for (name,) in connection.execute(_NAMES).fetchall())]
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print(f"warehouse {build}, published {published} UTC")
        print("SQL ends in a semicolon, -q NAME is a named query, Tab completes, Ctrl-D leaves")
    with _line_editor(names) if is_terminal else nullcontext():
        for text in _inputs(options, is_terminal):
            try:
                if ask(_words(text, options)) and is_terminal:
                    sys.stderr.write("interrupted\n")
            except KeyboardInterrupt:
                sys.stderr.write("\n")
            except (Exception, SystemExit) as error:
                if not is_terminal:
                    raise
                # argparse prints help and leaves by SystemExit, which must not end the shell.
                if isinstance(error, Exception):
                    print_error(error, settled.target)
    return 0


def _inputs(options: Collection[str], is_terminal: bool) -> Iterator[str]:
    """Yield each input: a statement that ends in a semicolon or with stdin, or a line of options."""
    waiting = ""
    while True:
        try:
            waiting += input((_GOES_ON if waiting else _PROMPT) if is_terminal else "") + "\n"
        except KeyboardInterrupt:
            print()
            waiting = ""
        except EOFError:
            break
        text = waiting.strip()
        if text.rstrip("; ").lower() in _LEAVE:
            return
        if not text or text.endswith(";") or _is_options(text, options):
            waiting = ""
            if text.strip("; "):
                yield text
    if waiting.strip() and not is_terminal:
        yield waiting.strip()


def _is_options(text: str, options: Collection[str]) -> bool:
    return text.split(maxsplit=1)[0].partition("=")[0] in options


def _words(text: str, options: Collection[str]) -> list[str]:
    """Return an input as arguments of `warehouse sql`."""
    if not _is_options(text, options):
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
    readline.set_history_length(_MOST_HISTORY)
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
