"""The parts of a target: immutable Parquet files, each named by the fingerprint of what made it.

`parts/<model>/<partition or all>/<fingerprint>.parquet`, with `<fingerprint>.json` beside it: stamp, digest of the
bytes, rows, and the results of checks. Both are written aside and renamed, the notes last: a part that has notes is
whole, and on disk. A damaged part is moved to `damaged/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warehouse.base import hashing
from warehouse.store.atomic import is_in_the_way, quarantine, sync, temporary_path, write_text
from warehouse.store.part_records import Part
from warehouse.store.part_signatures import problem_of
from warehouse.store.signatures import read_text, stamp


class Store:
    """The `parts/` folder of a target.

    Parameters
    ----------
    target
        The target's folder.
    paranoid
        Whether a part is hashed before it is believed to be whole, even if its stamp is as it was.
    on_damage
        Told of each damaged part, which is then moved to `damaged/`; left where it is if there is nobody to tell.
    """

    def __init__(self, target: Path, *, paranoid: bool = False, on_damage: Callable[[str], None] | None = None) -> None:
        self.target = target.absolute()
        self.folder = self.target / "parts"
        self._paranoid = paranoid
        self._on_damage = on_damage

    def path(self, relation: str, partition: str, mark: str) -> Path:
        """Where a part stands."""
        return self.folder / relation / partition / f"{mark}.parquet"

    def find(self, relation: str, partition: str, mark: str) -> Part | None:
        """The part of this fingerprint, if it is there and whole."""
        path = self.path(relation, partition, mark)
        try:
            said = json.loads(read_text(path.with_suffix(".json")))
            part = Part(relation, partition, mark, said["digest"], said["rows"], said["bytes"], path, said["notes"])
            known = said.get("stamp") or [said["bytes"], said["mtime_ns"]]
            if not os.path.lexists(path):
                return None
            is_same = path.is_file() and stamp(path.stat())[: len(known)] == known
            problem = None if is_same and not self._paranoid else problem_of(path, part.bytes, part.digest)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if problem:
            self._damaged(path, problem)
            return None
        if not is_same and self._on_damage:
            self._write_notes(part)
        return part

    def _damaged(self, path: Path, problem: str) -> None:
        """Move what is damaged out of the way and tell of it, if there is somebody to tell."""
        if self._on_damage:
            quarantine(self.target, path)
            self._on_damage(f"{path.relative_to(self.target)} is damaged ({problem}): moved to damaged/, made again")

    def _clear(self, path: Path) -> None:
        """Move away what is no file where a file is to be written, and what is no folder above it."""
        above = [folder for folder in reversed(path.parents) if folder.is_relative_to(self.folder)]
        for folder in above:
            if is_in_the_way(folder, folder=True):
                quarantine(self.target, folder)
        for file in (path, path.with_suffix(".json")):
            if is_in_the_way(file):
                quarantine(self.target, file)

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
            said = json.loads(read_text(self.path(relation, partition, mark).with_suffix(".json")))
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
        self._clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = temporary_path(path)
        try:
            rows = make(written)
            sync(written)
            said = notes if notes is not None else {}
            size, digest = written.stat().st_size, hashing.of_file(written)
            part = Part(relation, partition, mark, digest, rows, size, path, said)
            written.replace(path)
            self._write_notes(part)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        return part

    def annotate(self, part: Part, **notes: object) -> None:
        """Remember more with a part."""
        part.notes.update(notes)
        self._write_notes(part)

    def _write_notes(self, part: Part) -> None:
        """Write what is known of a part."""
        said = {
            "digest": part.digest,
            "rows": part.rows,
            "bytes": part.bytes,
            "stamp": stamp(part.path.stat()),
            "notes": part.notes,
        }
        write_text(part.path.with_suffix(".json"), json.dumps(said, sort_keys=True, ensure_ascii=False))
