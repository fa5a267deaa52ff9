"""Parts of a build and their upstream parts.

A model with `partition`, a column of `raw.files`, has one part for each value. Other models have one part, `all`.
A view has no part: models downstream of it read the view's inputs. A model has no part either if it must be empty
because raw files that it needs are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, checked_relations
from warehouse.ingest.inventory import RawFiles
from warehouse.ingest.partitions import HOUR, column_of
from warehouse.ingest.schemas import FILES
from warehouse.project.check_language import REFERENCES, relations_of
from warehouse.project.contract import Check
from warehouse.store.layout import ALL


class Key(NamedTuple):
    """Key of a part: a model and one of its partitions (`all` if it is not partitioned)."""

    model: str
    partition: str


@dataclass(frozen=True)
class Plan:
    """All parts of a build, in dependency order."""

    graph: Graph
    raw_files: RawFiles
    keep_hours: str | None = None
    """Number of newest hours whose detail is kept, or the first one's day or hour."""

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Keys of all parts, in dependency order."""
        return tuple(
            Key(name, partition)
            for name in self.graph.order
            if self.graph.nodes[name].model.materialize == "table"
            for partition in self.partitions(name)
        )

    def partitions(self, name: str) -> list[str]:
        """Return the sorted partitions of a model or view; `[all]` if not partitioned, `[]` if it must be empty."""
        if name in self._without_files:
            return []
        return self._sorted_values[name] if self.is_partitioned(name) else [ALL]

    def is_dropped(self, name: str, partition: str) -> bool:
        """Return True if this part is detail of an hour that is older than those to keep."""
        return self.is_old(partition) and name in self.graph.nodes and self.graph.nodes[name].model.detail

    def is_old(self, partition: str) -> bool:
        """Return True if a partition is an hour older than those whose detail is kept."""
        return partition < self._first_kept

    @cached_property
    def drops(self) -> bool:
        """True if detail of some hours is dropped."""
        return bool(self._first_kept)

    @cached_property
    def _first_kept(self) -> str:
        """Name of the first hour whose detail is kept; empty to keep all."""
        if self.keep_hours is None or not self.keep_hours.isdigit():
            return self.keep_hours or ""
        hours = sorted(self.raw_files.partitions(FILES, HOUR))
        return hours[-int(self.keep_hours) :][0] if hours else ""

    def is_partitioned(self, name: str) -> bool:
        """Return True if the contract of a model or view declares a partition column."""
        return self._column(name) is not None

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
    def _values(self) -> Mapping[str, set[str]]:
        """Partitions of each model: those of its partitioned inputs."""
        found: dict[str, set[str]] = {}
        for name in self.graph.order:
            column = self.graph.nodes[name].model.partition
            values: dict[str, set[str]] = {}
            for read in self.graph.nodes[name].reads if column else ():
                if is_raw(read):
                    values[read] = self.raw_files.partitions(read, column)
                elif self._column(read) == column:
                    values[read] = found[read]
            listed = values.pop(FILES, set())  # it lists all files, so it counts only if no other input is partitioned
            first, *others = values.values() or [listed]  # most models read the same partitions: one set for all
            found[name] = first.union(*others) if any(one is not first for one in others) else first
        return found

    @cached_property
    def _sorted_values(self) -> Mapping[str, list[str]]:
        ordered = {id(values): sorted(values) for values in {id(one): one for one in self._values.values()}.values()}
        return {name: ordered[id(values)] for name, values in self._values.items()}

    def _column(self, name: str) -> str | None:
        node = self.graph.nodes.get(name)
        return node.model.partition if node else None

    def upstream_parts(self, key: Key, *, with_checks: bool = True) -> set[Key]:
        """Return the parts that must be finished before this part can be written, and checked."""
        node = self.graph.nodes[key.model]
        reads = {*node.reads, *(checked_relations(node) if with_checks else ())} - {key.model}
        return {need for read in reads for need in self.parts_of(read, key.partition)}

    def parts_of(self, read: str, partition: str) -> set[Key]:
        """Return the parts of a relation that a part of this partition reads; of a view, the parts that it reads."""
        tables = (below for below in self.graph.below_views([read]) if below in self.graph.nodes)
        return set().union(*(self._parts_of_table(table, partition) for table in tables))

    def _parts_of_table(self, table: str, partition: str) -> frozenset[Key]:
        """Return the parts of a table that a part of this partition reads; of all partitions, computed once."""
        if partition != ALL:
            return frozenset(Key(table, one) for one in self.visible(table, partition))
        if table not in self._all_parts:
            self._all_parts[table] = frozenset(Key(table, one) for one in self.visible(table, ALL))
        return self._all_parts[table]

    @cached_property
    def _all_parts(self) -> dict[str, frozenset[Key]]:
        return {}

    def visible(self, read: str, partition: str) -> list[str]:
        """Return the partitions of `read` that a part of this partition reads.

        If `read` is partitioned by the same column, this is the same partition, otherwise all that are kept.
        """
        if partition == ALL or self._column(read) != column_of(partition):
            partitions = self.partitions(read)
            return [one for one in partitions if not self.is_dropped(read, one)] if self.drops else partitions
        return [partition] if read not in self._without_files and partition in self._values[read] else []


def _passes_when_empty(check: Check, node: Node, empty: set[str]) -> bool:
    """Return True if no row can fail a check while its model and these relations are empty."""
    if REFERENCES.match(check.text):
        return True  # an empty model has no row that can fail
    if check.text in node.checks_need:
        return any(group <= empty for group in node.checks_need[check.text])
    return set(relations_of(check)) <= empty and not check.text.lower().startswith("rows")
