"""Tables to send, each with a fingerprint of its rows, columns, comments and keys."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.sql_text import identifier, literal
from warehouse.engine.duckdb_errors import sentence
from warehouse.publish.foreign_keys import about_with_keys
from warehouse.publish.postgres.types import copied, holds_text, server_type
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
FORM = 3
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
    time: str
    """Time column, inside or outside of the grain; empty if there is none."""
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
        f"COPY (SELECT {columns} FROM {_relation(table.full_name)} AS rows{by}) TO {literal(str(path))} ({_CSV})"
    )


def _sent(connection: duckdb.DuckDBPyConnection, name: str) -> Sent:
    from warehouse.base.startup import duckdb

    source = _relation(name)
    try:
        described = connection.execute(f"DESCRIBE {source}").fetchall()
        hashed = f"SELECT count(*), coalesce(sum(hash(rows)), 0) FROM {source} AS rows"
        rows, content = connection.execute(hashed).fetchone() or (0, 0)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise QueryError(f"{name} cannot be read: {sentence(error)}", hint=MOVED) from error
    _refuse_long([name.partition(".")[2], *(str(row[0]) for row in described)], name)
    about, grain, comments = _meaning(connection, name)
    columns = tuple(Column(str(row[0]), str(row[1]), comments.get(str(row[0]), "")) for row in described)
    schema, _, table = name.partition(".")
    time = _time(connection, name)
    hashed_facts = [FORM, rows, str(content), about, grain, time, [(c.name, c.declared, c.comment) for c in columns]]
    fingerprint = hashlib.sha256(json.dumps(hashed_facts).encode()).hexdigest()[:32]
    return Sent(schema, table, about, columns, grain, int(rows), time, fingerprint)


def _refuse_long(names: Sequence[str], table: str) -> None:
    """Raise QueryError if PostgreSQL would truncate a name."""
    for name in names:
        if len(name.encode()) > LONGEST_NAME:
            raise QueryError(
                f"{table}: the name {name} is longer than {LONGEST_NAME} bytes, where PostgreSQL cuts names",
                hint="leave the table out (-s), or give it a shorter name in its model",
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


def _time(connection: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return the time column: the one in the model's contract, else the first one that it is partitioned by."""
    row = connection.execute("SELECT column_name FROM meta.dimensions WHERE model = ? AND is_time", [name]).fetchone()
    if row:
        return str(row[0])
    row = connection.execute("SELECT partition_column FROM meta.models WHERE model = ?", [name]).fetchone()
    return str(row[0]).partition(",")[0] if row and row[0] else ""


def refuse_nul(connection: duckdb.DuckDBPyConnection, table: Sent) -> None:
    """Raise if a text holds a NUL byte, which PostgreSQL rejects.

    Raises
    ------
    QueryError
        Naming the first row with a NUL byte.
    """
    name, grain = table.full_name, table.grain
    texts = [column.name for column in table.columns if holds_text(column.declared)]
    if not texts:
        return
    has_nul = {text: f"contains(CAST({identifier(text)} AS VARCHAR), chr(0))" for text in texts}
    shown = ", ".join(f"{identifier(key)}::VARCHAR" for key in grain) or "'?'"
    which, wherever = ", ".join(has_nul.values()), " OR ".join(has_nul.values())
    found = connection.execute(
        f"SELECT [{which}], [{shown}] FROM {_relation(name)} WHERE {wherever} LIMIT 1"
    ).fetchone()
    if found:
        column = texts[found[0].index(True)]
        row = ", ".join(f"{key} = {value!r}" for key, value in zip(grain, found[1], strict=False))
        raise QueryError(
            f"{name}.{column} holds a NUL byte, which PostgreSQL takes in no text: the row of {row or 'unknown key'}",
            hint="leave the table out (-s), or replace the text in its model",
        )


def _relation(name: str) -> str:
    return ".".join(identifier(part) for part in name.split("."))
