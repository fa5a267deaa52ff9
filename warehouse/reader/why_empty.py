"""Reasons for empty answers, as a sentence: an unknown name, an hour that is not loaded, missing files.

Only `meta` and small tables of names are read. `meta.models.needs` has groups of relations for each table: a table is
empty if all relations of a group are empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.text import few
from warehouse.graph.empty_tables import EmptyTables
from warehouse.reader.known_values import known_values, near_or_listed
from warehouse.reader.named_queries import parse_value

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

    Parameters
    ----------
    connection
        Connection to the warehouse; nothing else runs on it.
    statement
        Statement that returned no rows.
    asked
        Named query, if any, with its parameters.
    """
    reasons = list(
        unknown_parameters(connection, asked.query, asked.given)
        if asked.query
        else _unknown_values(connection, _conditions(statement))
    )
    if not reasons:
        relations = _Relations(connection)
        reasons = [reason for table in sorted(statement.tables) if (reason := relations.why_empty(table))]
    return "no rows: " + ("; ".join(dict.fromkeys(reasons)) or "none meets the conditions of the query")


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
    named = {name: str(one) for name, one in given.items() if one is not None and name in query.parameters}
    hours = {name for name in named if query.parameters[name].type == "TIMESTAMP"}
    for value in (named[name] for name in sorted(hours)):
        listed = known_values(connection, "hour_utc")
        if listed and str(parse_value(value, "TIMESTAMP")) not in listed:
            loaded = few([hour.removesuffix(":00") for hour in listed])
            yield f"the hour {value} is not loaded; loaded (UTC): {loaded}"
    columns = {_COLUMNS.get(name, name): value for name, value in named.items() if name not in hours}
    yield from _unknown_values(connection, columns)


def _conditions(statement: Statement) -> dict[str, str]:
    """Return the values of each `column = 'value'` of a statement."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(statement.text, read="duckdb")
    except SqlglotError:
        return {}
    pairs = ((one.this, one.expression) for one in tree.find_all(exp.EQ))
    return {
        column.name: value.name
        for column, value in pairs
        if isinstance(column, exp.Column) and isinstance(value, exp.Literal) and value.is_string
    }


def _unknown_values(connection: duckdb.DuckDBPyConnection, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each value that no loaded file has: a server, a switch, a trace."""
    for column, value in values.items():
        listed = known_values(connection, column) if column != "hour_utc" else ()
        if listed and value.lower() not in map(str.lower, listed):
            yield f"no {column} {value}{near_or_listed(value, listed)}"
        elif listed and column == "switch" and value.lower() not in map(str.lower, _counted(connection)):
            yield f"{value} is not loaded: no port counters of it in the data folders (warehouse doctor)"


def _counted(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the switches whose counter files are loaded."""
    rows = connection.execute("SELECT switch FROM reference.dim_switch WHERE has_counters").fetchall()
    return [switch for (switch,) in rows]
