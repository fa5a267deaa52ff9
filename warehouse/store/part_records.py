"""A part of a relation, and what its checks found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from warehouse.base.sentences import filled

ALL = "all"
"""The partition of a relation that is not partitioned."""


class CheckResult(NamedTuple):
    """What a check found."""

    check: str
    warn: bool
    failures: int
    key: str = ""
    """The hash of the check and of the rows it looked at."""
    rows: Sequence[str] = ()
    """The first rows that fail, as JSON objects."""
    not_checked: str = ""
    """Why the check did not run, such as `metrics.port_minute is stale`."""
    says: str = ""
    """The sentence of the check, to be filled; not kept with a part, since it may change while the part stays."""

    @property
    def sentences(self) -> list[str]:
        """The sentence for each of the first rows that fail; none where the check has none."""
        return [filled(self.says, json.loads(row)) for row in self.rows] if self.says else []

    @property
    def status(self) -> str:
        """`passed`, `warned`, `failed`, or `not checked: ` and why."""
        if self.not_checked:
            return f"not checked: {self.not_checked}"
        return "passed" if not self.failures else "warned" if self.warn else "failed"


@dataclass(frozen=True)
class Part:
    """One part of a relation."""

    relation: str
    partition: str
    """`2024-05-23T16`, or `all`."""
    fingerprint: str
    digest: str
    rows: int
    bytes: int
    path: Path
    notes: dict[str, object] = field(default_factory=dict, compare=False)
    """What its maker wants to remember with it (rejected lines, check results)."""


def results_to_notes(results: list[CheckResult]) -> list[dict[str, object]]:
    """Check results as JSON-able values, without sentences."""
    return [{name: value for name, value in result._asdict().items() if name != "says"} for result in results]
