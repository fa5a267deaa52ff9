"""Fingerprints of parts (hashes of their inputs), and the sources that a part's SELECT and checks read."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from warehouse.base import hashing
from warehouse.engine.base import CsvFiles, Engine, Parts, Select, Source
from warehouse.graph.dag import Node, checked_relations
from warehouse.graph.parts import Key, Plan
from warehouse.ingest.schemas import FILES
from warehouse.kernels import SELECTS, VERSIONS
from warehouse.project.project import Project, Reference
from warehouse.store.part_records import ALL, Part

RECIPE = 4
"""Version of the Parquet layout, part of every fingerprint. Increase it if a SELECT is written as different bytes."""

FEW_ROWS = 100_000
"""Maximum number of input rows of a part that is built in memory and kept there for downstream parts."""


class Inputs:
    """Inputs and fingerprints of all parts of a build.

    Parameters
    ----------
    parts
        The finished parts. A part's fingerprint is known once all parts that it reads are finished.
    """

    def __init__(
        self, project: Project, plan: Plan, engine: Engine, parts: Mapping[Key, Part], *, kernels: bool = True
    ) -> None:
        self._project = project
        self._plan = plan
        self._nodes = plan.graph.nodes
        self._raw_files = plan.raw_files
        self._engine = engine
        self._parts = parts
        self._kernels = kernels
        self._digests: dict[tuple[str, str], str] = {}
        self.nonce = uuid.uuid4().hex
        """Per-build nonce that forces volatile SELECTs and checks to run."""

    def made_of(self, key: Key) -> dict[str, object]:
        """Return the inputs of a part: canonical SELECT, types, engine, input digests. Their hash is its fingerprint.

        The digest of an unfinished input is None.
        """
        node = self._nodes[key.model]
        reads = {
            read: self.digest(read, key.partition) if self.is_known(read, key.partition) else None
            for read in node.reads
        }
        if beside := self._joined_with_files(node):
            reads[FILES] = self._raw_files.digest(FILES, _or_none(key.partition), beside)
        inputs: dict[str, object] = {
            "recipe": RECIPE,
            "engine": [self._engine.name, self._engine.version],
            "select": node.canonical_hash,
            "columns": [[column.name, column.type] for column in node.model.columns],
            "grain": list(node.model.grain),
            "kernel": self._kernel_version(node),
            "presorted": node.model.presorted,
            "inputs": reads,
        }
        return inputs | ({"once": self.nonce} if node.volatile else {})

    def is_equivalent(self, made: Mapping[str, Any], wanted: Mapping[str, object]) -> bool:
        """Return True if another engine, of an earlier release, wrote a part with equal rows from the same inputs."""
        ignored = {"engine", "kernel", "sql"}
        wanted_inputs, made_inputs = (
            {name: one for name, one in inputs.items() if name not in ignored} for inputs in (wanted, made)
        )
        return wanted_inputs == made_inputs and str(made["engine"][0]) != self._engine.name

    def kernel_of(self, node: Node) -> str | None:
        """Return the kernel of a model; None if the SELECT is not the one that the kernel implements."""
        name = node.model.kernel
        if not name or not self._kernels:
            return None
        return name if self._plan.graph.definition(node.name) == SELECTS[name] else None

    def _kernel_version(self, node: Node) -> list[object] | None:
        """Return name and version of a model's kernel: it gives the rows of the SELECT, but other Parquet bytes."""
        name = self.kernel_of(node)
        return [name, VERSIONS[name]] if name else None

    def is_known(self, read: str, partition: str) -> bool:
        """Return True if all parts of a relation, or of the relations below a view, are finished."""
        return self._plan.parts_of(read, partition) <= self._parts.keys()

    def digest(self, read: str, partition: str) -> str:
        """Return the digest of an input: of the content of raw files and reference tables, of the bytes of parts."""
        where = partition if read.startswith("raw.") or self._plan.is_partitioned(read) else ALL
        known = self._digests.get((read, where))
        if known is None:
            known = self._digests[read, where] = self._new_digest(read, where)
        return known

    def _new_digest(self, read: str, partition: str) -> str:
        if read.startswith("raw."):
            return self._raw_files.digest(read, _or_none(partition))
        if read in self._project.references:
            reference = self._project.references[read]
            types = [(column.name, column.type) for column in reference.columns]
            return hashing.of([hashing.of_file(reference.path), types])
        node = self._nodes[read]
        if node.model.is_view:
            below = {other: self.digest(other, partition) for other in node.reads}
            columns = [(column.name, column.type) for column in node.model.columns]
            return hashing.of([node.canonical, columns, below, self.nonce if node.volatile else None])
        visible = self._plan.visible(read, partition)
        return hashing.of([[one, self._parts[Key(read, one)].digest] for one in visible])

    def sources(self, key: Key) -> dict[str, Source]:
        """Return the sources of all relations that a part's SELECT and checks read, in dependency order."""
        node = self._nodes[key.model]
        wanted = {*node.reads, *checked_relations(node)}
        sources: dict[str, Source] = {}
        if beside := self._joined_with_files(node):
            sources[FILES] = self._raw_files.source(FILES, _or_none(key.partition), self._engine, beside)
        for read in sorted(wanted - {key.model}):
            self._add_source(sources, read, key.partition)
        return sources

    def _joined_with_files(self, node: Node) -> frozenset[str]:
        """Return the raw relations that a model joins with `raw.files`.

        For such a model, `raw.files` lists only the files of these relations. So the table of a workbook does not
        depend on counter files. The result is empty, and all files are listed, if the model reads no other raw
        relation or also reads `raw.files` through a view. The model's checks read the same list.
        """
        if FILES not in node.reads or node.model.is_view:
            return frozenset()
        if any(self._shows_files(read) for read in node.reads if read in self._nodes):
            return frozenset()
        return frozenset(read for read in node.reads if read.startswith("raw.") and read != FILES)

    def _shows_files(self, read: str) -> bool:
        """Return True if a relation is `raw.files`, or a view that reads it."""
        node = self._nodes.get(read)
        is_view = node is not None and node.model.is_view
        return read == FILES or (is_view and node is not None and any(map(self._shows_files, node.reads)))

    def is_small(self, key: Key) -> bool:
        """Return True if a part reads at most `FEW_ROWS` rows and no raw file. Depends on the part's inputs alone."""
        waiting, rows = list(self._nodes[key.model].reads), 0
        while waiting:
            read = waiting.pop()
            node = self._nodes.get(read)
            if node is None and read not in self._project.references:
                return False
            if node is not None and node.model.is_view:
                waiting += node.reads
            elif node is not None:
                rows += sum(self._parts[Key(read, one)].rows for one in self._plan.visible(read, key.partition))
        return rows <= FEW_ROWS

    def _add_source(self, sources: dict[str, Source], read: str, partition: str) -> None:
        if read in sources:
            return
        node = self._nodes.get(read)
        if node is None:
            sources[read] = self.raw_source(read, partition)
        elif node.model.is_view:
            for below in node.reads:
                self._add_source(sources, below, partition)
            sources[read] = Select(node.sql, node.model.columns)
        else:
            visible = self._plan.visible(read, partition)
            paths = tuple(self._parts[Key(read, one)].path for one in visible)
            sources[read] = Parts(node.model.columns, paths)

    def raw_source(self, read: str, partition: str) -> Source:
        """Return the source of a raw relation or a reference table; an empty one for a model."""
        if read in self._project.references:
            return reference_source(self._project.references[read])
        if read.startswith("raw."):
            return self._raw_files.source(read, _or_none(partition), self._engine)
        return Parts((), ())


def _or_none(partition: str) -> str | None:
    return None if partition == ALL else partition


def reference_source(reference: Reference) -> CsvFiles:
    """Return the source of a reviewed table of `data/`."""
    columns = {column.name: column.type for column in reference.columns}
    return CsvFiles(columns, (reference.path,), quote='"', filename=False)
