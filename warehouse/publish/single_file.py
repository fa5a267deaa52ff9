"""Self-contained DuckDB file with rows, comments and `meta`, readable from DuckDB 1.4 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.publish.descriptions import about_with_keys
from warehouse.runner.catalog import META, STORAGE_VERSION, comments, describe_meta
from warehouse.runner.reporter import Bar, with_progress

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
"""Overrides of `meta` in the exported file, which holds rows and knows no folders."""


def write_file(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    relations: Mapping[str, Relation],
    orders: Mapping[str, str],
    bar: Bar | None = None,
) -> int:
    """Write the tables into a new file and return the number of their rows.

    Parameters
    ----------
    connection
        The warehouse, opened with write access to the folder.
    orders
        Columns to sort by, in SQL, for each table.
    bar
        The progress bar, if any.
    """
    connection.execute(f"ATTACH {literal(str(path))} AS exported (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    try:
        for schema in sorted({name.partition(".")[0] for name in relations} | {"meta"}):
            connection.execute(f"CREATE SCHEMA exported.{identifier(schema)}")
        count = 0
        for name, relation in with_progress(list(relations.items()), bar, lambda one: one[0]):
            here, there = qualified(name), f"exported.{qualified(name)}"
            made = connection.execute(f"CREATE TABLE {there} AS FROM {here} AS rows ORDER BY {orders[name]}")
            count += made.fetchall()[0][0]
            about = about_with_keys(relation, relations, relations.values())
            connection.execute(comments("TABLE", there, about, {one.name: one.comment for one in relation.columns}))
        _copy_meta(connection, list(relations))
        connection.execute("CHECKPOINT exported")
    finally:
        connection.execute("DETACH exported")
    return count


def _copy_meta(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> None:
    for relation, types in META.items():
        here = _HERE.get(relation.removeprefix("meta."), {})
        columns = ", ".join(f"{here.get(one, identifier(one))} AS {identifier(one)}" for one in types)
        where = f" WHERE list_contains({literal(tables)}, model)" if "model" in types else ""
        connection.execute(f"CREATE TABLE exported.{relation} AS SELECT {columns} FROM {relation}{where}")
        connection.execute(describe_meta(relation, "exported."))
