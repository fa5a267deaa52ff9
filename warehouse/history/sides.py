"""Both sides of a comparison, kept builds or exports: their tables, in which partitions they can differ, and why.

A build's manifest has the content hashes of parts, so that equal tables are never opened. The catalog has the inputs of
each table, the target's state the values of each part's fingerprint, and each build a list of its raw files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from warehouse.base.errors import QueryError, WarehouseError
from warehouse.base.sql_text import identifier, literal, qualified
from warehouse.base.startup import duckdb
from warehouse.base.text import grouped
from warehouse.engine.duckdb_errors import sentence
from warehouse.engine.sources import Parts, source_sql
from warehouse.formats.base import is_raw
from warehouse.history.builds import find_build, is_target
from warehouse.ingest.raw_files import FileList, changes, read_listing
from warehouse.ingest.reading import FILES, REJECTED
from warehouse.project.contract import Column
from warehouse.store.manifest import (
    EXPORT,
    HOUR,
    MANIFEST,
    Entry,
    Manifest,
    catalog_of,
    columns_of,
    hour_of,
    last_manifest,
    narrowed,
    partition_name,
    values_of,
)
from warehouse.store.parts import Store

LISTINGS = (FILES, REJECTED)
"""Lists written by the runner. They contain absolute paths and mtimes."""


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
    parts: Mapping[str, Entry] = field(default_factory=dict)
    """Parts by partition, if the table has its own."""
    folder: Path = Path()
    """Folder that the paths of parts are relative to."""
    source: str = ""
    """FROM item to read a table without parts."""
    content: str = ""
    """Content hash of an exported file."""

    @property
    def contract(self) -> list[str]:
        """Columns with type and unit, and the grain, each as a line."""
        columns = [f"column {one.name} {one.type}{f' [{one.unit}]' if one.unit else ''}" for one in self.columns]
        return [*columns, f"grain ({', '.join(self.grain)})"]

    @property
    def has_parts(self) -> bool:
        """True if the rows are in the table's own parts."""
        return self.kind in ("table", "partitioned")

    @property
    def is_split(self) -> bool:
        """True if rows can be selected by hour."""
        return HOUR in self.partition and (HOUR, "TIMESTAMP") in [(column.name, column.type) for column in self.columns]

    def select(self, partitions: Collection[str] | None = None) -> str:
        """Return the SELECT of all rows, or of the rows of some partitions."""
        if self.has_parts:
            names = sorted(self.parts if partitions is None else self.parts.keys() & set(partitions))
            return source_sql(Parts(self.columns, tuple(self.folder / self.parts[name]["path"] for name in names)))
        rows = f"SELECT {', '.join(identifier(column.name) for column in self.columns)} FROM {self.source}"
        if partitions is None or not self.is_split or not all(map(hour_of, partitions)):
            return rows
        listed = ", ".join(f"TIMESTAMP {literal(values_of(name)[HOUR])}" for name in sorted(partitions))
        return f"{rows} WHERE {HOUR} IN ({listed or 'NULL'})"


@dataclass(frozen=True)
class Side:
    """Side of a comparison: a build or an export."""

    label: str
    """Name for messages, such as `build/warehouse@7f3a91c2`."""
    build: str
    folder: Path
    """Target of a build, or folder of an export."""
    manifest: Manifest | None = None
    """Manifest of a build; None for an export."""
    exported: tuple[Mapping[str, Any], ...] = ()
    """Files in the manifest of an export."""

    @property
    def is_export(self) -> bool:
        """True for an export, which may lack some tables."""
        return self.manifest is None

    @property
    def published_utc(self) -> str:
        """Time of the publication, UTC; empty for an export."""
        return self.manifest.published_utc if self.manifest else ""


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
    # From the right, as the path of a target may have an @.
    folder, at, name = text.rpartition("@")
    place = Path(folder) if at else target
    return side_of(place, find_build(place, name))


def side_of(target: Path, manifest: Manifest) -> Side:
    """Return the side of a kept build."""
    return Side(f"{target}@{manifest.build[:8]}", manifest.build, target.absolute(), manifest)


