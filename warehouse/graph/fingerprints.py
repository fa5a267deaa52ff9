"""Inputs of parts, and their hashes, the fingerprints that name parts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from warehouse.base import hashing
from warehouse.engine.base import Engine
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Node
from warehouse.graph.plan import Key, Plan
from warehouse.ingest.schemas import FILES
from warehouse.kernels import SELECTS, VERSIONS
from warehouse.project.project import Project
from warehouse.store.layout import ALL, partition_value
from warehouse.store.part_records import Part

RECIPE = 4
"""Version of the Parquet layout, part of every fingerprint. Increase it if a SELECT is written as different bytes."""


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

    def of(self, key: Key) -> dict[str, object]:
        """Return the inputs of a part. Their hash is its fingerprint.

        Units, texts and checks do not count. The digest of an unfinished input is None.
        """
        node = self._nodes[key.model]
        reads = {read: self._digest_if_known(read, key.partition) for read in node.reads}
        if joined := self._plan.graph.joined_with_files(node):
            reads[FILES] = self._raw_files.digest(FILES, partition_value(key.partition), joined)
        return {**self.of_model(node), "inputs": reads}

    def of_model(self, node: Node) -> dict[str, object]:
        """Return the inputs that all parts of a model have in common: its SELECT and how its rows are written."""
        inputs: dict[str, object] = {
            "recipe": RECIPE,
            "engine": [self._engine.name, self._engine.version],
            "select": node.canonical_hash,
            "columns": [[column.name, column.type] for column in node.model.columns],
            "grain": list(node.model.grain),
            "kernel": self._kernel_version(node),
            "presorted": node.model.presorted,
        }
        return inputs | ({"once": self.nonce} if node.volatile else {})

    def is_equivalent(self, made: Mapping[str, Any], wanted: Mapping[str, object]) -> bool:
        """Return True if Spark, the second engine of earlier releases, made a part from the same inputs (ADR 9)."""
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
        return name if self._plan.graph.select_hash(node.name) == SELECTS[name] else None

    def _kernel_version(self, node: Node) -> list[object] | None:
        """Return name and version of a model's kernel: it gives the rows of the SELECT, but other Parquet bytes."""
        name = self.kernel_of(node)
        return [name, VERSIONS[name]] if name else None

    def is_known(self, read: str, partition: str) -> bool:
        """Return True if all parts of a relation, or of the relations below a view, are finished."""
        return self._plan.parts_of(read, partition) <= self._parts.keys()

    def digest(self, read: str, partition: str) -> str:
        """Return the digest of an input: of the content of raw files and reference tables, of the bytes of parts."""
        where = self._where(read, partition)
        known = self._digests.get((read, where))
        if known is None:
            known = self._digests[read, where] = self._new_digest(read, where)
        return known

    def _digest_if_known(self, read: str, partition: str) -> str | None:
        """Return the digest of an input; None if it has an unfinished part."""
        if (read, self._where(read, partition)) in self._digests or self.is_known(read, partition):
            return self.digest(read, partition)
        return None

    def _where(self, read: str, partition: str) -> str:
        """Return the partition of an input that a part reads."""
        return partition if is_raw(read) or self._plan.is_partitioned(read) else ALL

    def _new_digest(self, read: str, partition: str) -> str:
        if is_raw(read):
            return self._raw_files.digest(read, partition_value(partition))
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
