"""Result of a build: its parts and check results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warehouse.formats.base import Inventory
from warehouse.graph.plan import Key
from warehouse.runner.catalog import Base
from warehouse.store.part_records import CheckResult, Part
from warehouse.store.partition_records import Records


@dataclass
class Outcome:
    """Parts of a build with their check results."""

    parts: dict[Key, Part] = field(default_factory=dict)
    checks: dict[Key, list[CheckResult]] = field(default_factory=dict)
    seconds: dict[Key, float] = field(default_factory=dict)
    made: set[Key] = field(default_factory=set)
    published: set[Key] = field(default_factory=set)
    """Parts that the records of an earlier build name, so it has published them."""
    stale: set[str] = field(default_factory=set)
    """Models outside the selection whose published parts are out of date, and models downstream of them."""
    own_hour: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Model -> partitions known to have rows of their own hour alone; examined in tables of many parts only."""
    examined: set[Key] = field(default_factory=set)
    """Those of them that only this build has examined."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Models of detail that `--keep-hours` leaves out, with the last hour that is left out."""
    records: Records | None = None
    """Records of all partitions for the next build; None if some parts are out of date."""
    early_catalog: Base | None = None
    """Catalog to begin with, which was written beside the parts."""

    def parts_by_model(self) -> dict[str, list[Part]]:
        """Return the parts of each model, by partition."""
        found: dict[str, list[Part]] = {}
        for key in sorted(self.parts):
            found.setdefault(key.model, []).append(self.parts[key])
        return found

    def checks_by_model(self) -> dict[str, list[tuple[str, Sequence[CheckResult]]]]:
        """Return partition and results of all checks of each part, by model."""
        found: dict[str, list[tuple[str, Sequence[CheckResult]]]] = {}
        for key in sorted(self.checks):
            found.setdefault(key.model, []).append((key.partition, self.checks[key]))
        return found


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
        checks = self.outcome.checks
        lists = {id(results): results for results in checks.values()}  # unchanged parts share a list of results
        clean = {at for at, results in lists.items() if not any(one.failures or one.not_checked for one in results)}
        some = sorted(key for key, results in checks.items() if id(results) not in clean)
        noted = [(key, one) for key in some for one in checks[key] if one.failures or one.not_checked]
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
                "passed": sum(map(len, checks.values())) - len(noted),
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
