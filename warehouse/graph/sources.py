"""Sources of parts: the files that a part's SELECT and checks read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.engine.base import CsvFiles, Engine, Parts, Select, Source
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Node, checked_relations
from warehouse.graph.plan import Key, Plan
from warehouse.graph.small_parts import SmallParts
from warehouse.ingest.partitions import HOUR
from warehouse.ingest.schemas import FILES
from warehouse.project.project import Project, Reference
from warehouse.store.changed_files import refuse_changed
from warehouse.store.layout import partition_value
from warehouse.store.part_records import Part

FEW_ROWS = 100_000
"""Maximum number of input rows of a part that is built in memory and kept there for downstream parts."""


class Sources:
    """Sources of all parts of a build.

    Parameters
    ----------
    parts
        The finished parts, which downstream parts read.
    small
        The tables to read instead of the small parts of many hours.
    """

    def __init__(
        self, project: Project, plan: Plan, engine: Engine, parts: Mapping[Key, Part], small: SmallParts
    ) -> None:
        self._references = project.references
        self._plan = plan
        self._graph = plan.graph
        self._engine = engine
        self._parts = parts
        self._small = small

    def of(self, key: Key, *, with_checks: bool = True) -> dict[str, Source]:
        """Return the sources of all relations that a part's SELECT reads, and its checks, in dependency order."""
        node = self._graph.nodes[key.model]
        sources: dict[str, Source] = {}
        if joined := self._graph.joined_with_files(node):
            sources[FILES] = self._plan.raw_files.source(FILES, partition_value(key.partition), self._engine, joined)
        checked = checked_relations(node) if with_checks else ()
        for read in sorted({*node.reads, *checked} - {key.model}):
            self._add(sources, read, key.partition)
        return sources

    def _add(self, sources: dict[str, Source], read: str, partition: str) -> None:
        """Add the source of a relation; before a view, the sources that it reads."""
        if read in sources:
            return
        node = self._graph.nodes.get(read)
        if node is None:
            sources[read] = self.raw(read, partition)
        elif node.model.is_view:
            for below in node.reads:
                self._add(sources, below, partition)
            sources[read] = Select(node.sql, node.model.columns)
        else:
            sources[read] = self._table(
                node, [self._parts[Key(read, one)] for one in self._plan.visible(read, partition)]
            )

    def _table(self, node: Node, parts: Sequence[Part]) -> Parts:
        """Return the source of a table."""
        columns = node.model.columns
        if node.model.partition == HOUR:
            self._small.hold(node.name, columns, parts)
        return Parts(columns, tuple(part.file for part in parts))

    def raw(self, read: str, partition: str) -> Source:
        """Return the source of a raw relation or a reference table; an empty one for a model."""
        if read in self._references:
            return reference_source(self._references[read])
        if is_raw(read):
            return self._plan.raw_files.source(read, partition_value(partition), self._engine)
        return Parts((), ())

    def are_few_rows(self, key: Key) -> bool:
        """Return True if a part reads at most `FEW_ROWS` rows and no raw file. Depends on the part's inputs alone."""
        reads = list(self._graph.below_views(self._graph.nodes[key.model].reads))
        if any(is_raw(read) for read in reads):
            return False
        rows = (
            self._parts[Key(read, one)].rows
            for read in reads
            if read in self._graph.nodes
            for one in self._plan.visible(read, key.partition)
        )
        return sum(rows) <= FEW_ROWS


def reference_source(reference: Reference) -> CsvFiles:
    """Return the source of a reviewed table of `data/`."""
    columns = {column.name: column.type for column in reference.columns}
    seen = {reference.path: reference.seen}
    return CsvFiles(columns, (reference.path,), quote='"', filename=False, seen=seen)


def refuse_changes(sources: Mapping[str, Source]) -> None:
    """Raise DataError if a file that these sources read has changed since it was hashed."""
    for source in sources.values():
        if isinstance(source, CsvFiles):
            refuse_changed(source.seen)
