"""Export of tables as Parquet, CSV, Excel or one DuckDB file, with a manifest and checksums.

Exports of one build are byte-identical: rows are sorted by grain, and files name no clock and no path. The DuckDB
file is the exception: only its rows are reproducible.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.engine.duckdb_errors import is_full_disk, sentence
from warehouse.publish.descriptions import (
    DATAPACKAGE,
    SCHEMA,
    TIME_ZONE,
    about_with_keys,
    datapackage,
    metadata_option,
    semantics_json,
    semantics_schema,
)
from warehouse.publish.excel import MOST_ROWS, DoesNotFitError, write_workbook
from warehouse.publish.output_folder import replaced, sha256, write_checksums, write_json
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.reader.output import OPTIONS, exact
from warehouse.reader.query_errors import FULL, MOVED
from warehouse.reader.result import text_of
from warehouse.reader.table_info import Relation, Table, describe, list_tables
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import write_text
from warehouse.store.manifest import EXPORT, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

FORMATS = ("parquet", "csv")
"""Default formats."""
TABLE_FORMATS = (*FORMATS, "xlsx")
"""Formats with one file per table."""
DUCKDB = "duckdb"
"""Format with all tables in one file."""
LARGE = 100_000
"""Row limit for Excel: larger tables are written as workbooks only if named."""
TABLES = "tables.duckdb"
LAYERS = ("reference", "topology", "metrics")
_CSV_OPTIONS = "FORMAT csv, HEADER true, DELIMITER ',', QUOTE '\"', ESCAPE '\"', NULLSTR '', USE_TMP_FILE false"

_HERE = {
    "build": {"data_folders": "[]::VARCHAR[]", "target": "NULL::VARCHAR"},
    "models": {"kind": "'table'", "stale": "false"},
}
"""Overrides of `meta` in the exported file, which holds rows and knows no folders."""


def export(
    target: Path,
    directory: Path,
    *,
    tables: Sequence[str] | None = None,
    everything: bool = False,
    formats: Sequence[str] = FORMATS,
    semantics: bool = False,
    memory: str | None = None,
    threads: int | None = None,
    bar: Bar | None = None,
) -> Path:
    """Write tables of a warehouse as files and return the directory.

    Parameters
    ----------
    target
        The folder of the warehouse.
    directory
        A new or empty folder, or an earlier export, which is replaced completely.
    tables
        Full names (`metrics.port_hour`). Default: all tables of reference, topology and metrics.
    everything
        Include the tables of staging.
    formats
        Names from `TABLE_FORMATS` or `DUCKDB`.
    semantics
        Write measures, dimensions, time columns, units and keys as JSON.
    memory, threads
        Limits of the engine.
    bar
        The progress bar, if any.

    Raises
    ------
    QueryError
        When a table or format is unknown, or the directory holds files that no export wrote.
    """
    known_formats = (*TABLE_FORMATS, DUCKDB)
    for name in formats:
        if name not in known_formats:
            raise QueryError(f"no export format {name}", hint=f"known formats: {', '.join(known_formats)}")
    with (
        replaced(directory, target, EXPORT) as folder,
        connect(target, outputs=[folder], memory=memory, threads=threads) as connection,
    ):
        chosen = _chosen(connection, tables, everything=everything)
        # By digest: whoever gets the files cannot compare them with the parts any more.
        refuse_damage(target, [table.name for table in chosen], digests=True)
        interruptible(
            connection,
            lambda: _write(connection, folder, chosen, formats, semantics=semantics, named=bool(tables), bar=bar),
        )
    return directory.resolve()


def semantics_text(target: Path, tables: Sequence[str] | None = None) -> str:
    """Return measures, dimensions, times, units and keys of tables (default: all) as JSON."""
    with connect(target) as connection:
        relations = {one.name: describe(connection, one.name) for one in _chosen(connection, tables, everything=False)}
        return _semantics(relations, _build(connection))


def _semantics(relations: Mapping[str, Relation], build: str | None) -> str:
    return json.dumps(semantics_json(relations, build), ensure_ascii=False, indent=2) + "\n"


def _build(connection: duckdb.DuckDBPyConnection) -> str | None:
    row = connection.execute("SELECT build_id FROM meta.build").fetchone()
    return str(row[0]) if row else None


def _chosen(connection: duckdb.DuckDBPyConnection, names: Sequence[str] | None, *, everything: bool) -> list[Table]:
    layers = (*LAYERS, "staging") if everything else LAYERS
    known = {table.name: table for table in list_tables(connection) if table.kind != "raw"}
    if names is None:
        return [table for name, table in known.items() if name.partition(".")[0] in layers]
    for name in names:
        if name not in known:
            raise QueryError(f"no table {name} to export", hint=nearest_hint(name, known) or "see warehouse ls")
    return [known[name] for name in sorted(set(names))]


def _write(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    tables: Sequence[Table],
    formats: Sequence[str],
    *,
    semantics: bool,
    named: bool,
    bar: Bar | None,
) -> None:
    build = _build(connection)
    relations = {table.name: describe(connection, table.name) for table in tables}
    orders = {name: _order(connection, relation) for name, relation in relations.items()}
    files, left_out = [], []
    table_formats = [one for one in TABLE_FORMATS if one in formats]
    for name, relation in with_progress(list(relations.items()) if table_formats else [], bar, lambda one: one[0]):
        for form in table_formats:
            path = folder / f"{name}.{form}"
            rows = _count(connection, relation) if form == "xlsx" and not named else 0
            if LARGE < rows <= MOST_ROWS:
                left_out.append({"table": name, "format": form, "reason": f"{rows:,} rows; -s {name} writes it"})
                continue
            try:
                with _export_errors(name):
                    rows = _write_table(connection, relation, orders[name], path, build)
                files.append(_entry(relation, path, form, rows))
            except DoesNotFitError as error:
                left_out.append({"table": name, "format": form, "reason": str(error)})
    if left_out and not files and set(formats) == {"xlsx"}:
        raise QueryError(f"{left_out[0]['table']} cannot be a workbook: {left_out[0]['reason']}")
    if DUCKDB in formats:
        with _export_errors(TABLES):
            rows = _write_file(connection, folder / TABLES, relations, orders, bar)
        files.append(_described(folder / TABLES, None, DUCKDB, f"{len(relations)} tables with their rows", rows))
    if semantics:
        for name, text in (("semantics.json", _semantics(relations, build)), (SCHEMA, semantics_schema())):
            write_text(folder / name, text)
            about = "what may be done with the columns of the tables"
            files.append(_described(folder / name, None, "json", about, None))
    write_json(folder / DATAPACKAGE, datapackage(connection, build, files, relations))
    about = "what the files hold, as a Frictionless Data Package"
    files.append(_described(folder / DATAPACKAGE, None, "json", about, None))
    manifest = {"kind": EXPORT, "build": build, "time_zone": TIME_ZONE, "files": files, "left_out": left_out}
    write_json(folder / MANIFEST, manifest)
    # Last, as the manifest has a checksum, too.
    write_checksums(folder)


@contextmanager
def _export_errors(what: str) -> Iterator[None]:
    """Raise engine errors as one sentence that begins with what is exported."""
    from warehouse.base.startup import duckdb

    try:
        yield
    # Ctrl-C is no error of the export.
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        if is_full_disk(str(error)):
            hint = "make room there, or write to another disk"
            raise QueryError(f"{what} cannot be exported: {FULL}", hint=hint) from error
        raise QueryError(f"{what} cannot be exported: {sentence(error)}", hint=MOVED) from error


def _order(connection: duckdb.DuckDBPyConnection, relation: Relation) -> str:
    """Return the columns to sort by: the grain, or all columns so that the order is deterministic."""
    names = relation.grain or [name for name, *_ in _columns(connection, relation)]
    return ", ".join(f"rows.{identifier(name)} NULLS LAST" for name in names)


def _columns(connection: duckdb.DuckDBPyConnection, relation: Relation) -> list[Any]:
    return connection.execute(f"FROM {qualified(relation.table.name)} LIMIT 0").description


def _count(connection: duckdb.DuckDBPyConnection, relation: Relation) -> int:
    if relation.table.rows is not None:
        return relation.table.rows
    return int(connection.execute(f"SELECT count(*) FROM {qualified(relation.table.name)}").fetchall()[0][0])


def _write_table(
    connection: duckdb.DuckDBPyConnection, relation: Relation, order: str, path: Path, build: str | None
) -> int:
    """Write a table in the format of the file's suffix; return the number of rows."""
    source = qualified(relation.table.name)
    if path.suffix == ".xlsx":
        return write_workbook(connection, relation, source, order, path, build)
    is_parquet = path.suffix == ".parquet"
    columns = []
    for name, kind, *_ in _columns(connection, relation):
        of = f"rows.{identifier(name)}"
        value = exact(of, kind) if is_parquet else text_of(of, kind, nested_as_json=True)
        columns.append(f"{value} AS {identifier(name)}")
    select = f"SELECT {', '.join(columns)} FROM {source} AS rows ORDER BY {order}"
    metadata = metadata_option(connection, select, path, relation, build) if is_parquet else ""
    options = f"{OPTIONS}, {metadata}" if is_parquet else _CSV_OPTIONS
    copied = connection.execute(f"COPY ({select}) TO {literal(str(path))} ({options})")
    return int(copied.fetchall()[0][0])


