"""Export of tables as Parquet, CSV, Excel or one DuckDB file, with a manifest and checksums.

Exports of one build are byte-identical: rows are sorted by grain, and files name no clock and no path. The DuckDB
file is the exception: only its rows are reproducible.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warehouse.base.errors import QueryError, nearest_hint
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import duckdb
from warehouse.engine.duckdb_errors import is_full_disk, sentence
from warehouse.publish.descriptions import (
    DATAPACKAGE,
    LAYERS,
    SCHEMA,
    TIME_ZONE,
    about_with_keys,
    column_facts,
    datapackage,
    foreign_keys,
    metadata_option,
    semantics_json,
)
from warehouse.publish.excel import DoesNotFitError, write_workbook
from warehouse.reader.connection import connect, interruptible, refuse_damage
from warehouse.reader.output import OPTIONS, exact, refuse_in_target
from warehouse.reader.query_errors import FULL, MOVED
from warehouse.reader.result import text_of
from warehouse.reader.table_info import Relation, Table, describe, list_tables
from warehouse.runner.catalog import META, STORAGE_VERSION, comments, describe_meta
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import sync
from warehouse.store.manifest import EXPORT, MANIFEST

FORMATS = ("parquet", "csv")
"""Default formats."""
TABLE_FORMATS = (*FORMATS, "xlsx")
"""Formats with one file per table."""
DUCKDB = "duckdb"
"""Format with all tables in one file."""
TABLES = "tables.duckdb"
CHECKSUMS = "SHA256SUMS"
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
        chosen = chosen_tables(connection, tables, (*LAYERS, "staging") if everything else LAYERS)
        # By digest: whoever gets the files cannot compare them with the parts any more.
        refuse_damage(target, [table.name for table in chosen], digests=True)
        interruptible(
            connection,
            lambda: _write(connection, folder, chosen, formats, semantics=semantics, named=bool(tables), bar=bar),
        )
    return directory.resolve()


def chosen_tables(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str] | None, layers: Collection[str] = LAYERS
) -> list[Table]:
    """Return the tables of these names or, without names, of these layers. Raises QueryError for an unknown name."""
    known = {table.name: table for table in list_tables(connection) if table.kind != "raw"}
    if names is None:
        return [table for name, table in known.items() if name.partition(".")[0] in layers]
    for name in names:
        if name not in known:
            raise QueryError(f"no table {name}", hint=nearest_hint(name, known) or "see warehouse ls")
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
    [(build,)] = connection.execute("SELECT build_id FROM meta.build").fetchall()
    relations = {table.name: describe(connection, table.name) for table in tables}
    orders = {name: _order(connection, relation) for name, relation in relations.items()}
    files, left_out = [], []
    table_formats = [one for one in TABLE_FORMATS if one in formats]
    for name, relation in with_progress(list(relations.items()) if table_formats else [], bar, lambda one: one[0]):
        for form in table_formats:
            path = folder / f"{name}.{form}"
            try:
                with copy_errors(name):
                    rows = _write_table(connection, relation, orders[name], path, build, named=named)
                columns = [column_facts(one) for one in relation.columns]
                described = _described(path, name, form, relation.about, rows)
                files.append(described | {"grain": list(relation.grain), "columns": columns})
            except DoesNotFitError as error:
                left_out.append({"table": name, "format": form, "reason": str(error)})
    if left_out and not files and set(formats) == {"xlsx"}:
        raise QueryError(f"{left_out[0]['table']} cannot be a workbook: {left_out[0]['reason']}")
    if DUCKDB in formats:
        with copy_errors(TABLES):
            rows = _write_file(connection, folder / TABLES, relations, orders, bar)
        files.append(_described(folder / TABLES, None, DUCKDB, f"{len(relations)} tables with their rows", rows))
    if semantics:
        schema = Path(__file__).with_name(SCHEMA).read_text(encoding="utf-8")
        for name, text in (("semantics.json", semantics_json(relations, build)), (SCHEMA, schema)):
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
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
def copy_errors(what: str) -> Iterator[None]:
    """Raise engine errors as one sentence that begins with what is copied."""
    try:
        yield
    # Ctrl-C is no error of the export.
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        if is_full_disk(str(error)):
            hint = "make room there, or write to another disk"
            raise QueryError(f"{what} cannot be copied: {FULL}", hint=hint) from error
        raise QueryError(f"{what} cannot be copied: {sentence(error)}", hint=MOVED) from error


def _order(connection: duckdb.DuckDBPyConnection, relation: Relation) -> str:
    """Return the columns to sort by: the grain, or all columns so that the order is deterministic."""
    names = relation.grain or [name for name, *_ in _columns(connection, relation)]
    return ", ".join(f"rows.{identifier(name)} NULLS LAST" for name in names)


def _columns(connection: duckdb.DuckDBPyConnection, relation: Relation) -> list[Any]:
    return connection.execute(f"FROM {qualified(relation.name)} LIMIT 0").description


def _write_table(
    connection: duckdb.DuckDBPyConnection, relation: Relation, order: str, path: Path, build: str | None, *, named: bool
) -> int:
    """Write a table in the format of the file's suffix; return the number of rows."""
    if path.suffix == ".xlsx":
        return write_workbook(connection, relation, order, path, build, is_named=named)
    source = qualified(relation.name)
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
    # An older storage version, so that older engines can read the file, too.
    connection.execute(f"ATTACH {literal(str(path))} AS exported (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    try:
        for schema in sorted({name.partition(".")[0] for name in relations} | {"meta"}):
            connection.execute(f"CREATE SCHEMA exported.{identifier(schema)}")
        count, keys = 0, foreign_keys(relations.values(), relations)
        for name, table in with_progress(list(relations.items()), bar, lambda one: one[0]):
            here, there = qualified(name), f"exported.{qualified(name)}"
            made = connection.execute(f"CREATE TABLE {there} AS FROM {here} AS rows ORDER BY {orders[name]}")
            count += made.fetchall()[0][0]
            about = about_with_keys(table, keys[name])
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


# the folder ---------------------------------------------------------------------------------


@contextmanager
def replaced(directory: Path, target: Path, kind: str) -> Iterator[Path]:
    """Yield an empty temporary folder; at the end of the block it replaces `directory`.

    The block must write a `manifest.json`. It contains the `kind` and, under `files`, the `path` of each other file
    except the checksums. Only a folder with such a manifest is ever replaced.

    Raises
    ------
    QueryError
        When the directory lies in the target, contains other files, or cannot be written.
    """
    directory = directory.resolve()
    _check(directory, target, kind)
    # Beside it, as a rename must stay in one file system.
    temporary_path = directory.with_name(f".{directory.name}.{os.getpid()}")
    shutil.rmtree(temporary_path, ignore_errors=True)
    try:
        temporary_path.mkdir(parents=True)
        yield temporary_path
        for path in (*temporary_path.rglob("*"), temporary_path):
            # A rename may reach the disk before the files, and a crash would then leave empty ones.
            sync(path)
        old = temporary_path.with_name(f"{temporary_path.name}.old")
        if directory.exists():
            # A rename onto a folder that has files fails, so the old one steps aside first.
            directory.replace(old)
        temporary_path.replace(directory)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise QueryError(f"{directory} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary_path, ignore_errors=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, content: object) -> None:
    """Write indented JSON, deterministically."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def write_checksums(folder: Path) -> None:
    """Write `SHA256SUMS` with the checksums of all files of a folder, as `sha256sum -c` reads it."""
    # Sorted, as a listing has any order, and equal exports must have equal bytes.
    names = sorted(path.name for path in folder.iterdir())
    sums = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    (folder / CHECKSUMS).write_text(sums, encoding="utf-8", newline="\n")


def _check(directory: Path, target: Path, kind: str) -> None:
    refuse_in_target(directory, target)
    if not directory.exists():
        return
    if not directory.is_dir():
        raise QueryError(f"{directory} is a file", hint="name a folder")
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}
    stray = sorted(found - _written(directory, kind))
    if stray:
        raise QueryError(
            f"{directory} holds files that no {kind.removeprefix('warehouse ')} wrote: {stray[0]}",
            hint="name a new folder",
        )


def _written(directory: Path, kind: str) -> set[str]:
    """Return the files that an earlier command of this kind wrote here."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        if manifest["kind"] == kind:
            return {MANIFEST, CHECKSUMS, *(file["path"] for file in manifest["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()
