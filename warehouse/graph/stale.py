"""Parts that a build with `--select` leaves stale, and the checks that cannot be asked of them."""

from __future__ import annotations

from warehouse.graph.parts import Key, Plan
from warehouse.project.check_language import relations_of
from warehouse.project.contract import Check
from warehouse.store.part_records import CheckResult


class Stale:
    """The stale parts of a build: those of models that were not selected, and those made of stale parts.

    Parameters
    ----------
    plan
        The parts of the build.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.parts: set[Key] = set()

    @property
    def models(self) -> set[str]:
        """The models of stale parts."""
        return {key.model for key in self.parts}

    def note(self, key: Key, *, stale: bool) -> None:
        """Note that a part is known: it is stale if `stale` says so, or if a part that it reads is."""
        reads = self._plan.graph.nodes[key.model].reads if self.parts and not stale else ()
        if stale or any(self._among(read, key.partition) for read in reads):
            self.parts.add(key)

    def not_checked(self, key: Key, check: Check) -> CheckResult | None:
        """The result of a check that would compare parts of which one is stale; None if it can run."""
        if not self.parts:
            return None
        others = relations_of(check)
        is_view = self._plan.graph.nodes[key.model].model.materialize == "view"
        names = (key.model, *others) if others or is_view else ()
        found = {model for name in names for model in self._among(name, key.partition)}
        return CheckResult(check.text, check.warn, 0, not_checked=f"{min(found)} is stale") if found else None

    def _among(self, read: str, partition: str) -> set[str]:
        return {key.model for key in self._plan.parts_of(read, partition) & self.parts}
