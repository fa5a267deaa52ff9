"""What a build made and what its checks found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from warehouse.formats.base import Inventory
from warehouse.graph.parts import Key
from warehouse.store.part_records import CheckResult, Part


@dataclass
class Outcome:
    """The parts of a build and what their checks found."""

    parts: dict[Key, Part] = field(default_factory=dict)
    checks: dict[Key, list[CheckResult]] = field(default_factory=dict)
    seconds: dict[Key, float] = field(default_factory=dict)
    made: set[Key] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    """Models with parts that are not those of the raw files as they are now, since they were not selected."""

    def of(self, model: str) -> list[Part]:
        """The parts of one model, by partition."""
        return [self.parts[key] for key in sorted(key for key in self.parts if key.model == model)]


@dataclass(frozen=True)
class Result:
    """What a build did."""

    build: str
    target: Path
    inventory: Inventory
    outcome: Outcome
    bytes: int
    """Size of the published parts and the catalog."""
    changed: bool
    """Whether this build differs from the one that was published before."""

    def checks(self) -> list[tuple[Key, CheckResult]]:
        """All check results."""
        return [(key, one) for key, results in sorted(self.outcome.checks.items()) for one in results]

    def summary(self) -> dict[str, object]:
        """The result as JSON-able values."""
        status = Counter(file.status for file in self.inventory.files)
        return {
            "build": self.build,
            "target": str(self.target),
            "changed": self.changed,
            "files": dict(sorted(status.items())),
            "parts": len(self.outcome.parts),
            "made": [{"model": key.model, "partition": key.partition} for key in sorted(self.outcome.made)],
            "stale": sorted(self.outcome.stale),
            "bytes": self.bytes,
            "checks": {
                "passed": sum(one.status == "passed" for _, one in self.checks()),
                "warned": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "rows": one.failures}
                    for key, one in self.checks()
                    if one.failures
                ],
                "not_checked": [
                    {"model": key.model, "partition": key.partition, "check": one.check, "why": one.not_checked}
                    for key, one in self.checks()
                    if one.not_checked
                ],
            },
        }
