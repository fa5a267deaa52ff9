"""Tables to send, each with a fingerprint of its rows, columns, comments and keys, and their types on the server.

The mapping of types is lossless. Types without a PostgreSQL equivalent become text or jsonb, never a double.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import duckdb, regex
from warehouse.publish.descriptions import about_with_keys, foreign_keys
from warehouse.publish.export import chosen_tables, copy_errors
from warehouse.reader.connection import refuse_damage
from warehouse.reader.table_info import describe, list_tables

ABOUT = ("meta.build", "meta.models", "meta.columns", "meta.measures", "meta.dimensions", "meta.checks")
"""Metadata sent with any table: descriptions, semantics, build and check results."""
START = "reference.start"
"""Table of the tables that the schema `start` shows."""
FORM = 4
"""Version of the layout on the server; raise it to resend unchanged rows."""
LONGEST_NAME = 63  # bytes; a longer one is cut by the server without an error
# An empty cell is NULL, and DuckDB quotes an empty text, so COPY tells them apart.
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

    full_name: str
    """Name with schema, such as `metrics.port_hour`."""
    about: str
    columns: tuple[Column, ...]
    grain: tuple[str, ...]
    rows: int
    fingerprint: str
    """Hash of rows, columns, comments and keys; a table with an equal hash is not sent."""
    rows_of: str = ""
    """Table whose rows a view of the schema `start` shows; empty for a table with rows of its own."""


def tables_to_send(connection: duckdb.DuckDBPyConnection, target: Path, names: Sequence[str] | None) -> list[Sent]:
    """Return the tables to send. Default: all tables of reference, topology and metrics.

    Views of the schema `start` follow the table whose rows they show.

    Raises
    ------
    QueryError
        When a name is unknown, or a part is damaged.
    """
    known = [table.name for table in list_tables(connection)]
    shown = connection.execute(f"SELECT relation FROM {START} ORDER BY relation").fetchall() if START in known else []
    views = {f"start.{name.partition('.')[2]}": name for (name,) in shown}
    chosen = sorted({views.get(table.name, table.name) for table in chosen_tables(connection, names)})
    refuse_damage(target, chosen)  # damage in an unchanged table would change its fingerprint
    referenced = "SELECT DISTINCT model FROM meta.checks WHERE starts_with(check_text, 'referenced(')"
    dimensions = [str(name) for (name,) in connection.execute(referenced).fetchall()]
    relations = {name: describe(connection, name) for name in (*chosen, *dimensions)}
    keys = foreign_keys(relations.values(), [table.name for table in chosen_tables(connection, None)])
    sent = {}
    for name in chosen:
        relation = relations[name]
        comments = {one.name: f"{one.about} [{one.unit}]" if one.unit else one.about for one in relation.columns}
        sent[name] = _sent(connection, name, about_with_keys(relation, keys[name]), relation.grain, comments)
    told = "SELECT 'meta.' || table_name, coalesce(comment, '') FROM duckdb_tables() WHERE schema_name = 'meta'"
    abouts = dict(connection.execute(told).fetchall())
    sent |= {name: _sent(connection, name, abouts[name], (), {}) for name in ABOUT if name in abouts}
    starts = [replace(sent[name], full_name=view, rows_of=name) for view, name in views.items()
              if view in known and name in sent]  # fmt: skip
    return [*sent.values(), *starts]


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


def _sent(
    connection: duckdb.DuckDBPyConnection, name: str, about: str, grain: tuple[str, ...], comments: Mapping[str, str]
) -> Sent:
    source = qualified(name)
    with copy_errors(name):
        described = connection.execute(f"DESCRIBE {source}").fetchall()
        # A sum of hashes does not depend on the order of rows, and needs no sort.
        hashed = f"SELECT count(*), coalesce(sum(hash(rows)), 0) FROM {source} AS rows"
        rows, content = connection.execute(hashed).fetchone() or (0, 0)
    names = [name.partition(".")[2], *(str(row[0]) for row in described)]
    refuse_long(names, f"{name}: the name", "leave the table out (-s), or give it a shorter name in its model")
    columns = tuple(Column(str(row[0]), str(row[1]), comments.get(str(row[0]), "")) for row in described)
    hashed_facts = [FORM, rows, str(content), about, grain, [(c.name, c.declared, c.comment) for c in columns]]
    fingerprint = hashlib.sha256(json.dumps(hashed_facts).encode()).hexdigest()[:32]
    return Sent(name, about, columns, grain, int(rows), fingerprint)


def refuse_long(names: Sequence[str], what: str, hint: str) -> None:
    """Raise QueryError if PostgreSQL would cut a name."""
    for name in names:
        # The server counts bytes, not letters.
        if len(name.encode()) > LONGEST_NAME:
            raise QueryError(
                f"{what} {name} has {len(name.encode())} bytes, and PostgreSQL cuts names after {LONGEST_NAME}",
                hint=f"{hint}; nothing was sent",
            )


_SAME = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "UBIGINT": "numeric(20,0)",
    "HUGEINT": "numeric(39,0)",
    "UHUGEINT": "numeric(39,0)",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP_NS": "text",  # PostgreSQL has microseconds
    "UUID": "uuid",
    "INTERVAL": "interval",
    "BLOB": "bytea",
    "JSON": "jsonb",
}
_DECIMAL = regex(r"DECIMAL\((\d+),\s*(\d+)\)")
_LIST = regex(r"(?P<of>.+?)(?P<lists>(\[\d*\])+)")
_QUOTED = """'"' || regexp_replace({}, '(["\\\\])', '\\\\\\1', 'g') || '"'"""
"""SQL of a quoted array item, with quotes and backslashes escaped."""
_NUMBERS = frozenset({"smallint", "integer", "bigint", "real", "double precision", "boolean"})


def server_type(declared: str) -> str:
    """Return the PostgreSQL type for a DuckDB type.

    >>> [server_type(name) for name in ("HUGEINT", "DECIMAL(10,2)", "VARCHAR[]", "BIGINT[][]", "STRUCT(a INTEGER)")]
    ['numeric(39,0)', 'numeric(10,2)', 'text[]', 'jsonb', 'jsonb']
    """
    if declared in _SAME:
        return _SAME[declared]
    if match := _DECIMAL.fullmatch(declared):
        return f"numeric({match[1]},{match[2]})"
    if declared.startswith(("STRUCT", "MAP", "UNION")) and not declared.endswith("]"):
        return "jsonb"
    if match := _LIST.fullmatch(declared):
        inner = server_type(match["of"])
        # a PostgreSQL array of arrays must be rectangular, a DuckDB list of lists need not be
        return f"{inner}[]" if match["lists"].count("[") == 1 and inner != "jsonb" else "jsonb"
    return "text"  # ENUM, BIT and future types


def copied(reference: str, declared: str) -> str:
    """Return a DuckDB expression that formats a value for COPY ... (FORMAT csv).

    Parameters
    ----------
    reference
        The column in SQL.
    declared
        Its DuckDB type.
    """
    kind = server_type(declared)
    if declared == "BLOB":
        return rf"'\x' || hex({reference})"
    if kind == "jsonb":
        nested = finite(reference, declared) if "DOUBLE" in declared or "FLOAT" in declared else reference
        return f"CAST(to_json({nested}) AS VARCHAR)"
    if kind.endswith("[]"):
        item = r"'\x' || hex(item)" if kind == "bytea[]" else "CAST(item AS VARCHAR)"
        if kind.removesuffix("[]") not in _NUMBERS:
            # A text `NULL` or `{` would otherwise be read as part of the array's syntax.
            item = _QUOTED.format(item)
        items = f"list_transform({reference}, LAMBDA item: coalesce({item}, 'NULL'))"
        return f"'{{' || array_to_string({items}, ',') || '}}'"
    if kind == "text" and declared != "VARCHAR":
        return f"CAST({reference} AS VARCHAR)"
    return reference


def finite(reference: str, declared: str, depth: int = 0) -> str:
    """Return SQL that turns NaN and infinities of a nested value into text, since JSON lacks them.

    >>> finite("c", "DOUBLE[]")
    'list_transform(c, LAMBDA x0: if(isfinite(x0), to_json(x0), to_json(CAST(x0 AS VARCHAR))))'
    """
    kind = duckdb.type(declared)
    if kind.id in ("double", "float"):
        return f"if(isfinite({reference}), to_json({reference}), to_json(CAST({reference} AS VARCHAR)))"
    if kind.id in ("list", "array"):
        of = str(dict(kind.children)["child"])
        return f"list_transform({reference}, LAMBDA x{depth}: {finite(f'x{depth}', of, depth + 1)})"
    if kind.id == "struct":
        fields = {identifier(name): str(of) for name, of in kind.children}
        parts = [f"{name} := {finite(f'{reference}.{name}', of, depth)}" for name, of in fields.items()]
        return f"if({reference} IS NULL, NULL, struct_pack({', '.join(parts)}))"
    if kind.id == "map":
        of = str(dict(kind.children)["value"])
        values = f"list_transform(map_values({reference}), LAMBDA x{depth}: {finite(f'x{depth}', of, depth + 1)})"
        return f"map(map_keys({reference}), {values})"
    return reference
