"""Reasons for empty answers, as a sentence: an unknown name, an hour that is not loaded, missing files.

`meta.models.needs` has groups of relations for each table. A table is empty if all relations of a group are empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.errors import nearest
from warehouse.base.text import few
from warehouse.formats import known_formats
from warehouse.reader.named_queries import bind
from warehouse.reader.query_notes import sentence_of
from warehouse.reader.relation import dropped_hours
from warehouse.reader.why_null import null_notes, unknown_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Result

_NAMES = {
    "server": ("topology.servers", "server", "server"),
    "switch": ("topology.switches", "switch", "switch"),
    "leaf": ("topology.switches", "switch", "switch"),
    "task": ("metrics.task_summary", "task", "task"),
    "trace": ("metrics.jobs", "trace", "trace"),
}
"""Source of the known values of a query parameter: table, column, and noun for messages."""
_UNMET = "no row of the loaded files meets its conditions"
"""Reason of last resort: no kind of file is missing."""
_HOURS = ("hour", "before", "after")
_TRACES = {"acme": "AcmeTrace", "itp": "ITP"}


def remarks(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    count: int,
    result: Result | None,
    query: Query | None,
    given: Mapping[str, object],
) -> list[str]:
    """Return remarks to print below an answer: why it is empty, or why it has NULLs."""
    if not count:
        return [no_rows(connection, statement, query, given)]
    if query or result is None or not result.nulls:  # a named query's header has its own reasons
        return []
    names = [column.name for column in result.columns]
    notes = null_notes(connection, statement, names, result.nulls, given)
    return [f"note: {note}" for note in (*notes, *_dropped(connection, statement))]


def no_rows(
    connection: duckdb.DuckDBPyConnection, statement: Statement, query: Query | None, given: Mapping[str, object]
) -> str:
    """Return `no rows` with the reason, if known.

    Parameters
    ----------
    connection
        Connection to the warehouse; nothing else runs on it.
    statement
        Statement that returned no rows.
    query, given
        Named query and its parameters, if any.
    """
    relations = _Relations(connection)
    reasons = unknown_parameters(connection, query, given) if query else list(unknown_values(connection, statement))
    own = None
    if query and query.empty:
        own = sentence_of(
            connection, statement, bind(query, {name: str(one) for name, one in given.items()}), query.empty
        )
    if own is None or not query or not query.empty.startswith("SELECT "):  # a SELECT knows the files that are missing
        reasons = reasons or [reason for table in sorted(statement.tables) if (reason := relations.why_empty(table))]
    reasons = [*(one for one in reasons if not (own and _UNMET in one)), *([own] if own else [])]
    reasons += _dropped(connection, statement)
    if not reasons:
        return "no rows: none meets the conditions of the query" if relations.needs else "no rows"
    return "no rows: " + "; ".join(dict.fromkeys(reasons))


def unknown_parameters(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]) -> list[str]:
    """Return a sentence for each value of a parameter that is not loaded: a server, a switch, an hour."""
    return [*_unknown_names(connection, query, given), *_not_loaded(connection, query, given)]


def reasons_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> dict[str, str]:
    """Return why each of these tables is empty, without its name; a table with rows is left out."""
    relations = _Relations(connection)
    found = {table: relations.why_empty(table) for table in tables}
    return {table: reason.removeprefix(f"{table} is empty: ") for table, reason in found.items() if reason}


def why_empty(connection: duckdb.DuckDBPyConnection, table: str) -> str | None:
    """Return why a table is empty, or None if it has rows or the build has no reasons."""
    return _Relations(connection).why_empty(table)


class _Relations:
    """Relations of a warehouse: kinds, row counts, and needs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        known = connection.execute(
            "SELECT 1 FROM duckdb_columns() WHERE schema_name = 'meta' AND table_name = 'models' "
            "AND column_name = 'needs'"
        ).fetchone()
        rows = connection.execute("SELECT model, kind, rows, needs, reads FROM meta.models").fetchall() if known else []
        self.needs: dict[str, list[list[str]]] = {name: needs or [] for name, _, _, needs, _ in rows}
        self.reads: dict[str, list[str]] = {name: reads or [] for name, *_, reads in rows}
        self.kinds = {name: kind for name, kind, *_ in rows}
        self.rows = {name: count for name, _, count, *_ in rows}
        self.formats = _formats() if rows else {}
        self.loaded = (
            {one for (one,) in connection.execute("SELECT DISTINCT format FROM raw.files").fetchall()}
            if "raw.files" in self.kinds
            else set()
        )

    def why_empty(self, table: str) -> str | None:
        if table not in self.kinds or not self.is_empty(table):
            return None
        missing = list(dict.fromkeys(self.missing(table)))
        if not missing and (dropped := dropped_hours(self.connection, table)):
            return dropped
        if not missing:
            absent = ", ".join(sorted(self.absent(table)))
            return f"{table} is empty: {_UNMET}" + (f"; not loaded: {absent}" if absent else "")
        listed = ", ".join(missing[:-1]) + " or " + missing[-1] if len(missing) > 1 else missing[0]
        return f"{table} is empty: no files of {listed} in the data folders (warehouse doctor)"

    def absent(self, table: str) -> set[str]:
        """Return the kinds of job files, as `jobs of AcmeTrace`, that the table reads and that are not loaded."""
        found, waiting = set[str](), [table]
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            formats = self.formats.get(name, ()) if self.kinds.get(name) == "raw" and self.is_empty(name) else ()
            for trace, _, kind in (one.partition(".") for one in formats):
                found |= {f"{kind.replace('_', ' ')} of {_TRACES[trace]}"} if trace in _TRACES else set()
            more = set(self.reads.get(name, ())) - seen
            seen |= more
            waiting += more
        return found

    def is_empty(self, name: str) -> bool:
        if self.kinds.get(name) == "raw":
            return not set(self.formats.get(name, ())) & self.loaded if name in self.formats else False
        if self.rows.get(name) is None and self.kinds.get(name) == "view":
            groups = self.needs[name]
            return any(all(map(self.is_empty, group)) for group in groups)
        return self.rows.get(name) == 0

    def missing(self, name: str) -> Iterator[str]:
        """Yield the kinds of files that the table needs and that are missing."""
        if self.kinds.get(name) == "raw":
            yield from (_label(one, self.loaded) for one in self.formats.get(name, ()))
            return
        for group in self.needs.get(name, ()):
            if group and all(map(self.is_empty, group)):
                for one in group:
                    yield from self.missing(one)


