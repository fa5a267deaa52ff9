"""The parts of a target: immutable Parquet files, each named by the fingerprint of what made it.

`parts/<model>/<partition or all>/<fingerprint>.parquet`, with `<fingerprint>.json` beside it: digest of the
bytes, rows, and the results of checks. Both are written aside and renamed, the Parquet file last: a part
that is there is whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warehouse import fingerprint

ALL = "all"


@dataclass(frozen=True)
class CheckResult:
    """What a check found."""

    check: str
    warn: bool
    failures: int
    key: str = ""
    """The hash of the check and of the rows it looked at."""
    rows: Sequence[str] = ()
    """The first rows that fail, as JSON objects."""


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


class Store:
    """The `parts/` folder of a target.

    Parameters
    ----------
    target
        The target's folder.
    paranoid
        Whether a part is hashed before it is believed to be whole.
    """

    def __init__(self, target: Path, *, paranoid: bool = False) -> None:
        self.target = target.absolute()
        self.folder = self.target / "parts"
        self._paranoid = paranoid

    def path(self, relation: str, partition: str, mark: str) -> Path:
        """Where a part stands."""
        return self.folder / relation / partition / f"{mark}.parquet"

    def find(self, relation: str, partition: str, mark: str) -> Part | None:
        """The part of this fingerprint, if it is there and whole."""
        path = self.path(relation, partition, mark)
        try:
            said = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            if path.stat().st_size != said["bytes"]:
                return None
            if self._paranoid and fingerprint.of_file(path) != said["digest"]:
                return None
            return Part(relation, partition, mark, said["digest"], said["rows"], said["bytes"], path, said["notes"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def notes(self, relation: str, partition: str, mark: str) -> dict[str, Any]:
        """What was noted with a part, which itself may be gone."""
        try:
            said = json.loads(self.path(relation, partition, mark).with_suffix(".json").read_text(encoding="utf-8"))
            return dict(said["notes"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def made_of(self, relation: str, partition: str) -> Iterator[dict[str, Any]]:
        """What each part of a relation and partition that is there was made of."""
        for path in (self.folder / relation / partition).glob("*.parquet"):
            yield dict(self.notes(relation, partition, path.stem).get("made_of", {}))

    def write(
        self,
        relation: str,
        partition: str,
        mark: str,
        make: Callable[[Path], int],
        notes: dict[str, object] | None = None,
    ) -> Part:
        """Have `make` write the Parquet file aside, then put it in its place."""
        path = self.path(relation, partition, mark)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{mark}.{os.getpid()}.parquet")
        try:
            rows = make(aside)
            part = Part(
                relation,
                partition,
                mark,
                fingerprint.of_file(aside),
                rows,
                aside.stat().st_size,
                path,
                notes if notes is not None else {},
            )
            self._write_notes(part)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        return part

    def annotate(self, part: Part, **notes: object) -> None:
        """Remember more with a part."""
        part.notes.update(notes)
        self._write_notes(part)

    def _write_notes(self, part: Part) -> None:
        path = part.path.with_suffix(".json")
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        said = {"digest": part.digest, "rows": part.rows, "bytes": part.bytes, "notes": part.notes}
        aside.write_text(json.dumps(said, sort_keys=True, ensure_ascii=False), encoding="utf-8")
        aside.replace(path)


def results_to_notes(results: list[CheckResult]) -> list[dict[str, object]]:
    """Check results as JSON-able values."""
    return [asdict(result) for result in results]
