"""Store of parts: immutable Parquet files, each named by the fingerprint of its inputs.

`parts/<model>/<partition or all>/<fingerprint>.parquet`, with notes in `<fingerprint>.json`: file signature, content
hash, number of rows, and check results. Both files are written atomically, the notes last: a part with notes is
complete and on disk. A damaged part is moved to `damaged/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.base import hashing
from warehouse.store.atomic import is_misplaced, quarantine, sync, temporary_path, write_text
from warehouse.store.layout import PARTS
from warehouse.store.part_damage import problem_of
from warehouse.store.part_records import INPUTS, SHARE, Part
from warehouse.store.signatures import read_text, stamp

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp


class Store:
    """Store of parts in the `parts/` folder of a target.

    Parameters
    ----------
    target
        The target's folder.
    paranoid
        True to hash each part that is looked up, even if its signature is unchanged.
    on_damage
        Called for each damaged part, which is then moved to `damaged/`. Without it, damaged parts stay in place.
    share
        The share of a build that writes parts; noted with each.
    """

    def __init__(
        self,
        target: Path,
        *,
        paranoid: bool = False,
        on_damage: Callable[[str], None] | None = None,
        share: str | None = None,
    ) -> None:
        self.target = target.absolute()
        self.folder = self.target / PARTS
        self._inside = f"{self.folder}/"
        self._paranoid = paranoid
        self._on_damage = on_damage
        self._share = share
        self._signatures: dict[str, Stamp] = {}
        self._intact: Mapping[str, Stamp] = {}

    def know_intact(self, files: Mapping[str, Stamp]) -> None:
        """Take the signatures of files that have just been looked at: those of parts and notes count as those now."""
        parts = {path: seen for path, seen in files.items() if path.startswith(self._inside)}
        self._intact = {} if self._paranoid else parts

    def path(self, relation: str, partition: str, fingerprint: str) -> Path:
        """Return the path of a part."""
        return Path(self.file(relation, partition, fingerprint))

    def file(self, relation: str, partition: str, fingerprint: str) -> str:
        """Return the path of a part as text: a build has thousands."""
        return f"{self._inside}{relation}/{partition}/{fingerprint}.parquet"

    def signature(self, path: str) -> Stamp:
        """Return the signature of a part, or its notes, when it was found intact or written; else that of the file."""
        return self.signatures([path])[path]

    def signatures(self, paths: Iterable[str]) -> dict[str, Stamp]:
        """Return the signatures of parts, their notes and other files, by path."""
        written, intact = self._signatures.get, self._intact.get
        return {path: written(path) or intact(path) or stamp(os.stat(path)) for path in paths}  # noqa: PTH116

    def is_intact(self, path: str, signature: Stamp) -> bool:
        """Return True if the file of a part has this signature."""
        try:
            is_same = (self._intact.get(path) or stamp(os.stat(path))) == signature  # noqa: PTH116
        except OSError:
            return False
        if is_same:
            self._signatures[path] = signature
        return is_same

    def find(self, relation: str, partition: str, fingerprint: str) -> Part | None:
        """Return the part with this fingerprint; None if it is missing or damaged."""
        path = self.path(relation, partition, fingerprint)
        try:
            content = json.loads(read_text(path.with_suffix(".json")))
            part = Part(
                relation,
                partition,
                fingerprint,
                content["digest"],
                content["rows"],
                content["bytes"],
                str(path),
                content["notes"],
            )
            known = content.get("stamp") or [content["bytes"], content["mtime_ns"]]
            if not os.path.lexists(path):
                return None
            seen = stamp(path.stat()) if path.is_file() else []
            is_same = bool(seen) and seen[: len(known)] == known
            problem = None if is_same and not self._paranoid else problem_of(path, part.bytes, part.digest)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if problem:
            self._damaged(path, problem)
            return None
        if not is_same and self._on_damage:
            self._write_notes(part)
        elif is_same and len(known) == len(seen):
            self._signatures[str(path)] = seen
        return part

    def _damaged(self, path: Path, problem: str) -> None:
        """Quarantine a damaged part and report it, if `on_damage` is given."""
        if self._on_damage:
            quarantine(self.target, path)
            self._on_damage(f"{path.relative_to(self.target)} is damaged ({problem}): moved to damaged/, rebuilt")

    def _clear(self, path: Path) -> None:
        """Quarantine anything that is not a file at the paths of a part, or not a folder above them."""
        above = [folder for folder in reversed(path.parents) if folder.is_relative_to(self.folder)]
        for folder in above:
            if is_misplaced(folder, folder=True):
                quarantine(self.target, folder)
        for file in (path, path.with_suffix(".json")):
            if is_misplaced(file):
                quarantine(self.target, file)

    def find_equivalent(self, relation: str, partition: str, fits: Callable[[Mapping[str, Any]], bool]) -> Part | None:
        """Return an intact part whose inputs `fits` accepts."""
        for path in sorted((self.folder / relation / partition).glob("*.parquet")):
            if fits(self.inputs(relation, partition, path.stem) or {}):
                part = self.find(relation, partition, path.stem)
                if part is not None:
                    return part
        return None

    def notes(self, relation: str, partition: str, fingerprint: str) -> dict[str, Any]:
        """Return the notes of a part. The Parquet file may be missing."""
        try:
            content = json.loads(read_text(self.path(relation, partition, fingerprint).with_suffix(".json")))
            return dict(content["notes"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def inputs(self, relation: str, partition: str, fingerprint: str) -> dict[str, Any] | None:
        """Return the inputs that a part was made from; None if they are unknown."""
        known = self.notes(relation, partition, fingerprint).get(INPUTS)
        return None if known is None else dict(known)

    def inputs_of_parts(self, relation: str, partition: str) -> Iterator[dict[str, Any]]:
        """Yield the inputs of each existing part of a relation and partition."""
        for path in (self.folder / relation / partition).glob("*.parquet"):
            yield self.inputs(relation, partition, path.stem) or {}

    def write(
        self,
        relation: str,
        partition: str,
        fingerprint: str,
        make: Callable[[Path], int],
        notes: dict[str, object] | None = None,
        confirm: Callable[[], None] = lambda: None,
    ) -> Part:
        """Write a part atomically: `make` writes a temporary Parquet file and returns the number of rows.

        Then `confirm` raises an error if a file that was read has changed since it was hashed. Only after that the part
        gets its name, which promises what it was made from, even to a build after a kill.

        Of a share, which no build publishes soon, the part and its name are on disk before its notes are.
        """
        path = self.path(relation, partition, fingerprint)
        self._clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = temporary_path(path)
        try:
            rows = make(written)
            sync(written)
            kept_notes = (notes or {}) | ({SHARE: self._share} if self._share else {})
            size, digest = written.stat().st_size, hashing.of_file(written)
            part = Part(relation, partition, fingerprint, digest, rows, size, str(path), kept_notes)
            confirm()
            written.replace(path)
            if self._share:
                sync(path.parent)
            self._write_notes(part)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        return part

    def annotate(self, part: Part, **notes: object) -> None:
        """Add notes to a part."""
        part.notes.update(notes)
        self._write_notes(part)

    def _write_notes(self, part: Part) -> None:
        """Write the JSON file of a part."""
        self._signatures[part.file] = seen = stamp(part.path.stat())
        content = {
            "digest": part.digest,
            "rows": part.rows,
            "bytes": part.bytes,
            "stamp": seen,
            "notes": part.notes,
        }
        notes = part.path.with_suffix(".json")
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        write_text(notes, text, durable=self._share is not None)
        self._signatures[str(notes)] = stamp(notes.stat())
