"""Reasons for empty answers, as a sentence: an unknown name, an hour that is not loaded, missing files.

`meta.models.needs` has groups of relations for each table. A table is empty if all relations of a group are empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.text import few
from warehouse.graph.empty_tables import UNMET, EmptyTables
from warehouse.reader.known_values import known_values, near_or_listed
from warehouse.reader.named_queries import parse_value
from warehouse.reader.query_notes import sentence_of
from warehouse.reader.why_null import unknown_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import duckdb

    from warehouse.reader.guard import Statement
    from warehouse.reader.named_queries import Query
    from warehouse.reader.result import Asked

_COLUMNS = {"leaf": "switch", "hour": "hour_utc", "before": "hour_utc", "after": "hour_utc"}
"""Column of the values of a query's parameter that has another name."""


def no_rows(connection: duckdb.DuckDBPyConnection, statement: Statement, asked: Asked) -> str:
    """Return `no rows` with the reason.

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
    own = sentence_of(connection, statement, asked.values, query.empty) if query else None
    if query and own:  # a SELECT knows the files that are missing
        is_select = query.empty.startswith("SELECT ")
        missing = [*(one for one in missing if not is_select and UNMET not in one), own]
    reasons += missing
    if not reasons:
        return "no rows: none meets the conditions of the query"
    return "no rows: " + "; ".join(dict.fromkeys(reasons))


def reasons_of(connection: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> dict[str, str]:
    """Return why each of these tables is empty, without its name; a table with rows is left out."""
    relations = _Relations(connection)
    found = {table: relations.why_empty(table) for table in tables}
    return {table: reason.removeprefix(f"{table} is empty: ") for table, reason in found.items() if reason}


def why_empty(connection: duckdb.DuckDBPyConnection, table: str) -> str | None:
    """Return why a table is empty, or None if it has rows."""
    return _Relations(connection).why_empty(table)


class _Relations:
    """Relations of a warehouse that may be empty."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        rows = connection.execute("SELECT model, kind, rows, needs, reads FROM meta.models").fetchall()
        loaded = set[str]()
        if any(name == "raw.files" for name, *_ in rows):
            loaded = {one for (one,) in connection.execute("SELECT DISTINCT format FROM raw.files").fetchall()}
        self.needs: dict[str, list[list[str]]] = {name: needs or [] for name, _, _, needs, _ in rows}
        self.tables = EmptyTables(
            {name: kind for name, kind, *_ in rows},
            {name: count for name, _, count, *_ in rows},
            self.needs,
            {name: reads or [] for name, *_, reads in rows},
            loaded,
        )

    def why_empty(self, table: str) -> str | None:
        if table not in self.needs or not self.tables.is_empty(table):
            return None
        lacks_files = self.tables.lacks_files(table)
        return f"{table} is empty: {self.tables.reason(table)}" + (" (warehouse doctor)" if lacks_files else "")


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
