"""Which parts a build has, and what each one stands on.

A model with `partition`, a column of `raw.files`, has a part a value; the others have one part, `all`. A view
has no part: whoever reads it reads what it reads. Nor has a model that must be empty, since no raw file is there
of what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from warehouse.graph.dag import Graph, Node
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.partitions import column_of
from warehouse.ingest.schemas import FILES
from warehouse.project.check_language import relations_of
from warehouse.project.contract import Check
from warehouse.store.part_records import ALL


class Key(NamedTuple):
    """A part that a build needs: a model and a partition of it (`all` where it has none)."""

    model: str
    partition: str


@dataclass(frozen=True)
class Plan:
    """All parts of a build, and in which order they can be made."""

    graph: Graph
    raw_files: RawFiles

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Every part, in an order in which they can be made one after another."""
        return tuple(
            Key(name, partition)
            for name in self.graph.order
            for partition in self.partitions(name)
            if self.graph.nodes[name].model.materialize == "table"
        )

    def partitions(self, name: str) -> list[str]:
        """The partitions of a model or view, sorted; `[all]` for one that is not partitioned, `[]` for an empty one."""
        if name in self._empty:
            return []
        if not self.is_partitioned(name):
            return [ALL]
        return sorted(self._values[name])

    def is_partitioned(self, name: str) -> bool:
        """Whether a model comes in partitions (a view does when its contract says so)."""
        return self._column(name) is not None

    @cached_property
    def _empty(self) -> frozenset[str]:
        """The relations that no raw file is there for, and the models that can have no rows without them.

        A check that looks elsewhere, or at the number of rows, is for the build to run: such a model is made.
        """
        empty = {
            name for name in self.graph.source_columns if name.startswith("raw.") and not self.raw_files.feeds(name)
        }
        for name in self.graph.order:
            node = self.graph.nodes[name]
            if any(group <= empty for group in node.needs) and all(
                check.warn or _holds_of_nothing(check, node, empty | {name}) for check in node.model.checks
            ):
                empty.add(name)
        return frozenset(empty)

    @cached_property
    def _values(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name in self.graph.order:
            column = self.graph.nodes[name].model.partition
            values: dict[str, set[str]] = {}
            for read in self.graph.nodes[name].reads if column else ():
                if read.startswith("raw."):
                    values[read] = self.raw_files.partitions(read, column)
                elif self._column(read) == column:
                    values[read] = found[read]
            listed = values.pop(FILES, set())  # lists the files of all relations: it splits what nothing else does
            found[name] = set().union(*values.values()) if values else listed
        return found

    def _column(self, name: str) -> str | None:
        node = self.graph.nodes.get(name)
        return node.model.partition if node else None

    def needs(self, key: Key) -> set[Key]:
        """The parts that must be there before this one is made, or before its checks can run."""
        node = self.graph.nodes[key.model]
        reads = {*node.reads, *self._checked(node)} - {key.model}
        return {need for read in reads for need in self.parts_of(read, key.partition)}

    def _checked(self, node: Node) -> set[str]:
        return {read for check in node.model.checks for read in relations_of(check)}

    def parts_of(self, read: str, partition: str) -> set[Key]:
        """The parts that show through a relation to a part of this partition, a view's own inputs included."""
        node = self.graph.nodes.get(read)
        if node is None:
            return set()
        if node.model.materialize == "view":
            return {key for below in node.reads for key in self.parts_of(below, partition)}
        return {Key(read, one) for one in self.visible(read, partition)}

    def visible(self, read: str, partition: str) -> list[str]:
        """The partitions of `read` that a part of this partition sees: its own, or all of another column."""
        there = self.partitions(read)
        if partition == ALL or self._column(read) != column_of(partition):
            return there
        return [partition] if partition in there else []


def _holds_of_nothing(check: Check, node: Node, empty: set[str]) -> bool:
    """Whether no row can fail a check while its model and these relations are empty."""
    if check.text.lower().startswith("references("):
        return True  # only a row of the model can fail it
    if check.text in node.checks_need:
        return any(group <= empty for group in node.checks_need[check.text])
    return set(relations_of(check)) <= empty and not check.text.lower().startswith("rows")