def _entry(relation: Relation, path: Path, form: str, rows: int) -> dict[str, object]:
    return {
        **_described(path, relation.table.name, form, relation.table.about, rows),
        "grain": list(relation.grain),
        "columns": [
            {"name": column.name, "type": column.type, "unit": column.unit, "about": column.about}
            for column in relation.columns
        ],
    }


def _described(path: Path, table: str | None, form: str, about: str, rows: int | None) -> dict[str, object]:
    return {
        "path": path.name,
        "table": table,
        "format": form,
        "about": about,
        "rows": rows,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }


def _write_file(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    relations: Mapping[str, Relation],
    orders: Mapping[str, str],
    bar: Bar | None = None,
) -> int:
    """Write the tables into a new DuckDB file, in these orders; return the number of their rows."""
    from warehouse.runner.catalog import META, STORAGE_VERSION, comments, describe_meta  # imports the engine

    # An older storage version, so that older engines can read the file, too.
    connection.execute(f"ATTACH {literal(str(path))} AS exported (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    try:
        for schema in sorted({name.partition(".")[0] for name in relations} | {"meta"}):
            connection.execute(f"CREATE SCHEMA exported.{identifier(schema)}")
        count = 0
        for name, table in with_progress(list(relations.items()), bar, lambda one: one[0]):
            here, there = qualified(name), f"exported.{qualified(name)}"
            made = connection.execute(f"CREATE TABLE {there} AS FROM {here} AS rows ORDER BY {orders[name]}")
            count += made.fetchall()[0][0]
            about = about_with_keys(table, relations, relations.values())
            connection.execute(comments("TABLE", there, about, {one.name: one.comment for one in table.columns}))
        for relation, types in META.items():
            other = _HERE.get(relation.removeprefix("meta."), {})
            columns = ", ".join(f"{other.get(one, identifier(one))} AS {identifier(one)}" for one in types)
            where = f" WHERE list_contains({literal(list(relations))}, model)" if "model" in types else ""
            connection.execute(f"CREATE TABLE exported.{relation} AS SELECT {columns} FROM {relation}{where}")
            connection.execute(describe_meta(relation, "exported."))
        # Otherwise rows may stay in a write-ahead log beside the file.
        connection.execute("CHECKPOINT exported")
    finally:
        connection.execute("DETACH exported")
    return count
