"""Store of parts: immutable Parquet files, each named by the fingerprint of its inputs.

`parts/<model>/<partition's folder, or all>/<fingerprint>.parquet`. The target's state has a row for each: content hash,
number of rows, file signature, inputs, check results, rejected lines. A part counts once its row is written. A damaged
part is moved to `damaged/`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.text import plural
from warehouse.store.atomic import TEMPORARY, is_misplaced, quarantine
from warehouse.store.manifest import INPUTS, PARTS, Part, folder_of, kept_manifests, partition_name, problem_of
from warehouse.store.signatures import stamp
from warehouse.store.state import NAME, PART, DamagedStateError, State, text_of

Note = Callable[[str], None]
_NOTED = ("digest", "rows", "bytes", "stamp", "notes")
"""Fields of a part in its row of the state. The key and the path follow from each other."""


class Written(NamedTuple):
    """Finished file of a part, on disk, without its name."""

    path: Path
    rows: int
    digest: str


class Store:
    """Store of parts in a target.

    Parameters
    ----------
    target
        The target's folder.
    paranoid
        True to hash each part that is looked up, even if its signature is unchanged.
    on_damage
        Called with a sentence for each damaged part, which is then moved to `damaged/`. Without it, damaged parts stay
        in place, and nothing is written.
    """

    def __init__(self, target: Path, *, paranoid: bool = False, on_damage: Note | None = None) -> None:
        self.target = target.absolute()
        self.folder = self.target / PARTS
        self._paranoid = paranoid
        self._on_damage = on_damage
        self.state = _open_state(self.target, on_damage) if on_damage else _read_state(self.target)
        self._rows = self.state.texts(PART) if self.state else _rows_of_kept_builds(self.target)
        self._found: dict[str, Part] = {}

    def path(self, relation: str, partition: str, fingerprint: str) -> Path:
        """Return the path of a part."""
        return self.folder / relation / folder_of(partition) / f"{fingerprint}.parquet"

    def find(self, relation: str, partition: str, fingerprint: str) -> Part | None:
        """Return the part with this fingerprint; None if it is missing or damaged."""
        key = _key(relation, partition, fingerprint)
        if key in self._found:
            return self._found[key]
        part = self.find_row(relation, partition, fingerprint)
        if part is None or not os.path.lexists(part.file):
            return None
        seen = stamp(part.path.stat()) if part.path.is_file() else []
        if seen != part.stamp or self._paranoid:
            problem = problem_of(part.path, part.bytes, part.digest)
            if problem and self._on_damage:
                quarantine(self.target, part.path)
                shown = part.path.relative_to(self.target)
                self._on_damage(f"{shown} is damaged ({problem}): moved to damaged/, rebuilt")
            if problem:
                return None
            # An intact part with another signature, as after rsync, is hashed only once.
            part = part._replace(stamp=seen)
            self.keep(part)
        self._found[key] = part
        return part

    def find_row(self, relation: str, partition: str, fingerprint: str) -> Part | None:
        """Return what is known of a part, whose file may be missing; None if nothing is."""
        key = _key(relation, partition, fingerprint)
        if key not in self._rows:
            return None
        path = self.path(relation, partition, fingerprint)
        return Part(relation, partition, fingerprint, file=str(path), **json.loads(self._rows[key]))

    def temporary(self, name: str) -> Path:
        """Return a path for an unfinished file in the target."""
        folder = self.target / TEMPORARY
        folder.mkdir(exist_ok=True)
        return folder / f"{secrets.token_hex(8)}.{name}"

    def take_in(self, relation: str, partition: str, fingerprint: str, written: Written, notes: dict[str, Any]) -> Part:
        """Give a finished file its name, which promises what it was made from, and note it."""
        path = self.path(relation, partition, fingerprint)
        for place in reversed([path, *(one for one in path.parents if one.is_relative_to(self.folder))]):
            if is_misplaced(place, folder=place != path):
                quarantine(self.target, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        written.path.replace(path)  # before its row, with which the part counts
        seen = stamp(path.stat())
        part = Part(relation, partition, fingerprint, written.digest, written.rows, seen[0], str(path), seen, notes)
        self.keep(part)
        return part

    def keep(self, part: Part) -> None:
        """Write the row of a part."""
        key = _key(part.relation, part.partition, part.fingerprint)
        self._found[key] = part
        self.note(PART, {key: {name: getattr(part, name) for name in _NOTED}})

    def get(self, kind: str, key: Sequence[str]) -> Any:
        """Return a row of the state; None if it is missing or damaged."""
        return self.state.get(kind, "\t".join(key)) if self.state else None

    def note(self, kind: str, contents: Mapping[str, object], *, gone: Iterable[str] = ()) -> None:
        """Write rows of the state, unless this store is only read."""
        if self.state is not None and self._on_damage:
            self.state.put(kind, contents, gone=gone)

    def inputs(self, relation: str, partition: str, fingerprint: str) -> dict[str, Any] | None:
        """Return the inputs that a part was made from, even if its file is missing; None if they are unknown."""
        part = self.find_row(relation, partition, fingerprint)
        return part.notes.get(INPUTS) if part else None

    def inputs_of_parts(self, relation: str, partition: str) -> Iterator[Mapping[str, Any]]:
        """Yield the inputs of each existing part of a relation and partition."""
        for path in (self.folder / relation / folder_of(partition)).glob("*.parquet"):
            yield self.inputs(relation, partition, path.stem) or {}

    def forget_missing(self) -> None:
        """Remove the rows of parts whose files are gone."""
        self.note(PART, {}, gone=[key for key in self._rows if not self.path(*key.split("\t")).exists()])

    def close(self) -> None:
        """Close the state."""
        if self.state is not None:
            self.state.close()


def _key(relation: str, partition: str, fingerprint: str) -> str:
    return f"{relation}\t{partition}\t{fingerprint}"


def _read_state(target: Path) -> State | None:
    """Return the state of a target for reading; None if it is missing or damaged."""
    with suppress(DamagedStateError):
        state = State(target / NAME)
        state.check()
        return state
    return None


def _open_state(target: Path, note: Note) -> State:
    """Return the state of a target for writing; make it again from the kept builds if it is missing or damaged."""
    path = target / NAME
    is_there = os.path.lexists(path)
    if is_there:
        with suppress(DamagedStateError):
            return State(path, create=True)
    # SQLite would apply a journal that is left behind to the new file.
    for damaged in filter(os.path.lexists, (path, target / f"{NAME}-journal")):
        quarantine(target, damaged)
    found = _rows_of_kept_builds(target)
    (target / TEMPORARY).mkdir(exist_ok=True)
    made = target / TEMPORARY / NAME  # a state is whole or not there, also if this process is killed
    with closing(State(made, create=True)) as state:
        state.put(PART, {key: json.loads(row) for key, row in found.items()})
    made.replace(path)
    if found or is_there:
        note(f"{NAME} is missing or damaged: made again from {plural(len(found), 'part')} of the kept builds")
    return State(path, create=True)


def _rows_of_kept_builds(target: Path) -> dict[str, str]:
    """Return the rows of the intact parts of all kept builds, as `State.texts` does; nothing else is known of them."""
    found = {}
    for entry in {str(entry["path"]): entry for one in kept_manifests(target) for entry in one.parts}.values():
        file = target / entry["path"]
        if problem_of(file, entry["bytes"], entry["digest"]) is None:
            key = _key(entry["model"], partition_name(entry["partition"]), entry["fingerprint"])
            about = {"digest": entry["digest"], "rows": entry["rows"], "bytes": entry["bytes"], "notes": {}}
            found[key] = text_of(about | {"stamp": stamp(file.stat())})
    return found
