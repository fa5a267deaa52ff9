"""What a published warehouse says of its tables: rows, checks, and of each column lowest, highest, missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier
from warehouse.engine.duckdb_errors import sentence
from warehouse.reader.check_results import failing_rows
from warehouse.reader.relation import Relation
from warehouse.reader.table_info import describe, list_tables
from warehouse.reader.value_text import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

FAILING = 3
"""Rows shown of those that fail a check."""


@dataclass(frozen=True)
class Values:
    """What a column holds, as text."""

    lowest: str | None
    highest: str | None
    missing: int
    """Rows that are NULL."""
    rows: int


@dataclass(frozen=True)
class Facts:
    """A table as it was published."""

    relation: Relation
    values: Mapping[str, Values] = field(default_factory=dict)
    failing: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    """Of each check the first rows that fail it."""
    unread: str = ""
    """Why its values are not known."""

    @property
    def rows(self) -> int | None:
        """How many there are, of views too."""
        counted = next((one.rows for one in self.values.values()), None)
        return counted if self.relation.table.rows is None else self.relation.table.rows


@dataclass(frozen=True)
class Build:
    """Which build it was."""

    id: str
    published: str
    version: str
    engine: str


def build_of(connection: duckdb.DuckDBPyConnection) -> Build:
    """The build that is open."""
    row = connection.execute("SELECT build_id, published_utc, version, engine FROM meta.build").fetchall()[0]
    return Build(*map(str, row))


def facts_of(connection: duckdb.DuckDBPyConnection) -> dict[str, Facts]:
    """Of each table of the build what is known; the values of raw files are not looked through."""
    return {table.name: _facts(connection, describe(connection, table.name)) for table in list_tables(connection)}


def _facts(connection: duckdb.DuckDBPyConnection, relation: Relation) -> Facts:
    from warehouse.base.startup import duckdb

    name = relation.table.name
    failing = {
        check: [json.loads(row) for row in rows[:FAILING]] for check, rows in failing_rows(connection, name).items()
    }
    if relation.table.kind == "raw":
        return Facts(relation, failing=failing)
    try:
        return Facts(relation, _values(connection, name), failing)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:  # raw files behind a view that have moved
        return Facts(relation, failing=failing, unread=sentence(error))


def _values(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, Values]:
    source = ".".join(map(identifier, name.split(".")))
    columns = [(column, kind) for column, kind, *_ in connection.execute(f"FROM {source} LIMIT 0").description]
    asked = ["count(*)"]
    for column, kind in columns:
        of = identifier(column)
        asked += [text_of(f"min({of})", kind), text_of(f"max({of})", kind), f"count({of})"]
    row = connection.execute(f"SELECT {', '.join(asked)} FROM {source}").fetchall()[0]
    rows = row[0]
    return {
        column: Values(row[1 + 3 * at], row[2 + 3 * at], rows - row[3 + 3 * at], rows)
        for at, (column, _) in enumerate(columns)
    }
