"""Partitions that are as the last build left them: their parts are taken at once, without looking up each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from warehouse.base import hashing
from warehouse.formats.base import is_raw
from warehouse.graph.dag import Graph, Node, checked_relations
from warehouse.graph.plan import Key
from warehouse.ingest.schemas import REJECTED
from warehouse.project.check_language import all_checks
from warehouse.project.contract import Check
from warehouse.runner.build_state import BuildState
from warehouse.runner.reporter import Reporter
from warehouse.runner.retention import DETAIL_DROPPED
from warehouse.store.layout import ALL
from warehouse.store.part_records import CheckResult, Part
from warehouse.store.partition_records import (
    UNCHECKED,
    PartitionRecord,
    PartRecord,
    Records,
    Warned,
    read_records,
)


class Group(NamedTuple):
    """Models of one partition column that depend on the same kind of inputs."""

    name: str
    column: str
    models: tuple[str, ...]
    """Tables, which have a part for each partition, and views with checks, in build order."""
    outside: frozenset[str]
    """Relations without this partition column that the models read, directly or through each other."""


class UnchangedPartitions:
    """Records of the partitions of the last build, compared with the inputs of this one.

    The models of a partition column form two groups: those that depend on files of the partition and reference tables
    alone, and those that also read models without this partition, such as the topology. The second group can be
    compared as soon as these models are finished.

    Parameters
    ----------
    state
        The running build.
    """

    def __init__(self, state: BuildState) -> None:
        self._state = state
        options = state.prepared.options
        self._done: set[str] = set()
        self._taken: set[tuple[str, str]] = set()
        self._records: Records = {} if options.paranoid else read_records(state.prepared.store.target)

    def take_ready(self, reporter: Reporter) -> None:
        """Take the unchanged parts of each group whose `outside` is finished; of each group once."""
        state = self._state
        for group in [group for group in self._groups if group.name not in self._done]:
            is_fresh = self._is_alone(group) or not state.stale.parts
            if is_fresh and all(state.inputs.is_known(read, ALL) for read in group.outside if not is_raw(read)):
                self._done.add(group.name)
                self._take(group, reporter)

    def outside(self) -> list[Key]:
        """Return the parts to finish before the second group can be compared; none if it has no record."""
        plan = self._state.plan
        groups = (group for group in self._groups if not self._is_alone(group) and group.name in self._records)
        return sorted({key for group in groups for read in group.outside for key in plan.parts_of(read, ALL)})

    def records(self) -> Records | None:
        """Return the records of all partitions, once all parts and checks are finished; None if some are outdated."""
        if self._state.prepared.options.select or self._state.stale.parts:
            return None
        return {group.name: dict(self._new_records(group)) for group in self._groups}

    @cached_property
    def _groups(self) -> list[Group]:
        return list(_groups(self._state.graph))

    def _is_alone(self, group: Group) -> bool:
        return group.outside <= self._state.prepared.project.references.keys()

    def _take(self, group: Group, reporter: Reporter) -> None:
        records = self._records.get(group.name)
        if not records:
            return
        outcome, nodes, plan = self._state.outcome, self._state.graph.nodes, self._state.plan
        store = self._state.prepared.store
        inputs = self._inputs_of(group)
        passed = {model: _results(nodes[model], {}) for model in group.models}
        is_old = plan.is_old if plan.drops else lambda _: False
        for partition, models in self._models_of(group).items():
            record = records.get(partition)
            if record is None or record.warnings.keys() != set(models) or Key(models[0], partition) in outcome.checks:
                continue
            if record.inputs != self._hash(inputs, partition) or (_is_unchecked(record) and not plan.is_old(partition)):
                continue
            tables = record.parts if is_old(partition) else ()
            dropped = {model for model in tables if plan.is_dropped(model, partition)}
            parts: dict[Key, Part] = {}
            for model, one in record.parts.items():
                file = store.file(model, partition, one.fingerprint)
                if model not in dropped and not store.is_intact(file, one.stamp):
                    break
                part = Part(model, partition, one.fingerprint, one.digest, one.rows, one.bytes, file)
                parts[Key(model, partition)] = part
            else:
                outcome.parts.update(parts)
                outcome.published.update(parts)
                for model, one in record.parts.items():
                    if one.is_own_hour:
                        outcome.own_hour[model].add(partition)
                reporter.parts_taken(len(parts))
                self._taken.add((group.name, partition))
                self._state.without_file.update(Key(model, partition) for model in dropped)
                for model, warnings in record.warnings.items():
                    results = _results(nodes[model], warnings) if warnings else passed[model]
                    outcome.checks[Key(model, partition)] = results

    def _new_records(self, group: Group) -> Iterator[tuple[str, PartitionRecord]]:
        """Yield the record of each partition."""
        parts, checks, inputs = self._state.parts, self._state.outcome.checks, self._inputs_of(group)
        examined = {key.partition for key in self._state.outcome.examined}
        for partition, models in self._models_of(group).items():
            if (group.name, partition) in self._taken and partition not in examined:
                yield partition, self._records[group.name][partition]
                continue
            keys = [Key(model, partition) for model in models]
            yield (
                partition,
                PartitionRecord(
                    self._hash(inputs, partition),
                    {key.model: self._record(key) for key in keys if key in parts},
                    {key.model: _warnings(checks[key]) for key in keys},
                ),
            )

    def _record(self, key: Key) -> PartRecord:
        part, store = self._state.parts[key], self._state.prepared.store
        is_missing = key in self._state.without_file
        seen = [] if is_missing else store.signature(part.file)
        is_own_hour = key.partition in self._state.outcome.own_hour[key.model]
        return PartRecord(part.fingerprint, part.digest, part.rows, part.bytes, seen, is_own_hour)

    def _models_of(self, group: Group) -> dict[str, list[str]]:
        """Return the models of each partition, in build order."""
        found: dict[str, list[str]] = {}
        for model in group.models:
            for partition in self._state.plan.partitions(model):
                found.setdefault(partition, []).append(model)
        return found

    def _inputs_of(self, group: Group) -> str:
        """Return the hash of all inputs of a group except the raw files of a partition: models, checks, `outside`."""
        state = self._state
        nodes = [node for node in state.graph.nodes.values() if node.model.partition == group.column]
        models = [
            [node.name, state.inputs.of_model(node), [(check.text, check.warn) for check in _checks(node)]]
            for node in nodes
        ]
        nonce = state.inputs.nonce if any(node.is_volatile for node in nodes) else None
        formats = {name: one.version for name, one in state.prepared.raw_files.formats.items()}
        outside = {read: state.inputs.digest(read, ALL) for read in sorted(group.outside)}
        return hashing.of([models, nonce, formats, outside])

    def _hash(self, inputs: str, partition: str) -> str:
        return hashing.of([inputs, self._state.prepared.raw_files.partition_digest(partition)])


def _groups(graph: Graph) -> Iterator[Group]:
    """Yield the groups of models of each partition column."""
    columns = {node.model.partition for node in graph.nodes.values()}
    for column in sorted(filter(None, columns)):
        outside: dict[str, frozenset[str]] = {}
        for name in graph.order:
            node = graph.nodes[name]
            if node.model.partition == column:
                outside[name] = frozenset().union(*_outside(graph, node, outside))
        kept = [name for name in outside if (model := graph.nodes[name].model).checks or not model.is_view]
        for is_joined in (False, True):
            models = [name for name in kept if any(read in graph.nodes for read in outside[name]) == is_joined]
            if models:
                name = f"{column} joined" if is_joined else column
                yield Group(name, column, tuple(models), frozenset().union(*(outside[one] for one in models)))


def _outside(graph: Graph, node: Node, outside: Mapping[str, frozenset[str]]) -> Iterator[frozenset[str]]:
    """Yield, for each relation that a model or its checks read, the relations without the model's partition column."""
    for read in {*node.reads, *checked_relations(node)} - {node.name}:
        if read in outside:
            yield outside[read]
        elif not is_raw(read) or read == REJECTED:
            yield frozenset([read])


def _is_unchecked(record: PartitionRecord) -> bool:
    """Return True if a check of a view could not run, because detail had been dropped."""
    return any(failures == UNCHECKED for found in record.warnings.values() for failures, _ in found.values())


def _results(node: Node, warnings: Mapping[int, Warned]) -> list[CheckResult]:
    """Return the results of all checks of a model: passed, except for the warnings."""
    return [
        CheckResult(check.text, check.warn, failures, rows=rows, says=check.says)
        if failures != UNCHECKED
        else CheckResult(check.text, check.warn, 0, not_checked=DETAIL_DROPPED)
        for at, check in enumerate(_checks(node))
        for failures, rows in [warnings.get(at, (0, ()))]
    ]


def _warnings(results: Sequence[CheckResult]) -> dict[int, Warned]:
    """Return the checks that warned or could not run; the inverse of `_results`."""
    return {
        at: (UNCHECKED if one.not_checked else one.failures, list(one.rows))
        for at, one in enumerate(results)
        if one.failures or one.not_checked
    }


def _checks(node: Node) -> list[Check]:
    """Return the checks of a table or view."""
    return list(node.model.checks) if node.model.is_view else all_checks(node.model)
