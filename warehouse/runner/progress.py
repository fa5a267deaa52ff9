"""What is known while parts are made: the plan, the parts so far, what is stale."""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.base import hashing
from warehouse.graph.fingerprints import Inputs
from warehouse.graph.parts import Key, Plan
from warehouse.graph.stale import Stale
from warehouse.runner.preparation import Prepared
from warehouse.runner.result import Outcome
from warehouse.store.part_records import ALL, Part


class Progress:
    """The parts of a build so far.

    Parameters
    ----------
    prepared
        What the parts follow from.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.graph = prepared.graph
        self.outcome = Outcome()
        self._wanted = prepared.wanted()
        self._last = prepared.last_parts()
        self._plan_parts()

    def _plan_parts(self) -> None:
        one = self.prepared
        self.plan = Plan(one.graph, one.raw_files)
        self.stale = Stale(self.plan)
        self.inputs = Inputs(one.project, self.plan, one.engine, self.outcome.parts, kernels=one.options.kernels)

    @property
    def parts(self) -> dict[Key, Part]:
        """The parts that are known so far."""
        return self.outcome.parts

    def read_tables(self) -> None:
        """Have Python read the raw files that it has to, which any fingerprint may depend on."""
        read = {name for node in self.graph.nodes.values() for name in node.reads}
        self.prepared.raw_files.read_tables((name for name in read if name.startswith("raw.")), self.prepared.engine)

    def find(self, key: Key, fingerprint: str | None, made_of: Mapping[str, object]) -> tuple[Part | None, bool]:
        """Return the part that is there already, and whether it is the last one of a model that is not wanted now.

        A part that the engine of an earlier release made of the same inputs is taken: its rows are equal.
        """
        store = self.prepared.store
        part = store.find(key.model, key.partition, fingerprint) if fingerprint else None
        if part is None and fingerprint:
            part = store.find_made(key.model, key.partition, lambda made: self.inputs.stands_for(made, made_of))
        if part is None and key.model not in self._wanted:
            part = self._last.get((key.model, key.partition))
            if part is not None:
                self.stale.note(key, stale=True)
                return part, True
        self.stale.note(key, stale=False)
        return part, False

    def after_repair(self, partition: str) -> None:
        """Forget the parts that follow from raw files of a partition which were just repaired; keep all others."""
        kept, checks, stale = dict(self.parts), self.outcome.checks, self.stale.parts
        self.parts.clear()
        self._plan_parts()
        for key in self.plan.keys:  # upstream first
            if key not in kept or not self.plan.needs(key) <= self.parts.keys():
                continue
            is_near = ALL in (key.partition, partition) or key.partition == partition
            if not is_near or hashing.of(self.inputs.made_of(key)) == kept[key].fingerprint:
                self.parts[key] = kept[key]
        self.outcome.checks = {key: found for key, found in checks.items() if key in self.parts}
        self.outcome.made &= self.parts.keys()
        self.stale.parts |= stale & self.parts.keys()
