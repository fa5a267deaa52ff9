"""Shell session: commands, statements and their output, independent of a terminal."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.reader import citations, table_info
from warehouse.reader.cited_sources import citation_lines
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.explanations import Answer, explain
from warehouse.reader.guard import Statement, check_read_only
from warehouse.reader.interrupt import interruptible
from warehouse.reader.named_queries import Query, bind, find_query
from warehouse.reader.output import FORMATS, JSON_FORMATS, check_format, write_result
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import OPENING, Asked, for_people, open_result
from warehouse.reader.shell.habits import as_command, is_command
from warehouse.reader.sink import check_output, choose_format
from warehouse.reader.text_table import WIDTH
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

ROWS_SHOWN = 40
COMMANDS = {
    "\\?": "this list",
    "\\d": "\\d [PATTERN]  tables; \\d TABLE  its columns with type, unit and meaning, its checks",
    "\\queries": "the named queries, a sentence each",
    "\\run": "\\run NAME --PARAMETER VALUE  a named query; also :NAME VALUE",
    "\\lineage": "\\lineage TABLE[.COLUMN]  where it is from",
    "\\cite": "the last answer as a citation; `warehouse cite ID` computes it again",
    "\\format": f"\\format NAME  of {', '.join(name for name in FORMATS if name != 'parquet')}",
    "\\limit": "\\limit N  rows shown, 0 for all",
    "\\i": "\\i FILE  the statements of a file",
    "\\o": "\\o FILE  the next answer into a file",
    "\\x": "a line a column instead of a row, on or off",
    "\\raw": "exact values and all columns in tables, on or off",
    "\\timing": "how long each answer takes, on or off",
    "\\e": "the last query in your editor",
    "\\q": "leave, as Ctrl-D does",
}


@dataclass
class Session:
    """Open warehouse with the state of a shell.

    Parameters
    ----------
    connection
        Connection from `connect`, with `json_errors`.
    target
        Folder of the warehouse.
    queries
        Named queries.
    lineage
        Function that returns the lineage of a table or column as text.
    out
        Stream for answers.
    data_folders
        Readable folders in addition to those recorded by the build.
    width
        Characters per line; None asks the terminal.
    watch
        Called repeatedly while a query runs.
    """

    connection: duckdb.DuckDBPyConnection
    target: Path
    queries: Mapping[str, Query]
    lineage: Callable[[str], str]
    out: TextIO
    data_folders: Sequence[Path] = ()
    width: int | None = None
    watch: Callable[[], None] | None = None
    raw: bool = False
    timing: bool = False
    expanded: bool = False
    format: str = "table"
    limit: int = ROWS_SHOWN
    memory: str | None = None
    threads: int | None = None
    timeout: float | None = None
    escaped: bool | None = None
    """Escape control characters; by default only if `out` is a terminal."""
    done: bool = False
    last_text: str = ""
    _last: tuple[Statement, Mapping[str, object], str | None] | None = field(default=None, repr=False)
    _output: Path | None = None

    def run(self, text: str) -> None:
        """Run a line: a `\\command`, or SQL.

        Raises
        ------
        WarehouseError
            If the line fails; the message is one sentence and the session goes on.
        KeyboardInterrupt
            After Ctrl-C; the session goes on.
        """
        line = as_command(text.strip(), self.queries)
        if not line:
            return
        if line.startswith("\\"):
            self._command(line)
        else:
            self.last_text = line
            self._sql(line, {}, None)

    def is_whole(self, text: str) -> bool:
        """Return True if Enter runs the text: a command, or SQL that ends in a semicolon."""
        line = text.strip()
        return not line or is_command(line) or line.endswith(";")

    def _command(self, line: str) -> None:
        name, _, rest = line.rstrip("; ").partition(" ")
        argument = rest.strip()
        match name:
            case "\\?":
                self.out.writelines(
                    f"{name:<10} {about.removeprefix(name).strip()}\n" for name, about in COMMANDS.items()
                )
            case "\\q":
                self.done = True
            case "\\d":
                self._describe(argument)
            case "\\queries":
                self.out.writelines(f"{query.name:<24} {query.about}\n" for query in self.queries.values())
            case "\\run":
                self._named(argument)
            case "\\i":
                self._read(argument)
            case "\\lineage":
                if not argument:
                    raise QueryError("\\lineage needs a name", hint="\\lineage metrics.port_hour.in_bytes")
                self.out.write(self.lineage(argument) + "\n")
            case "\\cite":
                self._cite()
            case "\\format":
                self._set_format(argument)
            case "\\limit":
                if not argument.isdigit():
                    raise QueryError(f"not a number of rows: {argument}", hint="\\limit 100, or \\limit 0 for all")
                self.limit = int(argument)
            case "\\o":
                path = Path(argument).expanduser() if argument else None
                if path:
                    check_output(path, self.target)
                    choose_format(None, path, self.out)
                self._output = path
            case "\\x":
                self.expanded = not self.expanded
                self.out.write(f"a line a column: {'on' if self.expanded else 'off'}\n")
            case "\\raw":
                self.raw = not self.raw
                self.out.write(f"exact values: {'on' if self.raw else 'off'}\n")
            case "\\timing":
                self.timing = not self.timing
                self.out.write(f"timing: {'on' if self.timing else 'off'}\n")
            case _:
                raise QueryError(f"no command {name}", hint=nearest_hint(name, COMMANDS) or "\\? lists them")

    def _read(self, argument: str) -> None:
        """Run the statements of a file."""
        if not argument:
            raise QueryError("\\i needs a file", hint="\\i query.sql")
        path = Path(argument).expanduser()
        try:
            self.last_text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise QueryError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}") from error
        self._sql(self.last_text, {}, None)

    def _describe(self, name: str) -> None:
        tables = table_info.list_tables(self.connection)
        schema = name.rstrip(".")
        if any(table.name.startswith(f"{schema}.") for table in tables):
            name = f"{schema}.*"
        if not name or any(char in name for char in "*?"):
            table_info.print_tables(table_info.list_tables(self.connection, name or None), self.out, width=self.width)
        else:
            relation = table_info.describe(self.connection, name)
            table_info.print_shown(table_info.Shown(relation, (), ()), self.out, width=self.width)

    def _named(self, text: str) -> None:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise QueryError(f"{error} in: {text}") from error
        if not words:
            raise QueryError("\\run needs a name", hint="\\queries lists them")
        query = find_query(words[0], self.queries)
        given: dict[str, str] = {}
        rest = words[1:]
        while rest:
            word = rest.pop(0)
            name, equals, value = word.partition("=")
            if not name.startswith("--"):
                raise QueryError(f"{word} is no parameter", hint=f"\\run {query.name} --NAME VALUE")
            if not equals:
                if not rest:
                    raise QueryError(f"{name} has no value", hint=f"give {name} VALUE")
                value = rest.pop(0)
            given[name.removeprefix("--")] = value
        self._sql(query.sql, given, query)

    def _set_format(self, name: str) -> None:
        if check_format(name) == "parquet":
            raise QueryError("Parquet cannot be shown", hint="\\o FILE.parquet writes the next answer to a file")
        self.format = name

    def _cite(self) -> None:
        if self._last is None:
            raise QueryError("there is no answer to cite yet")
        statement, values, query = self._last
        citation = interruptible(
            self.connection,
            lambda: citations.cite(self.connection, self.target, statement, values, query=query),
            self.watch,
        )
        self.out.writelines(citation_lines(self.target, citation, WIDTH if self.out.isatty() else None))

    def _sql(self, text: str, given: Mapping[str, str], query: Query | None) -> None:
        if self._output:
            output, self._output = self._output, None
            run_query(
                self.target,
                None if query else text,
                query=query,
                parameters=given,
                data_folders=self.data_folders,
                output=output,
                stream=self.out,
                memory=self.memory,
                threads=self.threads,
                timeout=self.timeout,
            )
            self.out.write(f"written to {output}\n")
            return
        values = bind(query, given) if query else {}
        for statement in check_read_only(self.connection, text, path=query.path if query else None):
            started = time.perf_counter()
            self._last = None
            refuse_damage(self.target, statement.tables)
            answer = None
            if self.timeout or self.memory:
                self._answer_bounded(statement, given, query)
            else:
                work = partial(self._answer, statement, values, text, query)
                answer = interruptible(self.connection, work, self.watch)
            self._last = (statement, values, query.name if query else None)
            if answer and self.format in ("table", "lines"):
                asked = Asked(self.target, query, values, given)
                explain(self.connection, [answer], asked, self.out, self.out, self.width or WIDTH)
            if self.timing:
                self.out.write(f"{time.perf_counter() - started:.3f} s\n")

    def _answer_bounded(self, statement: Statement, given: Mapping[str, str], query: Query | None) -> None:
        """Answer in a child process that can be killed; the shell's settings apply."""
        form = "lines" if self.expanded and self.format == "table" else self.format
        status = run_query(
            self.target,
            None if query else statement.text,
            query=query,
            parameters=given,
            data_folders=self.data_folders,
            format=form,
            limit=self.limit if form in ("table", "lines") else 0,
            width=self.width,
            memory=self.memory,
            threads=self.threads,
            timeout=self.timeout,
            stream=self.out,
            escaped=self.escaped,
            raw=self.raw,
        )
        if status:
            raise KeyboardInterrupt

    def _answer(self, statement: Statement, values: Mapping[str, object], text: str, query: Query | None) -> Answer:
        from warehouse.base.startup import duckdb

        offset = statement.start - (len(OPENING) if statement.kind == "SELECT" else 0)
        try:
            result = open_result(self.connection, statement, values, nested_as_json=self.format in JSON_FORMATS)
            result.shows_all = "\\x"
            result.target = self.target
            form = "lines" if self.expanded and self.format == "table" else self.format
            is_table = form in ("table", "lines")
            if is_table and not self.raw:
                for_people(result, query)
            limit = (self.limit or None) if is_table else None
            count = write_result(result, form, self.out, width=self.width, limit=limit, escaped=self.escaped)
            return Answer(statement, count, result)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            path = query.path if query else None
            raise from_engine(error, text, self.connection, offset=offset, path=path) from error
