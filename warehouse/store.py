"""The parts of a target: immutable Parquet files, each named by the fingerprint of what made it.

`parts/<model>/<partition or all>/<fingerprint>.parquet`, with `<fingerprint>.json` beside it: digest of the
bytes, rows, and the results of checks. Both are written aside and renamed, the Parquet file last: a part
that is there is whole, and on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from warehouse import fingerprint
from warehouse.aside import aside, sync, write_text

ALL = "all"


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


class Store:
    """The `parts/` folder of a target.

    Parameters
    ----------
    target
        The target's folder.
    paranoid
        Whether a part is hashed before it is believed to be whole, even if size and time are as they were.
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
            about = path.stat()
            if about.st_size != said["bytes"]:
                return None
            moved = about.st_mtime_ns != said["mtime_ns"]
            if (moved or self._paranoid) and fingerprint.of_file(path) != said["digest"]:
                return None
            part = Part(relation, partition, mark, said["digest"], said["rows"], said["bytes"], path, said["notes"])
            if moved:
                self._write_notes(part)
            return part
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def find_made(self, relation: str, partition: str, fits: Callable[[Mapping[str, Any]], bool]) -> Part | None:
        """A whole part that was made of what fits."""
        for path in sorted((self.folder / relation / partition).glob("*.parquet")):
            if fits(dict(self.notes(relation, partition, path.stem).get("made_of", {}))):
                part = self.find(relation, partition, path.stem)
                if part is not None:
                    return part
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
        written = aside(path)
        try:
            rows = make(written)
            sync(written)
            said = notes if notes is not None else {}
            size, digest = written.stat().st_size, fingerprint.of_file(written)
            part = Part(relation, partition, mark, digest, rows, size, path, said)
            self._write_notes(part, written)
            written.replace(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        return part

    def annotate(self, part: Part, **notes: object) -> None:
        """Remember more with a part."""
        part.notes.update(notes)
        self._write_notes(part)

    def _write_notes(self, part: Part, file: Path | None = None) -> None:
        """What is known of a part, which is still to be renamed where `file` is given."""
        said = {
            "digest": part.digest,
            "rows": part.rows,
            "bytes": part.bytes,
            "mtime_ns": (file or part.path).stat().st_mtime_ns,
            "notes": part.notes,
        }
        write_text(part.path.with_suffix(".json"), json.dumps(said, sort_keys=True, ensure_ascii=False))


def results_to_notes(results: list[CheckResult]) -> list[dict[str, object]]:
    """Check results as JSON-able values."""
    return [result._asdict() for result in results]
