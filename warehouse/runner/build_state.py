"""State of a running build: the plan, the finished parts, the stale parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from warehouse.base import hashing
from warehouse.formats.base import is_raw
from warehouse.graph.fingerprints import Inputs
from warehouse.graph.plan import Key, Plan
from warehouse.graph.sources import Sources
from warehouse.graph.stale import Stale
from warehouse.runner.preparation import Prepared
from warehouse.runner.result import Outcome
from warehouse.store.layout import ALL
from warehouse.store.part_records import Part


class BuildState:
    """State of a running build.

    Parameters
    ----------
    prepared
        The inputs of the build.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.graph = prepared.graph
        self.outcome = Outcome()
        self.without_file: set[Key] = set()
        """Finished parts that are known by their record alone: dropped detail. It is made again where it is read."""
        self._wanted = prepared.wanted()
        self._last = prepared.last_parts()
        self._plan_parts()

    def _plan_parts(self) -> None:
        prepared, kernels = self.prepared, self.prepared.options.kernels
        self.plan = Plan(prepared.graph, prepared.raw_files, prepared.keep_hours)
        self.stale = Stale(self.plan)
        self.inputs = Inputs(prepared.project, self.plan, prepared.engine, self.parts, kernels=kernels)
        self.sources = Sources(prepared.project, self.plan, prepared.engine, self.parts, prepared.small)

    @property
    def parts(self) -> dict[Key, Part]:
        """Finished parts."""
        return self.outcome.parts

    def unchecked(self) -> list[Key]:
        """Return the finished parts without results of their checks, in build order."""
        left = self.parts.keys() - self.outcome.checks.keys()
        return [key for key in self.plan.keys if key in left] if left else []

    def read_tables(self, wanted: Collection[str] | None = None) -> None:
        """Read the raw files that need Python, all or of some partitions. Must run first: fingerprints need them."""
        read = {name for node in self.graph.nodes.values() for name in node.reads}
        self.prepared.raw_files.read_tables((name for name in read if is_raw(name)), self.prepared.engine, wanted)

    def find_or_keep(self, key: Key, fingerprint: str | None, inputs: Mapping[str, object]) -> tuple[Part | None, bool]:
        """Return (existing part or None, True if a part of the last build is kept because its model is not selected).

        A part that Spark, the second engine of earlier releases, made from the same inputs is reused (ADR 9). Also
        records in `stale` whether the part is stale.
        """
        store = self.prepared.store
        part = store.find(key.model, key.partition, fingerprint) if fingerprint else None
        if part is None and fingerprint:
            part = store.find_equivalent(key.model, key.partition, lambda made: self.inputs.is_equivalent(made, inputs))
        if part is None and key.model not in self._wanted:
            part = self._last.get((key.model, key.partition))
            if part is not None:
                self.stale.note(key, is_kept=True)
                return part, True
        self.stale.note(key, is_kept=False)
        return part, False

    def is_kept(self, key: Key) -> bool:
        """Return True if the part of the last build is kept, whatever changed, because its model is not selected."""
        return key.model not in self._wanted and (key.model, key.partition) in self._last

    def after_repair(self, partition: str) -> None:
        """Drop the finished parts that depend on repaired raw files of a partition; keep all others."""
        kept, checks, stale = dict(self.parts), self.outcome.checks, self.stale.parts
        self.parts.clear()
        self._plan_parts()
        for key in self.plan.keys:  # upstream first
            if key not in kept or not self.plan.upstream_parts(key) <= self.parts.keys():
                continue
            may_depend = ALL in (key.partition, partition) or key.partition == partition
            if not may_depend or hashing.of(self.inputs.of(key)) == kept[key].fingerprint:
                self.parts[key] = kept[key]
        self.outcome.checks = {key: found for key, found in checks.items() if key in self.parts}
        self.outcome.made &= self.parts.keys()
        self.stale.parts |= stale & self.parts.keys()
