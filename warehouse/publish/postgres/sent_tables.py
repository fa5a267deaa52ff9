"""Tables to send, each with a fingerprint of its rows, columns, comments and keys."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.engine.duckdb_errors import sentence
from warehouse.publish.foreign_keys import about_with_keys
from warehouse.publish.postgres.types import copied, server_type
from warehouse.reader.damaged_parts import refuse_damage
from warehouse.reader.query_errors import MOVED
from warehouse.reader.table_info import describe, list_tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

LAYERS = ("reference", "topology", "metrics")
ABOUT = ("meta.build", "meta.models", "meta.columns", "meta.measures", "meta.dimensions", "meta.checks")
"""Metadata sent with any table: descriptions, semantics, build and check results."""
START = "reference.start"
"""Table of the tables that the schema `start` shows."""
FORM = 4
"""Version of the layout on the server; raise it to resend unchanged rows."""
LONGEST_NAME = 63
_CSV = "FORMAT csv, HEADER false, DELIMITER ',', QUOTE '\"', ESCAPE '\"', NULLSTR '', USE_TMP_FILE false"


@dataclass(frozen=True)
class Column:
    """A column on the server."""

    name: str
    declared: str
    """DuckDB type."""
    comment: str

    @property
    def kind(self) -> str:
        """PostgreSQL type."""
        return server_type(self.declared)


@dataclass(frozen=True)
class Sent:
    """A table on the server."""

    schema: str
    name: str
    about: str
    columns: tuple[Column, ...]
    grain: tuple[str, ...]
    rows: int
    fingerprint: str
    """Hash of rows, columns, comments and keys; a table with an equal hash is not sent."""
    rows_of: str = ""
    """Table whose rows a view of the schema `start` shows; empty for a table with rows of its own."""

    @property
    def full_name(self) -> str:
        """Name with schema, such as `metrics.port_hour`."""
        return f"{self.schema}.{self.name}"


def tables_to_send(connection: duckdb.DuckDBPyConnection, target: Path, names: Sequence[str] | None) -> list[Sent]:
    """Return the tables to send. Default: all tables of reference, topology and metrics.

    Views of the schema `start` follow the table whose rows they show.

    Raises
    ------
    QueryError
        When a name is unknown, or a part is damaged.
    """
    known = {table.name: table for table in list_tables(connection) if table.kind != "raw"}
    views = _start_views(connection) if START in known else {}
    if names is None:
        chosen = [name for name in known if name.partition(".")[0] in LAYERS]
    else:
        for name in names:
            if name not in known:
                raise QueryError(f"no table {name} to publish", hint=nearest_hint(name, known) or "see warehouse ls")
        chosen = sorted({views.get(name, name) for name in names})
    refuse_damage(target, chosen)  # damage in an unchanged table would change its fingerprint
    there = {f"meta.{row[0]}" for row in connection.execute("SHOW TABLES FROM meta").fetchall()}
    sent = {name: _sent(connection, name) for name in (*chosen, *(name for name in ABOUT if name in there))}
    shown = [(view, sent[table]) for view, table in views.items() if view in known and table in sent]
    return [*sent.values(), *(_view_of(view, table) for view, table in shown)]


def _start_views(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the views of the schema `start`: view -> table."""
    rows = connection.execute(f"SELECT relation FROM {START} ORDER BY relation").fetchall()
    return {f"start.{name.partition('.')[2]}": name for (name,) in rows}


def _view_of(view: str, table: Sent) -> Sent:
    """Return a table under its name in the schema `start`."""
    schema, _, name = view.partition(".")
    return replace(table, schema=schema, name=name, rows_of=table.full_name)


def write_csv(connection: duckdb.DuckDBPyConnection, table: Sent, path: Path) -> None:
    """Write the rows in the form of the server's COPY, sorted by grain."""
    columns = ", ".join(
        f"{copied(identifier(column.name), column.declared)} AS {identifier(column.name)}" for column in table.columns
    )
    order = ", ".join(f"rows.{identifier(name)} NULLS LAST" for name in table.grain)
    by = f" ORDER BY {order}" if order else ""
    connection.execute(
        f"COPY (SELECT {columns} FROM {qualified(table.full_name)} AS rows{by}) TO {literal(str(path))} ({_CSV})"
    )


def _sent(connection: duckdb.DuckDBPyConnection, name: str) -> Sent:
    from warehouse.base.startup import duckdb

    source = qualified(name)
    try:
        described = connection.execute(f"DESCRIBE {source}").fetchall()
        hashed = f"SELECT count(*), coalesce(sum(hash(rows)), 0) FROM {source} AS rows"
        rows, content = connection.execute(hashed).fetchone() or (0, 0)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise QueryError(f"{name} cannot be read: {sentence(error)}", hint=MOVED) from error
    names = [name.partition(".")[2], *(str(row[0]) for row in described)]
    refuse_long(names, f"{name}: the name", "leave the table out (-s), or give it a shorter name in its model")
    about, grain, comments = _meaning(connection, name)
    columns = tuple(Column(str(row[0]), str(row[1]), comments.get(str(row[0]), "")) for row in described)
    schema, _, table = name.partition(".")
    hashed_facts = [FORM, rows, str(content), about, grain, [(c.name, c.declared, c.comment) for c in columns]]
    fingerprint = hashlib.sha256(json.dumps(hashed_facts).encode()).hexdigest()[:32]
    return Sent(schema, table, about, columns, grain, int(rows), fingerprint)


def refuse_long(names: Sequence[str], what: str, hint: str) -> None:
    """Raise QueryError if PostgreSQL would cut a name."""
    for name in names:
        if len(name.encode()) > LONGEST_NAME:
            raise QueryError(
                f"{what} {name} has {len(name.encode())} bytes, and PostgreSQL cuts names after {LONGEST_NAME}",
                hint=f"{hint}; nothing was sent",
            )


def _meaning(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Return (description, grain, comment of each column)."""
    if name in ABOUT:
        row = connection.execute(
            "SELECT comment FROM duckdb_tables() WHERE schema_name = 'meta' AND table_name = ?",
            [name.partition(".")[2]],
        ).fetchone()
        return str((row or [""])[0] or ""), (), {}
    relation = describe(connection, name)
    comments = {
        column.name: f"{column.about} [{column.unit}]" if column.unit else column.about for column in relation.columns
    }
    in_layers = [table.name for table in list_tables(connection) if table.name.partition(".")[0] in LAYERS]
    referenced = connection.execute(
        "SELECT DISTINCT model FROM meta.checks WHERE starts_with(check_text, 'referenced(')"
    )
    dimensions = [describe(connection, str(one)) for (one,) in sorted(referenced.fetchall())]
    return about_with_keys(relation, in_layers, dimensions), relation.grain, comments