def _dropped(connection: duckdb.DuckDBPyConnection, statement: Statement) -> list[str]:
    """Return a sentence for each table of which `--keep-hours` left out hours."""
    return [said for table in sorted(statement.tables) if (said := dropped_hours(connection, table))]


def _formats() -> dict[str, list[str]]:
    """Return the formats whose files each raw relation holds."""
    found: dict[str, list[str]] = {}
    for one in known_formats():
        for relation in one.relations:
            found.setdefault(relation.full_name, []).append(one.name)
    return found


def _label(name: str, loaded: Iterable[str | None]) -> str:
    """Return a format's name for people: the job trace, if no file of it is loaded, else the kind of file."""
    trace, _, kind = name.partition(".")
    shown = kind.replace("_", " ")
    if trace not in _TRACES:
        return shown
    is_partial = any(one and one.startswith(f"{trace}.") for one in loaded)
    return f"{shown} of {_TRACES[trace]}" if is_partial else _TRACES[trace]


def _unknown_names(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]) -> Iterator[str]:
    for parameter, (table, column, called) in _NAMES.items():
        value = given.get(parameter)
        if value is None or parameter not in query.parameters:
            continue
        listed = [str(one) for (one,) in _ask(connection, f"SELECT DISTINCT {column} FROM {table} ORDER BY ALL")]
        if listed and str(value).lower() not in {one.lower() for one in listed}:
            close = nearest(str(value), listed)
            near = (
                f"; near: {close}"
                if close
                else f"; {'there is only' if len(listed) == 1 else 'there are'} {few(listed)}"
            )
            yield f"no {called} {value}{near}"
        elif called == "switch" and listed:
            seen = _ask(connection, "SELECT 1 FROM topology.switches WHERE switch = $1 AND has_counters", [str(value)])
            if not seen:
                yield f"{value} is not loaded: no port counters of it in the data folders (warehouse doctor)"


def _not_loaded(connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]) -> Iterator[str]:
    for parameter in _HOURS:
        value = given.get(parameter)
        if value is None or parameter not in query.parameters:
            continue
        hours = [
            one for (one,) in _ask(connection, "SELECT DISTINCT hour_utc::VARCHAR FROM metrics.port_hour ORDER BY ALL")
        ]
        requested = _ask(connection, "SELECT TRY_CAST($1 AS TIMESTAMP)::VARCHAR", [str(value)])[0][0]
        if hours and requested not in hours:
            listed = few([hour.removesuffix(":00") for hour in hours])
            yield f"the hour {value} is not loaded; loaded (UTC): {listed}"


def _ask(connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> list[tuple[str, ...]]:
    """Return rows, or none if the table is not in the warehouse."""
    from warehouse.base.startup import duckdb

    try:
        return connection.execute(sql, list(values)).fetchall()
    except duckdb.CatalogException:
        return []
