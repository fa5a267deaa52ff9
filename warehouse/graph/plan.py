"""Parts of a build and their upstream parts.

A model with `partition`, columns of `raw.files`, has one part for each of their values in its inputs. Other models have
one part, `all`. A view has no part: models downstream of it read the view's inputs. A model has no part either if it
must be empty because raw files that it needs are missing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from warehouse.base import hashing
from warehouse.base.errors import ModelError
from warehouse.base.text import grouped
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.sources import CsvFiles, Parts, Select, Source
from warehouse.engine.tree import looks_volatile
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, checked_relations
from warehouse.ingest.raw_files import RawFiles
from warehouse.ingest.reading import FILES
from warehouse.project.contract import Check
from warehouse.project.model import MEANING, REFERENCES, relations_of
from warehouse.project.project import Project, Reference
from warehouse.store.manifest import ALL, Part, columns_of, narrowed, partition_value

RECIPE = 6
"""Version of the Parquet layout, part of every fingerprint. Increase it if a SELECT is written as different bytes."""


class Key(NamedTuple):
    """Key of a part: a model and one of its partitions (`all` if it is not partitioned)."""

    model: str
    partition: str


class Plan:
    """All parts of a build in dependency order, the finished ones, and the inputs of each.

    A part's fingerprint is known once all parts that it reads are finished.
    """

    def __init__(self, project: Project, graph: Graph, raw_files: RawFiles, engine: DuckDBEngine) -> None:
        self.graph = graph
        self.raw_files = raw_files
        self.parts: dict[Key, Part] = {}
        """The finished parts."""
        self.nonce = uuid.uuid4().hex
        """Per-build nonce that forces volatile SELECTs and checks to run."""
        self._references = project.references
        self._engine = engine
        self._keys_of: dict[tuple[str, str], set[Key]] = {}
        self._visible: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
        self._digests: dict[tuple[str, str], str] = {}

    def partitions(self, name: str) -> Sequence[str]:
        """Return the sorted partitions of a model or view; `[all]` if not partitioned, `[]` if it must be empty."""
        if name in self._without_files:
            return []
        return self._values[name] if self.columns(name) else [ALL]

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the partition columns of a model or view; none of other relations."""
        node = self.graph.nodes.get(name)
        return node.model.partition if node else ()

    @cached_property
    def _without_files(self) -> frozenset[str]:
        """Raw relations without a raw file, and the models that are empty without them.

        A model does not count as empty if one of its checks could fail on an empty table, such as `rows >= 1`.
        """
        empty = {name for name in self.graph.source_columns if is_raw(name) and not self.raw_files.feeds(name)}
        for name in self.graph.order:
            node = self.graph.nodes[name]
            if any(group <= empty for group in node.needs) and all(
                check.warn or _passes_when_empty(check, node, empty | {name}) for check in node.model.checks
            ):
                empty.add(name)
        return frozenset(empty)

    @cached_property
    def _values(self) -> Mapping[str, list[str]]:
        """Sorted partitions of each model: those of its inputs with the same partition columns, or with more.

        Raises
        ------
        ModelError
            If no input has them: the model would have no part.
        """
        found: dict[str, list[str]] = {}
        for name in self.graph.order:
            columns = self.columns(name)
            values: dict[str, set[str]] = {}
            for read in self.graph.nodes[name].reads if columns else ():
                if is_raw(read):
                    values[read] = self.raw_files.partitions(read, columns)
                elif set(columns) <= set(self.columns(read)):
                    values[read] = {narrowed(one, columns) for one in found[read]}
            if columns and not values:
                raise ModelError(
                    f"no input of {name} is partitioned by {', '.join(columns)}",
                    place=self.graph.nodes[name].model.place(1),
                    hint="read a raw relation, or add these columns to the `partition` of a model that it reads",
                )
            listed = values.pop(FILES, set())  # it lists all files, so it counts only if no other input has values
            found[name] = sorted(set().union(*values.values()) if values else listed)
        return found

    def upstream_parts(self, key: Key) -> set[Key]:
        """Return the parts that must be finished before this part can be made, and checked."""
        node = self.graph.nodes[key.model]
        reads = {*node.reads, *checked_relations(node)} - {key.model}  # checks may read their own model
        return {need for read in reads for need in self.parts_of(read, key.partition)}

    def parts_of(self, read: str, partition: str) -> set[Key]:
        """Return the parts of a relation that a part of this partition reads; of a view, the parts that it reads."""
        if (read, partition) not in self._keys_of:
            tables = [below for below in self.graph.below_views([read]) if below in self.graph.nodes]
            found = {Key(table, one) for table in tables for one in self.visible(table, partition)}
            self._keys_of[read, partition] = found
        return self._keys_of[read, partition]

    def visible(self, read: str, partition: str) -> list[str]:
        """Return the partitions of `read` that a part of this partition reads.

        These are the ones with the same values of the columns that both have.
        """
        columns = self.columns(read)
        shared = tuple(column for column in columns_of(partition) if column in columns)
        if (read, shared) not in self._visible:
            self._visible[read, shared] = grouped((narrowed(one, shared), one) for one in self.partitions(read))
        return self._visible[read, shared].get(narrowed(partition, shared), [])

    # inputs of parts ----------------------------------------------------------------------------------

    def inputs_of(self, key: Key) -> dict[str, Any]:
        """Return the inputs of a part. Their hash is its fingerprint.

        Units, texts and checks do not count. The digest of an unfinished input is None.
        """
        node = self.graph.nodes[key.model]
        reads = {
            read: self.digest(read, key.partition) if self.is_known(read, key.partition) else None
            for read in node.reads
        }
        if joined := self.graph.joined_with_files(node):
            reads[FILES] = self.raw_files.digest(FILES, partition_value(key.partition), joined)
        return {
            "recipe": RECIPE,
            "engine": [self._engine.name, self._engine.version],
            "select": node.canonical_hash,
            "columns": [[column.name, column.type] for column in node.model.columns],
            "grain": list(node.model.grain),
            "presorted": node.model.presorted,
            "inputs": reads,
            **({"once": self.nonce} if node.volatile else {}),
        }

    def is_known(self, read: str, partition: str) -> bool:
        """Return True if all parts of a relation, or of the relations below a view, are finished."""
        return self.parts_of(read, partition) <= self.parts.keys()

    def digest(self, read: str, partition: str) -> str:
        """Return the digest of an input: of the content of raw files and reference tables, of the bytes of parts."""
        where = partition if is_raw(read) or self.columns(read) else ALL
        if (read, where) not in self._digests:
            self._digests[read, where] = self._new_digest(read, where)
        return self._digests[read, where]

    def _new_digest(self, read: str, partition: str) -> str:
        if is_raw(read):
            return self.raw_files.digest(read, partition_value(partition))
        if read in self._references:
            reference = self._references[read]
            types = [(column.name, column.type) for column in reference.columns]
            return hashing.of([hashing.of_file(reference.path), types])
        node = self.graph.nodes[read]
        if node.model.is_view:
            below = {other: self.digest(other, partition) for other in node.reads}
            columns = [(column.name, column.type) for column in node.model.columns]
            return hashing.of([node.canonical, columns, below, self.nonce if node.volatile else None])
        visible = self.visible(read, partition)
        return hashing.of([[one, self.parts[Key(read, one)].digest] for one in visible])

    def of_check(self, check: Check, key: Key) -> str:
        """Return the hash of a check and of all rows that it reads."""
        reads = [self.digest(read, key.partition) for read in (key.model, *relations_of(check.text))]
        once = self.nonce if looks_volatile(check.text) else None
        return hashing.of([MEANING, check.text, check.warn, self.graph.nodes[key.model].model.grain, reads, once])

    def sources(self, key: Key) -> dict[str, Source]:
        """Return the sources of all relations that a part's SELECT and its checks read, in dependency order."""
        node = self.graph.nodes[key.model]
        sources: dict[str, Source] = {}
        if joined := self.graph.joined_with_files(node):
            sources[FILES] = self.raw_files.source(FILES, partition_value(key.partition), self._engine, joined)
        for read in sorted({*node.reads, *checked_relations(node)} - {key.model}):
            self._add(sources, read, key.partition)
        return sources

    def _add(self, sources: dict[str, Source], read: str, partition: str) -> None:
        """Add the source of a relation; before a view, the sources that it reads."""
        if read in sources:
            return
        node = self.graph.nodes.get(read)
        if node is None:
            sources[read] = self.outside(read, partition)
        elif node.model.is_view:
            for below in node.reads:
                self._add(sources, below, partition)
            sources[read] = Select(node.sql, node.model.columns)
        else:
            parts = [self.parts[Key(read, one)] for one in self.visible(read, partition)]
            sources[read] = parts_source(node, parts, within=columns_of(partition))

    def outside(self, read: str, partition: str) -> Source:
        """Return the source of a relation that no model makes."""
        if read in self._references:
            return reference_source(self._references[read])
        return self.raw_files.source(read, partition_value(partition), self._engine)


def _passes_when_empty(check: Check, node: Node, empty: set[str]) -> bool:
    """Return True if no row can fail a check while its model and these relations are empty."""
    if REFERENCES.match(check.text):
        return True  # an empty model has no row that can fail
    if check.text in node.checks_need:
        return any(group <= empty for group in node.checks_need[check.text])
    return set(relations_of(check.text)) <= empty and not check.text.lower().startswith("rows")


def parts_source(node: Node, parts: list[Part], within: tuple[str, ...] = ()) -> Parts:
    """Return the source of a table. A reader of several partitions can leave out files by their folders."""
    hive = node.model.partition if set(node.model.partition) - {*within} and len(parts) > 1 else ()
    return Parts(node.model.columns, tuple(part.file for part in parts), hive)


def reference_source(reference: Reference) -> CsvFiles:
    """Return the source of a reviewed table of `data/`."""
    columns = {column.name: column.type for column in reference.columns}
    seen = {reference.path: reference.seen}
    return CsvFiles(columns, (reference.path,), quote='"', filename=False, seen=seen)
