"""Reasons for empty answers, as a sentence: an unknown name, an hour that is not loaded, missing files.

`meta.models.needs` has groups of relations for each table. A table is empty if all relations of a group are empty.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.base.text import few
from warehouse.formats import known_formats
from warehouse.reader.known_values import known_values, near_or_listed
from warehouse.reader.named_queries import parse_value
from warehouse.reader.query_notes import sentence_of
from warehouse.reader.relation import dropped_hours
from warehouse.reader.why_null import unknown_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Asked

_COLUMNS = {"leaf": "switch", "hour": "hour_utc", "before": "hour_utc", "after": "hour_utc"}
"""Column of the values of a query's parameter that has another name."""
_UNMET = "no row of the loaded files meets its conditions"
"""Reason of last resort: no kind of file is missing."""
_TRACES = {"acme": "AcmeTrace", "itp": "ITP"}


def no_rows(connection: duckdb.DuckDBPyConnection, statement: Statement, asked: Asked) -> str:
    """Return `no rows` with the reason, if known.

    Only `meta` and small tables are read, and last the sentence of a named query's header, which may take long.

    Parameters
    ----------
    connection
        Connection to the warehouse; nothing else runs on it.
    statement
        Statement that returned no rows.
    asked
        Named query, if any, with its parameters.
    """
    query, relations = asked.query, _Relations(connection)
    reasons = list(
        unknown_parameters(connection, query, asked.given) if query else unknown_values(connection, statement)
    )
    tables = () if reasons else sorted(statement.tables)
    missing = [reason for table in tables if (reason := relations.why_empty(table))]
    left_out = dropped(connection, statement)
    own = sentence_of(connection, statement, asked.values, query.empty) if query else None
    if query and own:  # a SELECT knows the files that are missing
        is_select = query.empty.startswith("SELECT ")
        missing = [*(one for one in missing if not is_select and _UNMET not in one), own]
    reasons += [*missing, *left_out]
    if not reasons:
        return "no rows: none meets the conditions of the query" if relations.needs else "no rows"
    return "no rows: " + "; ".join(dict.fromkeys(reasons))


def dropped(connection: duckdb.DuckDBPyConnection, statement: Statement) -> list[str]:
    """Return a sentence for each table of which `--keep-hours` left out hours."""
    return [said for table in sorted(statement.tables) if (said := dropped_hours(connection, table))]


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

    @cached_property
    def loaded(self) -> set[str]:
        """Formats with files."""
        if "raw.files" not in self.kinds:
            return set()
        return {one for (one,) in self.connection.execute("SELECT DISTINCT format FROM raw.files").fetchall()}

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


def unknown_parameters(
    connection: duckdb.DuckDBPyConnection, query: Query, given: Mapping[str, object]
) -> Iterator[str]:
    """Yield a sentence for each parameter whose value is in no loaded file: a server, a switch, an hour."""
    for parameter, value in ((name, str(one)) for name, one in given.items() if one is not None):
        column = _COLUMNS.get(parameter, parameter)
        listed = known_values(connection, column).values if parameter in query.parameters else ()
        if not listed:
            continue
        if query.parameters[parameter].type == "TIMESTAMP":
            if str(parse_value(value, "TIMESTAMP")) not in listed:
                loaded = few([hour.removesuffix(":00") for hour in listed])
                yield f"the hour {value} is not loaded; loaded (UTC): {loaded}"
        elif value.lower() not in map(str.lower, listed):
            yield f"no {column} {value}{near_or_listed(value, listed)}"
        elif column == "switch" and value.lower() not in map(str.lower, _counted(connection)):
            yield f"{value} is not loaded: no port counters of it in the data folders (warehouse doctor)"


def _counted(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the switches whose counter files are loaded."""
    rows = connection.execute("SELECT switch FROM reference.dim_switch WHERE has_counters").fetchall()
    return [switch for (switch,) in rows]
