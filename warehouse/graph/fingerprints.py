"""What a part stands on: what it is made of, which names it, and the sources that its SELECT and checks see."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from warehouse.base import hashing
from warehouse.engine.base import CsvFiles, Engine, Parts, Select, Source
from warehouse.graph.dag import Node
from warehouse.graph.parts import Key, Plan
from warehouse.ingest.schemas import FILES
from warehouse.kernels import SELECTS, VERSIONS
from warehouse.project.check_language import relations_of
from warehouse.project.project import Project, Reference
from warehouse.store.part_records import ALL, Part

RECIPE = 4
"""Raised when the same SELECT would be written as other bytes: it is part of every fingerprint."""

FEW_ROWS = 100_000
"""A part of so few rows to read is made in memory first; its rows are then there for those who read it."""


class Inputs:
    """The inputs of all parts of a build.

    Parameters
    ----------
    parts
        The parts that are known so far; a part can be named when all that it reads is among them.
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
        self.once = uuid.uuid4().hex
        """What never was before: volatile SELECTs and checks are made of it."""

    def made_of(self, key: Key) -> dict[str, object]:
        """What a part is made of, whose hash is its name: SELECT without formatting, types, engine, inputs.

        An input that is not known yet is None.
        """
        node = self._nodes[key.model]
        reads = {
            read: self.digest(read, key.partition) if self.is_known(read, key.partition) else None
            for read in node.reads
        }
        if beside := self._read_beside_files(node):
            reads[FILES] = self._raw_files.digest(FILES, _or_none(key.partition), beside)
        said: dict[str, object] = {
            "recipe": RECIPE,
            "engine": [self._engine.name, self._engine.version],
            "select": node.mark,
            "columns": [[column.name, column.type] for column in node.model.columns],
            "grain": list(node.model.grain),
            "kernel": self._kernel_mark(node),
            "presorted": node.model.presorted,
            "inputs": reads,
        }
        return said | ({"once": self.once} if node.volatile else {})

    def stands_for(self, made: Mapping[str, Any], wanted: Mapping[str, object]) -> bool:
        """Return True if the engine of an earlier release made a part of the same inputs: its rows are equal."""
        own = {"engine", "kernel", "sql"}
        mine, other = ({name: one for name, one in said.items() if name not in own} for said in (wanted, made))
        return mine == other and str(made["engine"][0]) != self._engine.name

    def kernel_of(self, node: Node) -> str | None:
        """The kernel that makes a model's rows, while its SELECT is the one that the kernel stands for."""
        name = node.model.kernel
        if not name or not self._kernels:
            return None
        return name if self._plan.graph.definition(node.name) == SELECTS[name] else None

    def _kernel_mark(self, node: Node) -> list[object] | None:
        """A kernel gives the same rows as its SELECT, but not the same Parquet bytes."""
        name = self.kernel_of(node)
        return [name, VERSIONS[name]] if name else None

    def is_known(self, read: str, partition: str) -> bool:
        """Whether all parts that show through a relation are there."""
        return self._plan.parts_of(read, partition) <= self._parts.keys()

    def digest(self, read: str, partition: str) -> str:
        """What an input counts as: content of raw files and reference tables, bytes of models' parts."""
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
        if node.model.materialize == "view":
            below = {other: self.digest(other, partition) for other in node.reads}
            columns = [(column.name, column.type) for column in node.model.columns]
            return hashing.of([node.canonical, columns, below, self.once if node.volatile else None])
        visible = self._plan.visible(read, partition)
        return hashing.of([[one, self._parts[Key(read, one)].digest] for one in visible])

    def sources(self, key: Key) -> dict[str, Source]:
        """The relations that a part's SELECT and checks can see, in an order in which views can be made."""
        node = self._nodes[key.model]
        wanted = {*node.reads, *(read for check in node.model.checks for read in relations_of(check))}
        sources: dict[str, Source] = {}
        if beside := self._read_beside_files(node):
            sources[FILES] = self._raw_files.source(FILES, _or_none(key.partition), self._engine, beside)
        for read in sorted(wanted - {key.model}):
            self._add_source(sources, read, key.partition)
        return sources

    def _read_beside_files(self, node: Node) -> frozenset[str]:
        """The relations of raw files that a table joins with `raw.files`, which then lists their files alone.

        So a workbook's table depends on no counter file. Empty where `raw.files` lists all: for a model that reads
        nothing else of `raw`, and where a view below reads it, too. A check sees what its model sees.
        """
        if FILES not in node.reads or node.model.materialize == "view":
            return frozenset()
        if any(self._shows_files(read) for read in node.reads if read in self._nodes):
            return frozenset()
        return frozenset(read for read in node.reads if read.startswith("raw.") and read != FILES)

    def _shows_files(self, read: str) -> bool:
        """Return True if a relation is `raw.files`, or a view that reads it."""
        node = self._nodes.get(read)
        is_view = node is not None and node.model.materialize == "view"
        return read == FILES or (is_view and node is not None and any(map(self._shows_files, node.reads)))

    def few(self, key: Key) -> bool:
        """Whether a part reads few rows, and no raw file: that follows from its inputs, as its bytes have to."""
        waiting, rows = list(self._nodes[key.model].reads), 0
        while waiting:
            read = waiting.pop()
            node = self._nodes.get(read)
            if node is None and read not in self._project.references:
                return False
            if node is not None and node.model.materialize == "view":
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
        elif node.model.materialize == "view":
            for below in node.reads:
                self._add_source(sources, below, partition)
            sources[read] = Select(node.sql, node.model.columns)
        else:
            visible = self._plan.visible(read, partition)
            paths = tuple(self._parts[Key(read, one)].path for one in visible)
            sources[read] = Parts(node.model.columns, paths)

    def raw_source(self, read: str, partition: str) -> Source:
        """Where a relation of `raw` or a reference table is read; nothing for a model."""
        if read in self._project.references:
            return reference_source(self._project.references[read])
        if read.startswith("raw."):
            return self._raw_files.source(read, _or_none(partition), self._engine)
        return Parts((), ())


def _or_none(partition: str) -> str | None:
    return None if partition == ALL else partition


def reference_source(reference: Reference) -> CsvFiles:
    """A reviewed table of data/, as an engine reads it."""
    columns = {column.name: column.type for column in reference.columns}
    return CsvFiles(columns, (reference.path,), quote='"', filename=False)