def _of_folder(path: Path) -> Side:
    try:
        content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if content["kind"] == EXPORT:
            return Side(str(path), content["build"], path.absolute(), exported=tuple(content["files"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not an export
    manifest = last_manifest(path) if is_target(path) else None
    if manifest is None:
        raise WarehouseError(
            f"{path} holds neither a published warehouse nor an export",
            hint="give a target, TARGET@BUILD, an export's folder, or a build id; warehouse builds lists them",
        )
    return side_of(path, manifest)


class Pair:
    """Tables of both sides by name, and what can differ between them.

    Relations of `raw` are not among the tables, since they are the raw files themselves.

    Parameters
    ----------
    connection
        Connection to attach the catalogs of builds to, as `old` and `new`.
    old, new
        The sides.

    Raises
    ------
    WarehouseError
        When a catalog is damaged, or an export has no Parquet files.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, old: Side, new: Side) -> None:
        self.old, self.new = old, new
        self.before, self.after = _tables(connection, old, "old"), _tables(connection, new, "new")
        self._connection = connection
        self.moved = cache(self._look)
        """Partitions of a relation that can differ: none if it is equal, None if any row can differ."""

    @cached_property
    def listings(self) -> tuple[FileList, FileList] | None:
        """Lists of raw files of both builds; None if one is missing."""
        old, new = (read_listing(side.folder, side.build) for side in (self.old, self.new))
        return None if old is None or new is None else (old, new)

    def _look(self, name: str) -> frozenset[str] | None:
        old, new = self.before.get(name), self.after.get(name)
        if old is None or new is None:
            return None
        if old.has_parts and new.has_parts:
            digests = [{(name, part["digest"]) for name, part in table.parts.items()} for table in (old, new)]
            return frozenset(name for name, _ in digests[0] ^ digests[1])
        shapes = [(table.kind, table.sql, [(one.name, one.type) for one in table.columns]) for table in (old, new)]
        if shapes[0] != shapes[1]:
            return None
        if new.kind == "view":
            return self._through(new)
        if new.kind == "reference":
            return None if differ(self._connection, old.select(), new.select()) else frozenset()
        return frozenset() if old.content == new.content else None

    def _through(self, view: Table) -> frozenset[str] | None:
        """Return the hours of a view that can differ because of its inputs; None if any row can."""
        found: set[str] = set()
        for read in view.reads:
            moved = self._hours(read)
            if moved is None or (moved and not view.is_split):
                return None
            found |= moved
        return frozenset(found)

    def _hours(self, read: str) -> frozenset[str] | None:
        """Return the hours in which a view's input can differ; None if any row can differ."""
        if is_raw(read):
            if read in LISTINGS or self.listings is None:
                return None
            # A file of no hour may change any row.
            named = [{*map(hour_of, file.partitions)} - {""} for file in changes(*self.listings, read)]
            return frozenset[str]().union(*named) if all(named) else None
        moved = self.moved(read)
        hours = moved and frozenset(map(hour_of, moved))
        return hours if hours is None or all(hours) else None


def differ(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Return True if two SELECTs have different rows."""
    # ALL, so that the number of equal rows counts, too.
    both = f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"
    return bool(connection.execute(f"SELECT 1 FROM ({both}) LIMIT 1").fetchall())


def _exported(side: Side) -> dict[str, Table]:
    found = {}
    for file in side.exported:
        if file.get("format") == "parquet":  # the matrix for a simulator has no tables
            columns = tuple(Column(one["name"], one["type"], one["unit"], one["about"]) for one in file["columns"])
            source = f"read_parquet({literal([str(side.folder / str(file['path']))])}, hive_partitioning=false)"
            grain = tuple(file["grain"])
            found[file["table"]] = Table(file["table"], "export", columns, grain, source=source, content=file["sha256"])
    if side.exported and not found:
        raise QueryError(f"the export {side.label} holds no Parquet", hint="warehouse export DIR --format parquet")
    return found


def _tables(connection: duckdb.DuckDBPyConnection, side: Side, alias: str) -> dict[str, Table]:
    if side.manifest is None:
        return _exported(side)
    path = catalog_of(side.folder, side.build)
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS {alias} (READ_ONLY)")
        rows = connection.execute(
            "SELECT model, kind, grain, string_split(partition_column, ', '), reads, v.sql, "
            "(SELECT list((column_name, type, unit, about) ORDER BY position) "
            f"FROM {alias}.meta.columns c WHERE c.model = m.model) FROM {alias}.meta.models m "
            f"LEFT JOIN duckdb_views() v ON database_name = '{alias}' AND schema_name || '.' || view_name = model "
            "WHERE kind <> 'raw' AND model NOT LIKE 'raw.%' ORDER BY model"
        ).fetchall()
    except duckdb.Error as error:
        raise QueryError(
            f"the catalog {path} cannot be read: {sentence(error)}", hint="warehouse verify says more"
        ) from error
    parts = grouped((part["model"], (partition_name(part["partition"]), part)) for part in side.manifest.parts)
    return {
        name: Table(
            name,
            kind,
            tuple(Column(*one) for one in columns or ()),
            tuple(grain or ()),
            tuple(partition or ()),
            tuple(reads or ()),
            sql=text if kind == "view" else "",
            parts=dict(parts.get(name, ())),
            folder=side.folder,
            source=f"{alias}.{qualified(name)}",
        )
        for name, kind, grain, partition, reads, text, columns in rows
    }


RAW = "files"
ORIGINS = {
    "sql": "the SQL of {name}",
    "contract": "the columns or grain of {name}",
    "engine": "another engine made {name}",
    "volatile": "{name} is other rows at any time",
    "unstable": "{name}: the same inputs and SQL gave other rows",
    "reference": "the reviewed table {name}",
    "new": "{name} is new",
    "gone": "{name} is gone",
    "unrecorded": "not recorded: what {name} was made from, as state.sqlite was lost",
}
"""Kinds of origins besides raw files, each with its sentence."""
_INPUTS = {"select": "sql", "engine": "engine", "recipe": "engine", "once": "volatile"}
"""Inputs of a part's fingerprint, each with the kind of origin that it is if it differs."""


@dataclass(frozen=True)
class Origin:
    """Origin of a change."""

    kind: str
    """`files`, or one of `ORIGINS`."""
    name: str
    """Relation that changed."""
    through: tuple[str, ...] = ()
    """Models between the origin and the table, the nearest to the origin first."""
    files: tuple[tuple[str, str], ...] = ()
    """(`added`, `removed` or `changed`, release path) of each raw file."""


class Trace:
    """Search for the origins of changes between two builds."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._stores = [Store(side.folder) for side in (pair.old, pair.new)]
        self._direct = cache(self._look)

    def close(self) -> None:
        """Close the states of both targets."""
        for store in self._stores:
            store.close()

    def origins(self, table: str) -> tuple[Origin, ...]:
        """Return the origins of a table's change, the nearest first."""
        found: dict[tuple[str, str], Origin] = {}
        ways: dict[str, tuple[str, ...]] = {table: ()}
        waiting = [table]
        while waiting:
            # From the front: breadth first finds the shortest way.
            name = waiting.pop(0)
            own, below = self._direct(name)
            for origin in own:
                found.setdefault((origin.kind, origin.name), replace(origin, through=ways[name]))
            for read in below:
                if read not in ways:
                    ways[read] = (name, *ways[name]) if name != table else ways[name]
                    waiting.append(read)
        return tuple(found.values()) or (Origin("unrecorded", table),)

    def _look(self, name: str) -> tuple[list[Origin], list[str]]:
        """Return the origins in a relation itself, and its changed inputs."""
        old, new = self._pair.before.get(name), self._pair.after.get(name)
        if old is None or new is None:
            return [Origin("gone" if new is None else "new", name)], []
        if new.kind == "reference":
            return [Origin("reference", name)], []
        kinds = set(self._of_parts(old, new)) | ({"sql"} if old.sql != new.sql else set())
        kinds |= {"contract"} if old.contract != new.contract else set()
        reads = sorted({*old.reads, *new.reads})
        own = [Origin(kind, name) for kind in sorted(kinds)]
        own += self._of_files([read for read in reads if is_raw(read)], name)
        return own, [read for read in reads if not is_raw(read) and self._reaches(read, name)]

    def _reaches(self, read: str, table: str) -> bool:
        """Return True if an input changed in a partition that the table, in one that changed, reads."""
        below, above = self._pair.moved(read), self._pair.moved(table)
        if not below or not above:
            return below is None or bool(below)
        # A table of hours may read one of hours and switches: only the hour can be compared.
        shared = frozenset.intersection(*(frozenset(columns_of(one)) for one in below | above))
        return not {narrowed(one, shared) for one in below}.isdisjoint(narrowed(one, shared) for one in above)

    def _of_parts(self, old: Table, new: Table) -> Iterator[str]:
        """Yield the kinds of origins in the inputs of parts; those of an added or removed part are upstream."""
        for partition in self._pair.moved(new.name) or ():
            one, other = old.parts.get(partition), new.parts.get(partition)
            if one and other and one["fingerprint"] == other["fingerprint"]:
                yield "unstable"
            elif one and other:
                before, after = (
                    store.inputs(new.name, partition, part["fingerprint"])
                    for store, part in zip(self._stores, (one, other), strict=True)
                )
                if not before or not after:
                    yield "unrecorded"
                    continue
                yield from (kind for key, kind in _INPUTS.items() if before.get(key) != after.get(key))

    def _of_files(self, reads: list[str], name: str) -> list[Origin]:
        """Return the changed raw files of a model that reads these relations of `raw`."""
        if not reads:
            return []
        if self._pair.listings is None:
            return [Origin("unrecorded", name)]
        moved = self._pair.moved(name)
        found = {
            (change.release_path, change.change)
            for relation in [read for read in reads if read not in LISTINGS] or [FILES]
            for change in changes(*self._pair.listings, relation)
            if moved is None or any(change.is_in(partition) for partition in moved)
        }
        return [Origin(RAW, name, files=tuple((change, path) for path, change in sorted(found)))] if found else []
