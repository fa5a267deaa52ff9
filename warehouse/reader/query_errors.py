"""Engine errors as one sentence, with their place in the query and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warehouse.base import startup
from warehouse.base.errors import Place, QueryError, nearest, nearest_hint
from warehouse.base.sql_text import line_column
from warehouse.engine.duckdb_errors import ErrorDetails, is_full_disk, read

_TABLE_NAME = startup.regex(r'(?:"[^"]+"|[^\s."]+)(?:\s*\.\s*(?:"[^"]+"|[^\s."]+))*')
FULL = "the disk is full that is written to"
MOVED = "was the target moved? `warehouse relocate` writes its paths anew"


def located(
    message: str, sql: str, offset: int, *, length: int = 1, path: Path | None = None, hint: str | None = None
) -> QueryError:
    """Return an error located at a byte offset of `sql`: as `file:line:col`, or in the sentence if there is no file."""
    line, column = line_column(sql, offset)
    error = (
        QueryError(message, hint=hint, place=Place(path, line, column))
        if path
        else QueryError(f"{message}, at {line}:{column}", hint=hint)
    )
    error.source = (sql, offset, length)
    return error


def from_engine(
    error: Exception,
    sql: str,
    connection: startup.duckdb.DuckDBPyConnection,
    *,
    offset: int = 0,
    path: Path | None = None,
) -> QueryError:
    """Convert an engine error to a `QueryError`.

    Parameters
    ----------
    error
        Engine error; its text is JSON if the connection was opened with `json_errors`.
    sql
        SQL as the user wrote it.
    connection
        Connection to look up names.
    offset
        Bytes to add to the engine's position, to get a position in `sql`. Needed if `sql` ran wrapped.
    path
        File of `sql`, if any.
    """
    parsed = read(error)
    text = sql.encode()
    at = -1 if parsed.position is None else parsed.position + offset
    known = parsed.of_text and 0 <= at <= len(text)
    word = text[at : at + parsed.length].decode(errors="replace") if known else ""
    if parsed.kind == "relation" and (named := _TABLE_NAME.match(word)):  # the name without the table alias
        word = named[0]
    if parsed.kind == "relation" and parsed.name and not word.replace('"', "").lower().endswith(parsed.name.lower()):
        # the engine wrote the statement anew: PRAGMA table_info('x') as SELECT * FROM pragma_table_info('x')
        word, known = parsed.name, False
    message, hint = _sentence(parsed, word, connection)
    if not known:
        return QueryError(message, hint=hint, place=Place(path) if path else None)
    return located(message, sql, at, length=len(word.encode()), path=path, hint=hint)


def _sentence(parsed: ErrorDetails, word: str, connection: startup.duckdb.DuckDBPyConnection) -> tuple[str, str | None]:
    """Return the sentence and the hint; `word` is the text at the position of the error."""
    if parsed.kind == "relation":
        name = word or parsed.name or ""
        tables = connection.execute("SELECT schema || '.' || name FROM (SHOW ALL TABLES)").fetchall()
        return f"no table {name}", nearest_table(name, (table for (table,) in tables))
    if parsed.name:
        where = f" in {parsed.table}" if parsed.table else ""
        return f"no {parsed.kind} {parsed.name}{where}", nearest_hint(parsed.name, parsed.candidates)
    if is_full_disk(parsed.message):
        return FULL, "make room there, or write to another disk"
    if parsed.no_access:
        hint = MOVED if "/parts/" in parsed.no_access else "-d DIR, in Python data=[DIR], lets files below DIR be read"
        return f"{parsed.no_access} is outside the target and the data folders", hint
    if parsed.no_files:
        return f"no such file: {parsed.no_files}", MOVED
    return parsed.message.rstrip(".!"), parsed.advice


START = "start."
"""Schema of second names of tables: not shown where a word or a short name is looked up."""


def nearest_table(name: str, tables: Iterable[str]) -> str | None:
    """Return a hint with the nearest table: by its own name, first in the schema that was given.

    >>> nearest_table("port_hours", ["metrics.port_hour", "raw.port_counters"])
    'nearest: metrics.port_hour'
    >>> nearest_table("metrics.port_hours", ["metrics.port_hour", "metrics.port_loss_hour", "start.port_hour"])
    'nearest: metrics.port_hour'
    >>> nearest_table("port_hour", ["metrics.port_hour", "raw.port_counters", "start.port_hour"])
    'write metrics.port_hour: a table is named with its schema'
    """
    schema, _, end = name.replace('"', "").rpartition(".")
    known = sorted(table for table in tables if schema or not table.startswith(START))
    same = [table for table in known if table.partition(".")[2] == end.lower()]
    if same and not schema:
        return f"write {' or '.join(same)}: a table is named with its schema"
    # Reversed, so that of tables with one name the first schema by alphabet remains.
    by_end = {table.partition(".")[2]: table for table in reversed(known)}
    in_schema = {table.partition(".")[2]: table for table in known if table.startswith(f"{schema}.")}
    found = in_schema.get(nearest(end, in_schema) or "") or by_end.get(nearest(end, by_end) or "")
    return f"nearest: {found}" if found else None
