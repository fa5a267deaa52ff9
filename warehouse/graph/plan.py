"""Parts of a build and their upstream parts.

A model with `partition`, columns of `raw.files`, has one part for each of their values. Other models have one part,
`all`. A view has no part: models downstream of it read the view's inputs. A model has no part either if it must be
empty because raw files that it needs are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, checked_relations
from warehouse.ingest.raw_files import RawFiles
from warehouse.ingest.schemas import FILES
from warehouse.project.check_language import REFERENCED, REFERENCES, relations_of
from warehouse.project.contract import Check
from warehouse.store.layout import ALL
from warehouse.store.partitions import HOUR, columns_of, hour_of, narrowed, pieces


class Key(NamedTuple):
    """Key of a part: a model and one of its partitions (`all` if it is not partitioned)."""

    model: str
    partition: str


class Plan:
    """All parts of a build, in dependency order.

    Parameters
    ----------
    keep_hours
        Number of newest hours whose detail is kept, or the first one's day or hour; None to keep all.
    """

    def __init__(self, graph: Graph, raw_files: RawFiles, keep_hours: str | None = None) -> None:
        self.graph = graph
        self.raw_files = raw_files
        hours = sorted(raw_files.partitions(FILES, (HOUR,))) if keep_hours else []
        first = keep_hours or ""
        if first.isdigit():
            first = hours[-int(first) :][0] if hours else ""
        self._first_kept = first
        self._visible: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], list[str]]] = {}

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Keys of all parts, in dependency order."""
        tables = (name for name in self.graph.order if not self.graph.nodes[name].model.is_view)
        return tuple(Key(name, partition) for name in tables for partition in self.partitions(name))

    def partitions(self, name: str) -> Sequence[str]:
        """Return the sorted partitions of a model or view; `[all]` if not partitioned, `[]` if it must be empty."""
        if name in self._without_files:
            return []
        return self._values[name] if self.columns(name) else [ALL]

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the partition columns of a model or view; none of other relations."""
        node = self.graph.nodes.get(name)
        return node.model.partition if node else ()

    def is_dropped(self, name: str, partition: str) -> bool:
        """Return True if this part is detail of an hour that is older than those to keep."""
        hour = hour_of(partition)
        return (
            bool(hour) and hour < self._first_kept and name in self.graph.nodes and self.graph.nodes[name].model.detail
        )

    @property
    def drops(self) -> bool:
        """True if detail of some hours is dropped."""
        return bool(self._first_kept)

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
        """Sorted partitions of each model: those of its inputs with the same partition columns."""
        found: dict[str, list[str]] = {}
        for name in self.graph.order:
            columns = self.columns(name)
            values: dict[str, set[str]] = {}
            for read in self.graph.nodes[name].reads if columns else ():
                if is_raw(read):
                    values[read] = self.raw_files.partitions(read, columns)
                elif set(columns) <= set(self.columns(read)):
                    values[read] = {narrowed(one, columns) for one in found[read]}
            listed = values.pop(FILES, set())  # it lists all files, so it counts only if no other input is partitioned
            found[name] = sorted(set().union(*values.values()) if values else listed)
        return found

    def upstream_parts(self, key: Key, *, with_checks: bool = True) -> set[Key]:
        """Return the parts that must be finished before this part can be made, and checked."""
        node = self.graph.nodes[key.model]
        reads = {*node.reads, *(checked_relations(node) if with_checks else ())} - {key.model}
        return {need for read in reads for need in self.parts_of(read, key.partition)}

    def parts_of(self, read: str, partition: str) -> set[Key]:
        """Return the parts of a relation that a part of this partition reads; of a view, the parts that it reads."""
        tables = (below for below in self.graph.below_views([read]) if below in self.graph.nodes)
        return {Key(table, one) for table in tables for one in self.visible(table, partition)}

    def visible(self, read: str, partition: str) -> list[str]:
        """Return the partitions of `read` that a part of this partition reads.

        These are the ones with the same values of the columns that both have, without dropped detail where a part
        reads several hours.
        """
        columns = self.columns(read)
        shared = tuple(column for column in columns_of(partition) if column in columns)
        if (read, shared) not in self._visible:
            groups: dict[tuple[str, ...], list[str]] = {}
            for one in self.partitions(read):
                if HOUR in shared or not self.is_dropped(read, one):
                    groups.setdefault(tuple(pieces(one)[column] for column in shared), []).append(one)
            self._visible[read, shared] = groups
        return self._visible[read, shared].get(tuple(pieces(partition)[column] for column in shared), [])

    def reads_dropped(self, key: Key, check: str) -> bool:
        """Return True if a check of a part compares with dropped detail, or is of a view of it.

        A check `referenced` of a table over all hours can run: it looks for rows that are there.
        """
        if not self.drops or (key.partition == ALL and REFERENCED.match(check)):
            return False
        model = self.graph.nodes[key.model].model
        reads = {*relations_of(check), *([key.model] if model.is_view else ())}
        tables = [table for table in self.graph.below_views(sorted(reads)) if table in self.graph.nodes]
        return any(
            self.is_dropped(table, one)
            for table in tables
            for one in (self.partitions(table)[:1] if key.partition == ALL else [key.partition])
        )


def _passes_when_empty(check: Check, node: Node, empty: set[str]) -> bool:
    """Return True if no row can fail a check while its model and these relations are empty."""
    if REFERENCES.match(check.text):
        return True  # an empty model has no row that can fail
    if check.text in node.checks_need:
        return any(group <= empty for group in node.checks_need[check.text])
    return set(relations_of(check.text)) <= empty and not check.text.lower().startswith("rows")
