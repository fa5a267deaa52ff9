"""Sides of a comparison: a kept build or an export, as tables that DuckDB can read.

A build's manifest has the content hashes of parts, so that equal tables are never opened.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.text import grouped
from warehouse.engine.base import Parts
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.duckdb_sql import source_sql
from warehouse.history.builds import find_build, is_target
from warehouse.project.contract import Column
from warehouse.store.layout import EXPORT, MANIFEST, catalog_of, partition_name
from warehouse.store.manifest import Manifest, last_manifest
from warehouse.store.partitions import HOUR, hour_of, values_of

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class PartFile:
    """Part in a manifest."""

    path: Path
    fingerprint: str
    digest: str
    rows: int


@dataclass(frozen=True)
class Table:
    """Table of one side."""

    name: str
    kind: str
    """`table`, `partitioned`, `view`, `reference`, or `export`."""
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    sql: str = ""
    """SELECT of a view."""
    parts: Mapping[str, PartFile] = field(default_factory=dict)
    """Parts by partition, if the table has its own."""
    source: str = ""
    """FROM item to read a table without parts."""
    content: str = ""
    """Content hash of an exported file."""

    @property
    def has_parts(self) -> bool:
        """True if the rows are in the table's own parts."""
        return self.kind in ("table", "partitioned")

    def select(self, partitions: Collection[str] | None = None) -> str:
        """Return the SELECT of all rows, or of the rows of some partitions."""
        if self.has_parts:
            chosen = self.parts if partitions is None else [name for name in partitions if name in self.parts]
            return source_sql(Parts(self.columns, tuple(self.parts[name].path for name in sorted(chosen))))
        rows = f"SELECT {', '.join(identifier(column.name) for column in self.columns)} FROM {self.source}"
        if partitions is None or not self.is_split or not all(map(hour_of, partitions)):
            return rows
        listed = ", ".join(f"TIMESTAMP {literal(values_of(name)[HOUR])}" for name in sorted(partitions))
        return f"{rows} WHERE {HOUR} IN ({listed or 'NULL'})"

    @property
    def is_split(self) -> bool:
        """True if rows can be selected by hour."""
        return HOUR in self.partition and (HOUR, "TIMESTAMP") in [(column.name, column.type) for column in self.columns]


@dataclass(frozen=True)
class Side:
    """Side of a comparison: a build or an export."""

    label: str
    """Name for messages, such as `build/warehouse@7f3a91c2`."""
    build: str | None
    published_utc: str = ""
    target: Path | None = None
    manifest: Manifest | None = None
    """Manifest of a build; None for an export."""
    folder: Path = Path()
    exported: tuple[Mapping[str, Any], ...] = ()
    """Files in the manifest of an export."""

    @property
    def is_export(self) -> bool:
        """True for an export, which may lack some tables."""
        return self.manifest is None


def find(text: str, target: Path) -> Side:
    """Return the side that a user names.

    Parameters
    ----------
    text
        A target's folder (its published build), `TARGET@BUILD`, an export's folder, or a kept build of `target`.
        Build ids can be shortened if they are unique.

    Raises
    ------
    WarehouseError
        When no build or export matches.
    """
    path = Path(text)
    if text and path.is_dir():
        return _of_folder(path)
    folder, at, name = text.rpartition("@")
    if at and Path(folder or ".").is_dir():
        return side_of(Path(folder or "."), find_build(Path(folder or "."), name))
    if at or "/" in text:
        raise WarehouseError(f"no such folder: {folder if at else text}", hint=_KINDS)
    return side_of(target, find_build(target, text))


_KINDS = "give a target, TARGET@BUILD, an export's folder, or a build id; warehouse builds lists them"


def side_of(target: Path, manifest: Manifest) -> Side:
    """Return the side of a kept build."""
    label = f"{target}@{manifest.build[:8]}"
    return Side(label, manifest.build, manifest.published_utc, target=target.absolute(), manifest=manifest)


def _of_folder(path: Path) -> Side:
    try:
        content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if content["kind"] == EXPORT:
            return Side(str(path), content["build"], folder=path.absolute(), exported=tuple(content["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not an export
    manifest = last_manifest(path) if is_target(path) else None
    if manifest is None:
        raise WarehouseError(f"{path} holds neither a published warehouse nor an export", hint=_KINDS)
    return side_of(path, manifest)


def read_tables(connection: duckdb.DuckDBPyConnection, side: Side, alias: str) -> dict[str, Table]:
    """Return the tables of a side by name. The catalog of a build is attached under `alias`.

    Relations of `raw` are not included, since they are the raw files themselves.

    Raises
    ------
    WarehouseError
        When the catalog is damaged, or the export has no Parquet files.
    """
    return _exported(side) if side.manifest is None else _built(connection, side, side.manifest, alias)


def _exported(side: Side) -> dict[str, Table]:
    found = {}
    for file in side.exported:
        if file["format"] != "parquet":
            continue
        columns = tuple(Column(one["name"], one["type"], one["unit"], one["about"]) for one in file["columns"])
        source = f"read_parquet({literal([str(side.folder / str(file['path']))])}, hive_partitioning=false)"
        table = Table(file["table"], "export", columns, tuple(file["grain"]), source=source, content=file["sha256"])
        found[table.name] = table
    if side.exported and not found:
        raise QueryError(f"the export {side.label} holds no Parquet", hint="warehouse export DIR --format parquet")
    return found


def _built(connection: duckdb.DuckDBPyConnection, side: Side, manifest: Manifest, alias: str) -> dict[str, Table]:
    from warehouse.base.startup import duckdb

    assert side.target is not None
    path = catalog_of(side.target, manifest.build)
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS {alias} (READ_ONLY)")
        models = connection.execute(
            f"SELECT model, kind, grain, partition_column, reads FROM {alias}.meta.models "
            "WHERE kind <> 'raw' AND model NOT LIKE 'raw.%' ORDER BY model"
        ).fetchall()
        column_rows = connection.execute(
            f"SELECT model, column_name, type, unit, about FROM {alias}.meta.columns ORDER BY model, position"
        ).fetchall()
        views = connection.execute(
            f"SELECT schema_name || '.' || view_name, sql FROM duckdb_views() WHERE database_name = '{alias}'"
        ).fetchall()
    except duckdb.Error as error:
        raise QueryError(
            f"the catalog {path} cannot be read: {sentence(error)}", hint="warehouse verify says more"
        ) from error
    columns = grouped((model, Column(*column)) for model, *column in column_rows)
    texts = dict(views)
    parts = part_files(side.target, manifest)
    return {
        name: Table(
            name,
            kind,
            tuple(columns.get(name, ())),
            tuple(grain or ()),
            tuple(partition.split(", ")) if partition else (),
            tuple(reads or ()),
            sql=texts.get(name, "") if kind == "view" else "",
            parts=parts.get(name, {}),
            source=f"{alias}.{qualified(name)}",
        )
        for name, kind, grain, partition, reads in models
    }


def part_files(target: Path, manifest: Manifest) -> dict[str, dict[str, PartFile]]:
    """Return the parts of a build by model and partition."""
    found: dict[str, dict[str, PartFile]] = {}
    for entry in manifest.parts:
        part = PartFile(
            target / str(entry["path"]), str(entry["fingerprint"]), str(entry["digest"]), int(str(entry["rows"]))
        )
        found.setdefault(str(entry["model"]), {})[partition_name(entry["partition"])] = part
    return found
