"""Inputs of parts: their digests, whose hash is the fingerprint that names a part, and the files to read."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from warehouse.base import hashing
from warehouse.engine.base import CsvFiles, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.volatile import looks_volatile
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Node, checked_relations
from warehouse.graph.plan import Key, Plan
from warehouse.ingest.schemas import FILES
from warehouse.project.check_language import relations_of
from warehouse.project.contract import Check
from warehouse.project.project import Project, Reference
from warehouse.store.layout import ALL, partition_value
from warehouse.store.part_records import Part
from warehouse.store.partitions import columns_of

RECIPE = 5
"""Version of the Parquet layout, part of every fingerprint. Increase it if a SELECT is written as different bytes."""


class Inputs:
    """Inputs of all parts of a build.

    Parameters
    ----------
    parts
        The finished parts. A part's fingerprint is known once all parts that it reads are finished.
    """

    def __init__(self, project: Project, plan: Plan, engine: DuckDBEngine, parts: Mapping[Key, Part]) -> None:
        self._references = project.references
        self._plan = plan
        self._nodes = plan.graph.nodes
        self._raw_files = plan.raw_files
        self._engine = engine
        self._parts = parts
        self._digests: dict[tuple[str, str], str] = {}
        self.nonce = uuid.uuid4().hex
        """Per-build nonce that forces volatile SELECTs and checks to run."""

    def of(self, key: Key) -> dict[str, object]:
        """Return the inputs of a part. Their hash is its fingerprint.

        Units, texts and checks do not count. The digest of an unfinished input is None.
        """
        node = self._nodes[key.model]
        reads = {
            read: self.digest(read, key.partition) if self.is_known(read, key.partition) else None
            for read in node.reads
        }
        if joined := self._plan.graph.joined_with_files(node):
            reads[FILES] = self._raw_files.digest(FILES, partition_value(key.partition), joined)
        inputs: dict[str, object] = {
            "recipe": RECIPE,
            "engine": [self._engine.name, self._engine.version],
            "select": node.canonical_hash,
            "columns": [[column.name, column.type] for column in node.model.columns],
            "grain": list(node.model.grain),
            "presorted": node.model.presorted,
            "inputs": reads,
        }
        return inputs | ({"once": self.nonce} if node.volatile else {})

    def is_known(self, read: str, partition: str) -> bool:
        """Return True if all parts of a relation, or of the relations below a view, are finished."""
        return self._plan.parts_of(read, partition) <= self._parts.keys()

    def digest(self, read: str, partition: str) -> str:
        """Return the digest of an input: of the content of raw files and reference tables, of the bytes of parts."""
        where = partition if is_raw(read) or self._plan.columns(read) else ALL
        known = self._digests.get((read, where))
        if known is None:
            known = self._digests[read, where] = self._new_digest(read, where)
        return known

    def _new_digest(self, read: str, partition: str) -> str:
        if is_raw(read):
            return self._raw_files.digest(read, partition_value(partition))
        if read in self._references:
            reference = self._references[read]
            types = [(column.name, column.type) for column in reference.columns]
            return hashing.of([hashing.of_file(reference.path), types])
        node = self._nodes[read]
        if node.model.is_view:
            below = {other: self.digest(other, partition) for other in node.reads}
            columns = [(column.name, column.type) for column in node.model.columns]
            return hashing.of([node.canonical, columns, below, self.nonce if node.volatile else None])
        visible = self._plan.visible(read, partition)
        return hashing.of([[one, self._parts[Key(read, one)].digest] for one in visible])

    def of_check(self, check: Check, key: Key, digest: str) -> str:
        """Return the hash of a check and of all rows that it reads, those of the part by their digest."""
        others = [self.digest(read, key.partition) for read in relations_of(check.text) if read != key.model]
        others += [self.nonce] if looks_volatile(check.text) else []
        return hashing.of([check.text, check.warn, digest, others])

    def sources(self, key: Key) -> dict[str, Source]:
        """Return the sources of all relations that a part's SELECT and its checks read, in dependency order."""
        node = self._nodes[key.model]
        sources: dict[str, Source] = {}
        if joined := self._plan.graph.joined_with_files(node):
            sources[FILES] = self._raw_files.source(FILES, partition_value(key.partition), self._engine, joined)
        for read in sorted({*node.reads, *checked_relations(node)} - {key.model}):
            self._add(sources, read, key.partition)
        return sources

    def _add(self, sources: dict[str, Source], read: str, partition: str) -> None:
        """Add the source of a relation; before a view, the sources that it reads."""
        if read in sources:
            return
        node = self._nodes.get(read)
        if node is None:
            sources[read] = self.outside(read, partition)
        elif node.model.is_view:
            for below in node.reads:
                self._add(sources, below, partition)
            sources[read] = Select(node.sql, node.model.columns)
        else:
            parts = [self._parts[Key(read, one)] for one in self._plan.visible(read, partition)]
            sources[read] = parts_source(node, parts, within=columns_of(partition))

    def outside(self, read: str, partition: str) -> Source:
        """Return the source of a relation that no model makes."""
        if read in self._references:
            return reference_source(self._references[read])
        return self._raw_files.source(read, partition_value(partition), self._engine)


def parts_source(node: Node, parts: list[Part], within: tuple[str, ...] = ()) -> Parts:
    """Return the source of a table. A reader of several partitions can leave out files by their folders."""
    hive = node.model.partition if set(node.model.partition) - {*within} and len(parts) > 1 else ()
    return Parts(node.model.columns, tuple(part.file for part in parts), hive)


def reference_source(reference: Reference) -> CsvFiles:
    """Return the source of a reviewed table of `data/`."""
    columns = {column.name: column.type for column in reference.columns}
    seen = {reference.path: reference.seen}
    return CsvFiles(columns, (reference.path,), quote='"', filename=False, seen=seen)
