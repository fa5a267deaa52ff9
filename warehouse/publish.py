"""The catalogue of a build, and the one rename that makes it what readers open.

`warehouse.duckdb` holds small unpartitioned tables as tables, the others as views over an explicit list of
their parts, views as views, and `meta` with what every table and column means. It is written aside and
renamed: a reader that has the old file open goes on reading it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from warehouse.aside import aside, remove, sync, write_text
from warehouse.engines.base import CsvFiles, Engine, Parts, Select, Source
from warehouse.engines.duckdb import declared, identifier, insert_json, literal, qualified, sentence, source_sql
from warehouse.errors import ModelError, Place, WarehouseError
from warehouse.listing import Listing, write_listing
from warehouse.manifest import Manifest, build_folders, current_build, kept_manifests
from warehouse.model import Column
from warehouse.semantics import NOTHING_SAID, Semantics
from warehouse.store import CheckResult

STORAGE_VERSION = "v1.4.0"
"""The file format that DuckDB 1.4 and later read."""
FILE = "warehouse.duckdb"
META = {
    "build": {
        "build_id": "VARCHAR", "published_utc": "TIMESTAMP", "version": "VARCHAR", "engine": "VARCHAR",
        "data_folders": "VARCHAR[]",
    },
    "models": {
        "model": "VARCHAR", "about": "VARCHAR", "grain": "VARCHAR[]", "partition_column": "VARCHAR",
        "kind": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT", "file": "VARCHAR", "sources": "VARCHAR",
        "reads": "VARCHAR[]", "stale": "BOOLEAN",
    },
    "columns": {
        "model": "VARCHAR", "position": "INTEGER", "column_name": "VARCHAR", "type": "VARCHAR", "unit": "VARCHAR",
        "about": "VARCHAR",
    },
    "checks": {
        "model": "VARCHAR", "partition": "VARCHAR", "check_text": "VARCHAR", "severity": "VARCHAR",
        "status": "VARCHAR", "failures": "BIGINT",
    },
    "measures": {
        "model": "VARCHAR", "column_name": "VARCHAR", "how": "VARCHAR", "not_over": "VARCHAR[]", "above": "VARCHAR",
        "below": "VARCHAR", "display_unit": "VARCHAR", "display_factor": "DOUBLE",
    },
    "dimensions": {"model": "VARCHAR", "column_name": "VARCHAR", "is_time": "BOOLEAN"},
    "failures": {
        "model": "VARCHAR", "partition": "VARCHAR", "check_text": "VARCHAR", "severity": "VARCHAR",
        "position": "INTEGER", "failing_row": "VARCHAR",
    },
}  # fmt: skip
META_ABOUT = {
    "build": "Which build this is, and of what.",
    "models": "Every relation: what it is, its grain, how it is kept, its size.",
    "columns": "Every column: type, unit, meaning.",
    "checks": "What the checks of this build found.",
    "measures": "How to sum each number: sum, mean, min, max, none, or ratio, which is sum(above) / sum(below).",
    "dimensions": "By what to group, and the column of time.",
    "failures": "The first rows that fail a check, as JSON; meta.checks says how many there are.",
}


@dataclass(frozen=True)
class Entry:
    """One relation of the catalogue."""

    name: str
    about: str
    kind: str
    """`table`, `partitioned`, `view`, `raw` or `reference`."""
    source: Source
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    partition: str | None = None
    rows: int | None = None
    bytes: int | None = None
    file: str | None = None
    sources: str = ""
    reads: tuple[str, ...] = ()
    stale: bool = False
    checks: tuple[tuple[str, CheckResult], ...] = ()
    semantics: Semantics = NOTHING_SAID


def write_catalogue(path: Path, entries: Sequence[Entry], build: Mapping[str, object], engine: Engine) -> None:
    """Write the DuckDB file of a build: entries in an order in which views can be made.

    Raises
    ------
    ModelError
        When the rows of a relation cannot be written.
    WarehouseError
        When nothing can, since the disk is full, for example.
    """
    with closing(engine.connection()) as connection:
        try:
            _begin(connection, path, {entry.name.partition(".")[0] for entry in entries})
            for entry in entries:
                try:
                    _create(connection, entry, engine.held)
                except duckdb.Error as error:
                    place = Place(entry.file) if entry.file else None
                    raise ModelError(f"{entry.name} cannot be published: {sentence(error)}", place=place) from error
            _write_meta(connection, entries, build)
            connection.execute("COMMIT; CHECKPOINT published; USE memory; DETACH published")
        except duckdb.Error as error:
            raise WarehouseError(f"the catalogue cannot be written: {sentence(error)}") from error


def _begin(connection: duckdb.DuckDBPyConnection, path: Path, schemas: set[str]) -> None:
    """Open a new file, and a transaction in it."""
    connection.execute("SET GLOBAL checkpoint_threshold = '1B'")  # what is committed is in the file, not in a log
    connection.execute(f"ATTACH {literal(str(path))} AS published (STORAGE_VERSION {literal(STORAGE_VERSION)})")
    connection.execute("USE published; BEGIN")
    for schema in sorted(schemas | {"meta"}):
        connection.execute(f"CREATE SCHEMA {identifier(schema)}")


def _create(connection: duckdb.DuckDBPyConnection, entry: Entry, held: Mapping[Path, str]) -> None:
    name = qualified(entry.name)
    if entry.kind in ("table", "reference"):
        statements = [f"CREATE TABLE {name} ({declared(entry.columns)})"]
        if not isinstance(entry.source, Parts | CsvFiles) or entry.source.paths:
            statements.append(f"INSERT INTO {name} {source_sql(entry.source, held)}")
        what = "TABLE"
    else:
        statements = [f"CREATE VIEW {name} AS {source_sql(entry.source, globs=True)}"]
        what = "VIEW"
    statements.append(f"COMMENT ON {what} {name} IS {literal(entry.about)}")
    statements += [
        f"COMMENT ON COLUMN {name}.{identifier(column.name)} IS {literal(column.comment)}"
        for column in entry.columns
        if column.comment
    ]
    connection.execute(";".join(statements))


def _write_meta(connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry], build: Mapping[str, object]) -> None:
    rows: dict[str, list[Sequence[object]]] = {
        "build": [[build[name] for name in META["build"]]],
        "models": [
            [
                e.name, e.about, list(e.grain), e.partition, e.kind, e.rows, e.bytes, e.file, e.sources or None,
                list(e.reads), e.stale,
            ]
            for e in entries
        ],
        "columns": [
            [e.name, position, c.name, c.type, c.unit, c.about]
            for e in entries
            for position, c in enumerate(e.columns, start=1)
        ],
        "checks": [
            [
                e.name, partition, r.check, "warn" if r.warn else "error",
                "passed" if not r.failures else ("warned" if r.warn else "failed"), r.failures,
            ]
            for e in entries
            for partition, r in e.checks
        ],
        "measures": [
            [e.name, m.column, m.how, list(m.not_over), m.above, m.below, m.unit, m.factor]
            for e in entries
            for m in e.semantics.measures
        ],
        "dimensions": [
            [e.name, name, name == e.semantics.time]
            for e in entries
            for name in dict.fromkeys([*filter(None, [e.semantics.time]), *e.semantics.dimensions])
        ],
        "failures": [
            [e.name, partition, r.check, "warn" if r.warn else "error", position, row]
            for e in entries
            for partition, r in e.checks
            for position, row in enumerate(r.rows, start=1)
        ],
    }  # fmt: skip
    for table, types in META.items():
        columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
        connection.execute(f"CREATE TABLE meta.{table} ({columns})")
        connection.execute(f"COMMENT ON TABLE meta.{table} IS {literal(META_ABOUT[table])}")
        lines = [dict(zip(types, row, strict=True)) for row in rows[table]]
        insert_json(connection, f"meta.{table}", types, lines)


def publish(
    target: Path, entries: Sequence[Entry], manifest: Manifest, files: Listing, version: str, engine: Engine
) -> None:
    """Write manifest, catalogue and listing of a build, then make it the one that readers open.

    Everything is on disk before the rename. The old file's `.wal`, if a reader left one, is removed before.
    """
    folder = target / "builds" / manifest.build
    written = aside(folder)
    remove(written)
    written.mkdir(parents=True)
    catalogue = written / "catalogue.duckdb"
    write_catalogue(
        catalogue,
        entries,
        {
            "build_id": manifest.build,
            "published_utc": manifest.published_utc,
            "version": version,
            "engine": manifest.engine,
            "data_folders": list(manifest.data),
        },
        engine,
    )
    manifest.write(written / "manifest.json")
    write_listing(written, files)
    catalogue.chmod(0o444)
    for path in written.iterdir():
        sync(path)
    for path in _folders(target, manifest):
        sync(path)
    remove(folder)
    written.replace(folder)
    sync(folder.parent)
    make_current(target, manifest.build)


def _folders(target: Path, manifest: Manifest) -> set[Path]:
    """The folders that the names of a build's parts stand in."""
    below = {(target / str(part["path"])).parent for part in manifest.parts}
    return {folder for path in below for folder in (path, path.parent, path.parent.parent)}


def make_current(target: Path, build: str) -> None:
    """Make a build whose folder is complete the one that readers open: one rename."""
    link = aside(target / FILE)
    link.unlink(missing_ok=True)
    _link_or_copy(target / "builds" / build / "catalogue.duckdb", link)
    (target / f"{FILE}.wal").unlink(missing_ok=True)
    link.replace(target / FILE)
    link.unlink(missing_ok=True)  # two names of one file: then the rename did nothing
    sync(target)
    write_text(target / "builds" / "current", build + "\n")


def keep_last(target: Path, keep: int) -> None:
    """Remove all but the newest `keep` builds, and never the published one."""
    kept = {current_build(target), *(manifest.build for manifest in kept_manifests(target)[:keep])}
    for folder in build_folders(target):
        if folder.name not in kept:
            remove(folder)


def now_utc() -> str:
    """The time of publishing, for people; no hash holds it."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


__all__ = ["FILE", "Entry", "Select", "keep_last", "make_current", "now_utc", "publish", "write_catalogue"]
