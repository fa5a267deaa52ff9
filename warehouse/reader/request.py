"""Question to a warehouse: what is asked, within which limits, and how the answer is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base import startup
from warehouse.base.errors import QueryError, nearest_hint
from warehouse.reader.guard import Statement, check_read_only, check_text

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 + SIGINT, as shells report it."""
EXPLANATION_SECONDS = 5.0
"""Time for all explanations of an answer."""
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

    def statement(self, connection: startup.duckdb.DuckDBPyConnection, values: Mapping[str, object]) -> Statement:
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

    def rows(self) -> int | None:
        """Return the effective row limit; None for all rows."""
        if self.limit is None:
            return ROWS_ON_TERMINAL if self.format == "table" and sys.stdout.isatty() else None
        if self.limit < 0:
            raise QueryError(f"the limit is {self.limit}", hint="--limit N with N above 0, or 0 for all rows")
        return self.limit or None
