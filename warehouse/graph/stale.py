"""Parts that a build with `--select` leaves stale, and the checks that cannot run on them."""

from __future__ import annotations

from warehouse.graph.plan import Key, Plan
from warehouse.project.check_language import relations_of
from warehouse.project.contract import Check
from warehouse.store.part_records import CheckResult


class Stale:
    """Stale parts of a build: outdated parts of models outside the selection, and all parts downstream of them.

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
        """Models of stale parts."""
        return {key.model for key in self.parts}

    def note(self, key: Key, *, is_kept: bool) -> None:
        """Record a part as stale if it was kept without a rebuild, or if it reads a stale part."""
        reads = self._plan.graph.nodes[key.model].reads if self.parts and not is_kept else ()
        if is_kept or any(self._stale_models(read, key.partition) for read in reads):
            self.parts.add(key)

    def result_if_stale(self, key: Key, check: Check) -> CheckResult | None:
        """Return the result `not checked` for a check that reads a stale part; None if the check can run."""
        if not self.parts:
            return None
        others = relations_of(check)
        is_view = self._plan.graph.nodes[key.model].model.is_view
        names = (key.model, *others) if others or is_view else ()
        found = {model for name in names for model in self._stale_models(name, key.partition)}
        return CheckResult(check.text, check.warn, 0, not_checked=f"{min(found)} is stale") if found else None

    def _stale_models(self, read: str, partition: str) -> set[str]:
        return {key.model for key in self._plan.parts_of(read, partition) & self.parts}
