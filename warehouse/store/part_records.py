"""Records of a part and of its check results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.sentences import filled

INPUTS = "made_of"
"""Note of a part: what it was made from; its fingerprint is the hash of this."""


class CheckResult(NamedTuple):
    """Result of a check on one part."""

    check: str
    warn: bool
    failures: int
    key: str = ""
    """Hash of the check and of the rows that it read."""
    rows: Sequence[str] = ()
    """First failing rows, as JSON objects."""
    not_checked: str = ""
    """Reason why the check did not run, such as `metrics.port_minute is stale`."""
    says: str = ""
    """Sentence template of the check. Not stored with the part, since it can change while the part stays valid."""

    @property
    def sentences(self) -> list[str]:
        """Sentence for each of the first failing rows; empty if the check has no template."""
        return [filled(self.says, json.loads(row)) for row in self.rows] if self.says else []

    @property
    def status(self) -> str:
        """`passed`, `warned`, `failed`, or `not checked: ` with the reason."""
        if self.not_checked:
            return f"not checked: {self.not_checked}"
        return "passed" if not self.failures else "warned" if self.warn else "failed"


class Part(NamedTuple):
    """Part of a relation: one Parquet file."""

    relation: str
    partition: str
    """`2024-05-23T16`, or `all`."""
    fingerprint: str
    digest: str
    rows: int
    bytes: int
    file: str
    """Path of the file."""
    stamp: list[int]
    """Signature of the file."""
    notes: dict[str, Any]
    """JSON-able values: inputs, check results, rejected lines."""

    @property
    def path(self) -> Path:
        """Path of the file."""
        return Path(self.file)


def results_to_notes(results: Sequence[CheckResult]) -> list[dict[str, object]]:
    """Return check results as JSON-able values, without sentences."""
    return [{name: value for name, value in result._asdict().items() if name != "says"} for result in results]
