"""Self-contained DuckDB file with rows, comments and `meta`, readable from DuckDB 1.4 on.

Tables joined by foreign keys are stored in the schema `star` with their constraints, since DuckDB has no foreign keys
across schemas. Views give these tables their usual names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.publish.foreign_keys import others_first
from warehouse.runner.catalog import META, META_ABOUT, STORAGE_VERSION
from warehouse.runner.reporter import Bar, with_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.publish.foreign_keys import ForeignKey
    from warehouse.reader.relation import Relation

NAME = "tables.duckdb"
STAR = "star"
"""Schema of tables with key constraints."""
BLOCK = 65_536
"""Block size in bytes. Each key takes at least one block: the default of 262,144 would add half of the file's size.
"""
_HERE = {
    "build": {"data_folders": "[]::VARCHAR[]", "target": "NULL::VARCHAR"},
    "models": {"kind": "'table'", "stale": "false"},
}
"""Overrides of `meta` in the exported file, which holds rows and knows no folders."""
_End = tuple[str, tuple[str, ...]]
"""A table and its columns that foreign keys reference."""


def write_file(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    relations: Sequence[Relation],
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
    form = f"STORAGE_VERSION {literal(STORAGE_VERSION)}, BLOCK_SIZE {BLOCK}"
    connection.execute(f"ATTACH {literal(str(path))} AS exported ({form})")
    try:
        ordered = others_first({one.table.name: one for one in relations})
        targets = _targets(connection, ordered)
        places = _places(ordered, targets)
        for schema in sorted({name.partition(".")[0] for name in (*places, *places.values())} | {"meta"}):
            connection.execute(f"CREATE SCHEMA exported.{identifier(schema)}")
        rows = sum(
            _copy(connection, one, orders[one.table.name], keys, targets, places)
            for one, keys in with_progress(ordered, bar, lambda pair: pair[0].table.name)
        )
        _name(connection, relations, places)
        _copy_meta(connection, [one.table.name for one in relations])
        connection.execute("CHECKPOINT exported")
    finally:
        connection.execute("DETACH exported")
    return rows


def _targets(
    connection: duckdb.DuckDBPyConnection, ordered: Sequence[tuple[Relation, Sequence[ForeignKey]]]
) -> dict[_End, str]:
    """Return the constraint for each referenced (table, columns); columns that are not unique get none."""
    grains = {one.table.name: one.grain for one, _ in ordered}
    found: dict[_End, str] = {}
    for key in sorted({(key.other, key.others) for _, keys in ordered for key in keys}):
        other, columns = key
        listed = ", ".join(map(identifier, columns))
        if sorted(columns) == sorted(grains[other]):
            found[key] = f"PRIMARY KEY ({listed})"
            continue
        known = " AND ".join(f"{identifier(one)} IS NOT NULL" for one in columns)
        doubled = f"SELECT 1 FROM {qualified(other)} WHERE {known} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
        if not connection.execute(doubled).fetchone():
            found[key] = f"UNIQUE ({listed})"
    return found


def _places(ordered: Sequence[tuple[Relation, Sequence[ForeignKey]]], targets: Mapping[_End, str]) -> dict[str, str]:
    """Return the stored name of each table: in `star` if a foreign key joins it."""
    joined = {other for other, _ in targets}
    joined |= {one.table.name for one, keys in ordered if any((key.other, key.others) in targets for key in keys)}
    places: dict[str, str] = {}
    for name in sorted(one.table.name for one, _ in ordered):
        place = f"{STAR}.{name.partition('.')[2]}" if name in joined else name
        places[name] = f"{STAR}.{name.replace('.', '_')}" if place in places.values() else place
    return places


def _copy(
    connection: duckdb.DuckDBPyConnection,
    relation: Relation,
    order: str,
    keys: Sequence[ForeignKey],
    targets: Mapping[_End, str],
    places: Mapping[str, str],
) -> int:
    """Write the rows of one table with its key constraints; return the number of rows."""
    source, place = qualified(relation.table.name), qualified(places[relation.table.name])
    parts = [f"{identifier(name)} {kind}" for name, kind, *_ in connection.execute(f"DESCRIBE {source}").fetchall()]
    parts += [constraint for (other, _), constraint in targets.items() if other == relation.table.name]
    parts += [
        f"FOREIGN KEY ({', '.join(map(identifier, key.columns))}) "
        f"REFERENCES {qualified(places[key.other])} ({', '.join(map(identifier, key.others))})"
        for key in keys
        if (key.other, key.others) in targets
    ]
    connection.execute(f"CREATE TABLE exported.{place} ({', '.join(parts)})")
    found = connection.execute(f"INSERT INTO exported.{place} FROM {source} AS rows ORDER BY {order}").fetchall()
    return int(found[0][0])


def _name(connection: duckdb.DuckDBPyConnection, relations: Sequence[Relation], places: Mapping[str, str]) -> None:
    """Create views with the usual names, and comments.

    DuckDB keeps the text of a view. The exported file is the current database here, so that the text names no
    catalog.
    """
    row = connection.execute("SELECT current_database(), current_schema()").fetchone()
    assert row
    connection.execute("USE exported")
    try:
        for relation in relations:
            name, place = relation.table.name, places[relation.table.name]
            if place != name:
                connection.execute(f"CREATE VIEW {qualified(name)} AS FROM {qualified(place)}")
                _comment(connection, "TABLE", place, relation)
            _comment(connection, "VIEW" if place != name else "TABLE", name, relation)
    finally:
        connection.execute(f"USE {identifier(row[0])}.{identifier(row[1])}")


def _comment(connection: duckdb.DuckDBPyConnection, kind: str, name: str, relation: Relation) -> None:
    connection.execute(f"COMMENT ON {kind} {qualified(name)} IS {literal(relation.table.about)}")
    for column in relation.columns:
        connection.execute(
            f"COMMENT ON COLUMN {qualified(name)}.{identifier(column.name)} IS {literal(column.comment)}"
        )


def _copy_meta(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> None:
    for relation, types in META.items():
        name = relation.removeprefix("meta.")
        here = _HERE.get(name, {})
        columns = ", ".join(f"{here.get(one, identifier(one))} AS {identifier(one)}" for one in types)
        where = f" WHERE model IN ({', '.join(map(literal, tables))})" if "model" in types else ""
        connection.execute(f"CREATE TABLE exported.meta.{name} AS SELECT {columns} FROM meta.{name}{where}")
        connection.execute(f"COMMENT ON TABLE exported.meta.{name} IS {literal(META_ABOUT[relation])}")
