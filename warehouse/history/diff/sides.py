"""What can be compared: a build that a target keeps, or an export, as tables that an engine can read.

A table of a build is known by the digests of its parts, so that equal ones are never opened.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import regex
from warehouse.engine.base import Parts
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.duckdb_sql import source_sql
from warehouse.history.builds import find_build, is_target
from warehouse.project.contract import Column
from warehouse.store.manifest import Manifest, last_manifest
from warehouse.store.output_folder import EXPORT, MANIFEST
from warehouse.store.part_records import ALL

if TYPE_CHECKING:
    import duckdb

_HOUR = regex(r"^(\d{4}-\d\d-\d\d)T(\d\d)$")
"""How a partition is named after the hour in its column."""


@dataclass(frozen=True)
class PartFile:
    """A part as a manifest lists it."""

    path: Path
    fingerprint: str
    digest: str
    rows: int


@dataclass(frozen=True)
class Table:
    """A table of one side."""

    name: str
    kind: str
    """`table`, `partitioned`, `view`, `reference`, or `export`."""
    columns: tuple[Column, ...]
    grain: tuple[str, ...] = ()
    partition: str | None = None
    reads: tuple[str, ...] = ()
    sql: str = ""
    """Of a view."""
    parts: Mapping[str, PartFile] = field(default_factory=dict)
    """By partition, where it has parts."""
    source: str = ""
    """What to read where it has none, as SQL."""
    content: str = ""
    """The hash of an exported file."""

    @property
    def has_parts(self) -> bool:
        """Whether its rows are in parts of its own."""
        return self.kind in ("table", "partitioned")

    def select(self, partitions: Collection[str] | None = None) -> str:
        """A SELECT of its rows: all, or those of some partitions."""
        if self.has_parts:
            chosen = self.parts if partitions is None else [name for name in partitions if name in self.parts]
            return source_sql(Parts(self.columns, tuple(self.parts[name].path for name in sorted(chosen))))
        rows = f"SELECT {', '.join(identifier(column.name) for column in self.columns)} FROM {self.source}"
        hours = [_HOUR.match(name) for name in partitions or ()]
        if partitions is None or not self.is_split or not all(hours):
            return rows
        listed = ", ".join(f"TIMESTAMP '{hour[1]} {hour[2]}:00:00'" for hour in hours if hour)
        return f"{rows} WHERE {identifier(self.partition or '')} IN ({listed})"

    @property
    def is_split(self) -> bool:
        """Whether its rows can be chosen by partition."""
        return any(column.name == self.partition and column.type == "TIMESTAMP" for column in self.columns)


@dataclass(frozen=True)
class Side:
    """One of two things to compare."""

    label: str
    """As people would name it: `build/warehouse@7f3a91c2`."""
    build: str | None
    published_utc: str = ""
    target: Path | None = None
    manifest: Manifest | None = None
    """Of a build."""
    folder: Path = Path()
    exported: tuple[Mapping[str, Any], ...] = ()
    """The files of an export, as its manifest lists them."""

    @property
    def is_export(self) -> bool:
        """Whether it is an export, which need not hold all tables."""
        return self.manifest is None


def find(text: str, target: Path) -> Side:
    """What people mean by `text`.

    Parameters
    ----------
    text
        A target's folder (its published build), `TARGET@BUILD`, an export's folder, or a build that `target`
        keeps; builds by any beginning of their id that names one.

    Raises
    ------
    WarehouseError
        When there is nothing of the kind.
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
    """A build that a target keeps."""
    label = f"{target}@{manifest.build[:8]}"
    return Side(label, manifest.build, manifest.published_utc, target=target.absolute(), manifest=manifest)


def _of_folder(path: Path) -> Side:
    try:
        said = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if said["kind"] == EXPORT:
            return Side(str(path), said["build"], folder=path.absolute(), exported=tuple(said["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no export
    manifest = last_manifest(path) if is_target(path) else None
    if manifest is None:
        raise WarehouseError(f"{path} holds neither a published warehouse nor an export", hint=_KINDS)
    return side_of(path, manifest)


def read_tables(connection: duckdb.DuckDBPyConnection, side: Side, alias: str) -> dict[str, Table]:
    """The tables of a side, by name; the catalog of a build is attached under `alias`.

    Relations of `raw` are none of them: they are the files as they lie.

    Raises
    ------
    WarehouseError
        When the catalog is damaged, or the export holds no Parquet.
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
    path = side.target / "builds" / manifest.build / "catalogue.duckdb"
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS {alias} (READ_ONLY)")
        models = connection.execute(
            f"SELECT model, kind, grain, partition_column, reads FROM {alias}.meta.models "
            "WHERE kind <> 'raw' AND model NOT LIKE 'raw.%' ORDER BY model"
        ).fetchall()
        said = connection.execute(
            f"SELECT model, column_name, type, unit, about FROM {alias}.meta.columns ORDER BY model, position"
        ).fetchall()
        views = connection.execute(
            f"SELECT schema_name || '.' || view_name, sql FROM duckdb_views() WHERE database_name = '{alias}'"
        ).fetchall()
    except duckdb.Error as error:
        raise QueryError(
            f"the catalog {path} cannot be read: {sentence(error)}", hint="warehouse verify says more"
        ) from error
    columns: dict[str, list[Column]] = {}
    for model, *column in said:
        columns.setdefault(model, []).append(Column(*column))
    texts = dict(views)
    parts = part_files(side.target, manifest)
    return {
        name: Table(
            name,
            kind,
            tuple(columns.get(name, ())),
            tuple(grain or ()),
            partition,
            tuple(reads or ()),
            sql=texts.get(name, "") if kind == "view" else "",
            parts=parts.get(name, {}),
            source=f"{alias}.{qualified(name)}",
        )
        for name, kind, grain, partition, reads in models
    }


def part_files(target: Path, manifest: Manifest) -> dict[str, dict[str, PartFile]]:
    """The parts of a build, by model and partition."""
    found: dict[str, dict[str, PartFile]] = {}
    for said in manifest.parts:
        part = PartFile(
            target / str(said["path"]), str(said["fingerprint"]), str(said["digest"]), int(str(said["rows"]))
        )
        found.setdefault(str(said["model"]), {})[str(said["partition"] or ALL)] = part
    return found
