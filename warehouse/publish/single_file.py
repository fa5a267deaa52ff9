"""Tables as one DuckDB file that stands alone: with their rows, comments and `meta`, for any DuckDB from 1.4 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal
from warehouse.reader.relation import has_meta
from warehouse.runner.catalog import META, META_ABOUT, STORAGE_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.reader.relation import Relation

NAME = "tables.duckdb"
_HERE = {
    "build": {"data_folders": "[]::VARCHAR[]", "target": "NULL::VARCHAR"},
    "models": {"kind": "'table'", "stale": "false"},
}
"""What `meta` says otherwise in such a file: it holds rows and knows no folder."""


def write_file(
    connection: duckdb.DuckDBPyConnection, path: Path, relations: Sequence[Relation], orders: Mapping[str, str]
) -> int:
    """Write the tables into a new file and return the number of their rows.

    Parameters
    ----------
    connection
        The warehouse, which may write there.
    orders
        Of each table the columns to sort by, in SQL.
    """
    connection.execute(f"ATTACH {literal(str(path))} AS exported (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    try:
        for schema in sorted({one.table.name.partition(".")[0] for one in relations} | {"meta"}):
            connection.execute(f"CREATE SCHEMA exported.{identifier(schema)}")
        rows = sum(_copy(connection, one, orders[one.table.name]) for one in relations)
        _copy_meta(connection, [one.table.name for one in relations])
        connection.execute("CHECKPOINT exported")
    finally:
        connection.execute("DETACH exported")
    return rows


def _copy(connection: duckdb.DuckDBPyConnection, relation: Relation, order: str) -> int:
    name = ".".join(map(identifier, relation.table.name.split(".")))
    found = connection.execute(f"CREATE TABLE exported.{name} AS FROM {name} AS rows ORDER BY {order}").fetchall()
    connection.execute(f"COMMENT ON TABLE exported.{name} IS {literal(relation.table.about)}")
    for column in relation.columns:
        said = f"[{column.unit}] {column.about}" if column.unit else column.about
        connection.execute(f"COMMENT ON COLUMN exported.{name}.{identifier(column.name)} IS {literal(said)}")
    return int(found[0][0])


def _copy_meta(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> None:
    for relation, types in META.items():
        name = relation.removeprefix("meta.")
        if not has_meta(connection, name):  # a build of an earlier version
            continue
        there = {row[0] for row in connection.execute(f"DESCRIBE meta.{name}").fetchall()}
        here = _HERE.get(name, {})
        columns = ", ".join(f"{here.get(one, identifier(one))} AS {identifier(one)}" for one in types if one in there)
        where = f" WHERE model IN ({', '.join(map(literal, tables))})" if "model" in types else ""
        connection.execute(f"CREATE TABLE exported.meta.{name} AS SELECT {columns} FROM meta.{name}{where}")
        connection.execute(f"COMMENT ON TABLE exported.meta.{name} IS {literal(META_ABOUT[relation])}")
