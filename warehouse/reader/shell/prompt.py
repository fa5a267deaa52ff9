"""Terminal of the shell: prompt_toolkit for editing, completion and history; a pager; a progress bar."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.base.error_text import error_text
from warehouse.base.errors import QueryError, WarehouseError
from warehouse.reader.connection import connect
from warehouse.reader.pager import show
from warehouse.reader.shell.completion import Catalog, complete, read_catalog
from warehouse.reader.shell.session import COMMANDS, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document

    from warehouse.reader.named_queries import Query

_BAR = 30
_SECONDS_BEFORE_BAR = 0.7


def run_shell(
    target: Path,
    queries: Mapping[str, Query],
    lineage: Callable[[str], str],
    *,
    data_folders: Sequence[Path] = (),
    memory: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
) -> int:
    """Open a warehouse and run lines until the user leaves, or all lines of a pipe if stdin is no terminal.

    Raises
    ------
    QueryError
        If there is no warehouse.
    """
    connection = connect(
        target,
        data_folders,
        memory=memory,
        threads=threads,
        json_errors=True,
        tell_moved=lambda message: sys.stderr.write(f"note: {message}\n"),
    )
    try:
        session = Session(connection, target, queries, lineage, sys.stdout, data_folders)
        session.memory, session.threads, session.timeout = memory, threads, timeout
        if not sys.stdin.isatty():
            return _run_piped(session)
        return _interactive(session)
    finally:
        connection.close()


def _run_piped(session: Session) -> int:
    """Run lines from a pipe: statements end in a semicolon, the first error ends the shell."""
    waiting = ""
    for line in [*sys.stdin, ";"]:
        waiting += line
        if waiting.strip(" \n\t;") and session.is_whole(waiting):
            session.run(waiting)
            waiting = ""
        elif not waiting.strip(" \n\t;"):
            waiting = ""
        if session.done:
            break
    return 0


def _interactive(session: Session) -> int:
    try:
        prompt = _prompt(session)
    except ImportError as error:
        raise QueryError(
            "the shell needs prompt_toolkit", hint="pip install 'gpu-warehouse[shell]', or give a query"
        ) from error
    row = session.connection.execute("SELECT build_id, published_utc FROM meta.build").fetchone() or ("?", "?")
    print(f"warehouse {row[0]}, published {row[1]} UTC")  # noqa: T201
    print("SQL ends in a semicolon, Tab completes, \\? lists commands, Ctrl-D leaves")  # noqa: T201
    while not session.done:
        try:
            text = prompt.prompt("warehouse> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        _run_input(session, text)
    return 0


def _run_input(session: Session, text: str) -> None:
    """Run one input; page its answer if it is longer than the screen."""
    if text.strip() == "\\e":
        text = _edited(session.last_text)
        print(text)  # noqa: T201
    answer = io.StringIO()
    session.out, session.width, session.escaped = answer, shutil.get_terminal_size().columns, True
    bar = _Bar(session.connection)
    session.watch = bar
    try:
        session.run(text)
    except KeyboardInterrupt:
        bar.gone()
        sys.stderr.write("cancelled\n")
    except WarehouseError as error:
        bar.gone()
        sys.stderr.write(f"{error_text(error, session.width)}\n")
    bar.gone()
    show(answer.getvalue())


def _edited(text: str) -> str:
    """Return the text after editing in the user's editor."""
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.NamedTemporaryFile("w+", suffix=".sql", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        subprocess.run([*editor.split(), file.name], check=False)  # noqa: S603
        return Path(file.name).read_text(encoding="utf-8")


class _Bar:
    """Progress bar on the last line of a terminal, for long queries."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        import time

        self._connection = connection
        self._started = time.monotonic()
        self._shown = False

    def __call__(self) -> None:
        import time

        if time.monotonic() - self._started < _SECONDS_BEFORE_BAR or not sys.stderr.isatty():
            return
        share = self._connection.query_progress() / 100
        if not 0 <= share <= 1:
            return
        full = round(share * _BAR)
        sys.stderr.write(f"\r{'━' * full}{'╌' * (_BAR - full)} {share:4.0%}  Ctrl-C cancels ")
        sys.stderr.flush()
        self._shown = True

    def gone(self) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False


def _prompt(session: Session) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer

    names = read_catalog(session.connection, session.queries, COMMANDS)

    class Names(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            del complete_event
            return _completions(document.text_before_cursor, names)

    def goes_on() -> bool:
        return not session.is_whole(asked.default_buffer.text)

    asked: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history())),
        completer=Names(),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        lexer=PygmentsLexer(SqlLexer),
        multiline=Condition(goes_on),
        prompt_continuation="         . ",
    )
    return asked


def _completions(text: str, names: Catalog) -> Iterable[Completion]:
    from prompt_toolkit.completion import Completion

    for found in complete(text, names):
        about = found.kind if not found.about else f"{found.kind}  {found.about}"
        yield Completion(found.text, start_position=-found.start, display_meta=about)


def _history() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(base) / "warehouse"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "history"
