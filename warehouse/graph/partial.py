"""What can be made of some hours alone, without the raw files of the others."""

from __future__ import annotations

from collections.abc import Iterator

from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node
from warehouse.ingest.partitions import HOUR
from warehouse.ingest.schemas import FILES, REJECTED
from warehouse.project.check_language import relations_of

_KNOWN_COLUMNS = (HOUR, "file_group")
"""Columns of which a partition has all its files in folders of its own hour, or outside such folders."""


class PartialGraph:
    """Relations of a DAG that are whole even if the raw files of other hours are left out.

    Parameters
    ----------
    graph
        The DAG.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._partitioned = [node for node in graph.nodes.values() if node.model.partition]
        self._by_hour = {read for node in self._partitioned if node.model.partition == HOUR for read in node.reads}
        self._whole: set[str] = set()
        for name in graph.order:
            node = graph.nodes[name]
            if not node.model.partition and all(self._sees(node, read) for read in node.reads):
                self._whole.add(name)

    @property
    def is_possible(self) -> bool:
        """True if the parts of an hour need no file of another hour."""
        return all(
            node.model.partition in _KNOWN_COLUMNS and all(self._sees(node, read) for read in node.reads)
            for node in self._partitioned
        )

    def graph(self) -> Graph:
        """Return the DAG without the checks that read more than the files of one hour."""
        return Graph({node.name: self._without_checks(node) for node in self._nodes()}, self._graph.source_columns)

    def _nodes(self) -> Iterator[Node]:
        return (self._graph.nodes[name] for name in self._graph.order)

    def _without_checks(self, node: Node) -> Node:
        checks = tuple(
            check
            for check in node.model.checks
            if all(read == node.name or self._sees(node, read) for read in relations_of(check))
        )
        return node._replace(model=node.model._replace(checks=checks))

    def _sees(self, node: Node, read: str) -> bool:
        """Return True if the rows of a relation that a model reads are all there."""
        other = self._graph.nodes.get(read)
        if other is not None and other.model.partition:
            return other.model.partition == node.model.partition or (
                node.model.partition is not None and other.model.partition != HOUR
            )
        if not is_raw(read):
            return other is None or read in self._whole
        if read == REJECTED:
            return False
        if node.model.partition == HOUR or (node.model.partition and read == FILES):
            return True
        return bool(self._graph.joined_with_files(node)) if read == FILES else read not in self._by_hour
