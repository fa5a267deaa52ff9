"""Result of a build: its parts and check results."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from warehouse.formats.base import Inventory
from warehouse.graph.plan import Key
from warehouse.store.manifest import CheckResult, Part


@dataclass
class Outcome:
    """Parts of a build with their check results."""

    parts: dict[Key, Part]
    checks: dict[Key, list[CheckResult]] = field(default_factory=dict)
    made: set[Key] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    """Models outside the selection whose published parts are out of date, and models downstream of them."""


@dataclass(frozen=True)
class Result:
    """Result of a published build."""

    build: str
    target: Path
    inventory: Inventory
    outcome: Outcome
    bytes: int
    """Size of the published parts and the catalog, in bytes."""
    changed: bool
    """True if this build differs from the one published before."""

    def checks(self) -> list[tuple[Key, CheckResult]]:
        """Return all check results."""
        return [(key, one) for key in sorted(self.outcome.checks) for one in self.outcome.checks[key]]

    def summary(self) -> dict[str, object]:
        """Return the result as JSON-able values."""
        found = self.checks()
        noted = [(key, one) for key, one in found if one.failures or one.not_checked]
        return {
            "build": self.build,
            "target": str(self.target),
            "changed": self.changed,
            "files": dict(sorted(self.inventory.statuses().items())),
            "parts": len(self.outcome.parts),
            "made": [{"model": key.model, "partition": key.partition} for key in sorted(self.outcome.made)],
            "stale": sorted(self.outcome.stale),
            "bytes": self.bytes,
            "checks": {
                "passed": len(found) - len(noted),
                "warned": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "rows": one.failures}
                    for key, one in noted
                    if one.failures
                ],
                "not_checked": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "why": one.not_checked}
                    for key, one in noted
                    if one.not_checked
                ],
            },
        }
