"""Rows of `raw.files`: each file of the data folders with its cluster, release path, format, status and content hash.

Every file is listed with its format and the status `read`, or with another status and the reason. A file that no
format recognizes is `unknown`. A folder whose names and signatures are those of the last build gives its rows without
a look at its files. The target's state has a row for each folder.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.startup import regex
from warehouse.base.text import plural
from warehouse.formats.base import (
    COMPRESSIONS,
    IGNORED,
    READ,
    SKIPPED,
    UNKNOWN,
    Format,
    Inventory,
    RawFile,
)
from warehouse.formats.named_csv import NOT_THAT
from warehouse.formats.streams import STREAM_ERRORS, UniformLines, open_bytes
from warehouse.store.parts import Store
from warehouse.store.signatures import LINK_OUT, UNREADABLE, Folder, Stamp, must_not_follow, refuse_changed, settle
from warehouse.store.state import FOLDER, State, text_of


def of_content(path: Path, watch: hashing.Watch | None = None) -> str:
    """Return the hash of a raw file's decompressed content; of the stored bytes if they are damaged."""
    if path.suffix.lower() not in COMPRESSIONS:
        return hashing.of_file(path, watch)
    try:
        with open_bytes(path) as stream:
            return hashing.of_stream(stream, watch)
    except STREAM_ERRORS:
        return hashing.of_file(path)


_DESKTOP_FILES = regex(r"^(\.DS_Store|\._.*|Thumbs\.db|desktop\.ini|~\$.*|\.complete|__MACOSX)$", re.IGNORECASE)
_DOCUMENTS = regex(r"^(readme.*|licen[cs]e.*|.*\.md|.*\.txt|.*\.pdf|truth\.json)$", re.IGNORECASE)
_TOOL_FILES = regex(
    r"/\.git/|/\.cache/huggingface/download/|/(?:datasets|models)--[^/]+/(?:blobs|refs)/|/\.gitattributes$|/\.gitignore$"
)
NO_CLUSTER = "unknown"
"""Cluster of files below no cluster's folder; their release path begins in the data folder."""
_CLUSTER_CHILDREN = ("trafficinfo", "taskinfo")
_HOUR = regex(r"^\d{10}$")
_SHOWN = 3


def check_roots(roots: Sequence[Path]) -> None:
    """Raise DataError if a data folder does not exist, or is below /proc or /sys."""
    for root in roots:
        if not root.exists():
            raise DataError(f"no such data folder: {root}", hint="give an existing folder with --data")
        if must_not_follow(str(root.absolute()), None):
            raise DataError(f"{root} is a folder of the kernel, which holds no data", hint="give another with --data")


def refuse_nothing_to_read(inventory: Inventory) -> None:
    """Raise DataError, with the reasons of the first files, if no file of the data folders is readable."""
    if inventory.is_readable:
        return
    where = ", ".join(str(root) for root in inventory.roots)
    seen = plural(inventory.count, "file")
    unread = sorted(inventory.files, key=lambda file: file.status != SKIPPED)
    raise DataError(
        f"nothing readable in {where}: {seen}, none recognised" if inventory.count else f"no files in {where}",
        details=[f"  {file.path.name}: {file.reason}" for file in unread[:_SHOWN]],
        hint="see what was found: warehouse doctor -d DIR",
    )


def in_order(file: RawFile) -> tuple[str, str]:
    """Return the sort key of the inventory."""
    return file.release_path, str(file.path)


class Place(NamedTuple):
    """Place of a folder in a release."""

    cluster: str
    begin: str
    """Release path of the folder, with a `/` at the end; empty for a data folder of no cluster."""


def with_places(folders: Iterable[Folder], fallback: str | None) -> Iterator[tuple[Folder, Place]]:
    """Yield folders with their places: a cluster is the nearest parent with trafficinfo/, taskinfo/ or a workbook.

    `fallback` is the cluster of folders below none.
    """
    holds = cache(_holds_cluster)  # most folders lie below the same ones
    for folder in folders:
        path = folder.path
        if place := next((one for one in (path, *map(str, Path(path).parents)) if holds(one)), None):
            cluster = os.path.basename(place)
            yield folder, Place(cluster, _begin(cluster, os.path.relpath(path, place)))
        else:
            inside = os.path.relpath(path, folder.root) if path.startswith(folder.root) else "."
            yield folder, Place(fallback or NO_CLUSTER, _begin(fallback, inside))


def _begin(*names: str | None) -> str:
    return "".join(f"{name}/" for name in names if name and name != ".")


def _holds_cluster(folder: str) -> bool:
    name = os.path.basename(folder)  # the folder of an hour also contains a workbook of its own name
    markers = (os.path.join(folder, one) for one in (*_CLUSTER_CHILDREN, f"{name}.xlsx"))
    return not _HOUR.match(name) and any(map(os.path.lexists, markers))


def cluster_markers_above(root: Path) -> list[Path]:
    """Return the paths above a data folder that determine, by existing or not, the cluster of its files."""
    names = (*_CLUSTER_CHILDREN, "{}.xlsx")
    return [folder / name.format(folder.name) for folder in root.absolute().parents for name in names]


def others(folder: Folder, place: Place) -> Iterator[RawFile]:
    """Yield the files of a folder that cannot be read or followed."""
    for name, why in folder.others:
        file = _row(folder.path, name, [], place)
        status = IGNORED if why.startswith(LINK_OUT) else SKIPPED
        yield file if file.reason else file.but(status=status, reason=why)


def recognize(folder: str, name: str, seen: Stamp, place: Place, formats: Sequence[Format]) -> RawFile:
    """Return a regular file with its format, status and reason; opens the file if a format claims its name."""
    file = _row(folder, name, seen, place)
    if file.reason:
        return file
    if _DESKTOP_FILES.match(name):  # before the formats: `._train.log` is named like a log
        return file.but(status=IGNORED, reason="left behind by a desktop, not a part of the release")
    if _TOOL_FILES.search(str(file.path)):
        return file.but(status=IGNORED, reason="what git or the Hugging Face hub keeps for itself")
    refused = []
    for one in formats:
        if one.claims(file.path):
            try:
                inspected = one.inspect(file.but(format=one.name))
            except OSError as error:
                return file.but(format=one.name, status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
            if inspected.is_read:
                return inspected
            refused += [inspected] if inspected.reason else []
    # of several formats, one that does not take the file for another's says most
    own = [one for one in refused if one.status != UNKNOWN and not (one.reason or "").startswith(NOT_THAT)]
    told = [*own, *refused][:1]
    # After the formats, since a log can be a .txt.
    if not (told and told[0].status != UNKNOWN) and _DOCUMENTS.match(name):
        return file.but(status=IGNORED, reason="a text for people")
    return told[0] if told else file.but(reason="no known format has such a name")


def _row(folder: str, name: str, seen: Stamp, place: Place) -> RawFile:
    """Return a file of which only its place is known; it is skipped if that is not UTF-8 text."""
    joined, (size, mtime) = os.path.join(folder, name), seen[:2] or (0, 0)
    path, shown, cluster = printable(joined), printable(place.begin + name), printable(place.cluster)
    file = RawFile(Path(path), shown, size, mtime, cluster=cluster, seen=seen)
    return file if path == joined else file.but(status=SKIPPED, reason="its path is not UTF-8 text")


def printable(name: str) -> str:
    """Return a path with bytes that are not UTF-8 escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def settle_duplicates(files: Iterable[RawFile]) -> list[RawFile]:
    """Ignore duplicates of a file with equal content; refuse two files with different content for the same data.

    Files must have their content hash. Two files are for the same data if their cluster, hour, switch and port are
    equal. For formats without hours, the release path must be equal.

    Raises
    ------
    DataError
        With the names of both files.
    """
    first: dict[tuple[object, ...], RawFile] = {}
    settled = []
    for file in files:
        other = first.setdefault(subject(file), file) if file.is_read else file
        if other.digest != file.digest:
            what = f"{file.switch} {file.port}" if file.port else file.release_path
            raise DataError(
                f"two different files hold {what}" + (f" at {file.hour_utc} UTC" if file.hour_utc else ""),
                details=[f"  {other.path}", f"  {file.path}"],
                hint="Keep one of them: move the other out of the data folders.",
            )
        reason = f"the same content as {other.release_path}"
        settled.append(file if other is file else file.but(status=IGNORED, reason=reason))
    return settled


def subject(file: RawFile) -> tuple[object, ...]:
    """Return what a file is about; two files with different content must not be about the same."""
    if file.hour_utc is not None:
        return file.format, file.cluster, file.hour_utc, file.switch, file.port
    return file.format, file.release_path


class FolderRows(NamedTuple):
    """Rows of one folder: the regular files in order, then the others."""

    folder: Folder
    place: Place
    files: list[RawFile]
    unknown: list[int]
    """Positions of the files to look at."""


class Looker:
    """Looks at the files of data folders, as far as the last build does not know them.

    Parameters
    ----------
    formats
        Formats in order of precedence.
    environment
        Hash of what rows depend on besides the files: package, Python, engine, formats. If it changes, content hashes
        stay valid and rows do not.
    state
        The state of the target; None to look at all files.
    threads
        Number of files that are hashed at once: hashing and reading release Python's lock.
    """

    def __init__(self, formats: Sequence[Format], environment: str, state: State | None, threads: int) -> None:
        self._formats = formats
        self._environment = environment
        self._known = state.texts(FOLDER) if state else {}
        self._threads = threads
        self._stopped = threading.Event()
        self._rows: dict[str, FolderRows] = {}

    def look(self, folders: Mapping[str, Folder], cluster: str | None) -> list[RawFile]:
        """Return the rows of all folders. Raises DataError if a file changes meanwhile."""
        found = [self._before(folder, place) for folder, place in with_places(folders.values(), cluster)]
        unknown = [(rows, at) for rows in found for at in rows.unknown]
        # Before any file is opened: a later change then has another signature.
        settle(rows.files[at].seen for rows, at in unknown)
        with ThreadPoolExecutor(self._threads) as pool:
            looks = [pool.submit(self._look_at, rows.files[at], rows.place) for rows, at in unknown]
            try:
                # Not in order: the failure of one file ends the reading of an earlier one of 60 GB.
                for look in wait(looks, return_when=FIRST_EXCEPTION).done:
                    look.result()
            except BaseException:
                self._stopped.set()
                raise
        for (rows, at), look in zip(unknown, looks, strict=True):
            rows.files[at] = look.result()
        self._rows |= {rows.folder.key: rows for rows in found}
        return [file for rows in found for file in rows.files]

    def _before(self, folder: Folder, place: Place) -> FolderRows:
        """Return the rows of a folder as the last build saw them; an unknown file has neither format nor status.

        The row of a file depends on the names of the files beside it.
        """
        known = json.loads(self._known.get(folder.key, '{"files": {}, "seen_as": null}'))
        before = {name: _restored(row) for name, row in known["files"].items()}
        keeps_rows = known["seen_as"] == self._seen_as(place) and before.keys() == folder.entries().keys()
        rows, unknown = [], []
        for at, (name, seen) in enumerate(folder.stamps.items()):
            file, old = RawFile(Path(folder.path, printable(name)), name, seen[0], seen[1], seen=seen), before.get(name)
            is_known = old is not None and list(old.seen) == seen
            # A file that could not be read may be readable for this user, with an unchanged signature.
            if old and is_known and keeps_rows and not _is_unreadable(old):
                file = old
            else:
                file = file.but(digest=old.digest, is_odd=old.is_odd) if old and is_known else file
                unknown.append(at)
            rows.append(file)
        return FolderRows(folder, place, [*rows, *others(folder, place)], unknown)

    def _seen_as(self, place: Place) -> list[object]:
        return [self._environment, *place]

    def _look_at(self, file: RawFile, place: Place) -> RawFile:
        """Recognize a file and hash it, unless its hash is known. Raises DataError if it changes meanwhile."""
        found = recognize(str(file.path.parent), file.release_path, list(file.seen), place, self._formats)
        if found.is_read:
            found = found.but(digest=file.digest, is_odd=file.is_odd) if file.digest else self._hashed(found)
        if found.format:  # else no format has opened it
            refuse_changed({found.path: file.seen})
        return found

    def _hashed(self, file: RawFile) -> RawFile:
        """Hash a file and watch its bytes for lines that may be bad; skip it if it cannot be read."""
        one = next(known for known in self._formats if known.name == file.format)
        lines = UniformLines()
        is_uniform = file.status == READ and any(relation.uniform for relation in one.relations)

        def unless_stopped(chunk: bytes) -> None:
            if self._stopped.is_set():
                raise InterruptedError
            if is_uniform:
                lines(chunk)

        try:
            digest = of_content(file.path, unless_stopped)
        except InterruptedError:  # an OSError, too, which says nothing about this file
            raise
        except OSError as error:
            return file.but(status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
        return file.but(digest=digest, is_odd=lines.is_odd())

    def mark_odd(self, paths: Collection[Path]) -> None:
        """Note that lines of these files are bad, which was found when they were read."""
        for rows in self._rows.values():
            rows.files[:] = [file.but(is_odd=True) if file.path in paths else file for file in rows.files]

    def keep(self, store: Store) -> None:
        """Note the rows of folders that have other rows than before; forget folders that are gone."""
        rows = {key: self._content(rows) for key, rows in self._rows.items()}
        new = {key: row for key, row in rows.items() if text_of(row) != self._known.get(key)}
        store.note(FOLDER, new, gone=self._known.keys() - rows.keys())

    def _content(self, rows: FolderRows) -> dict[str, object]:
        """Return what the state has of a folder; without a signature if a file must be looked at again."""
        folder = rows.folder
        is_whole = not any(map(_is_unreadable, rows.files[: len(folder.stamps)]))
        return {
            "path": folder.path,
            "signature": folder.signature if is_whole else "",
            "seen_as": self._seen_as(rows.place),
            "files": {
                name: msgspec.to_builtins(file, enc_hook=str)
                for name, file in zip(folder.entries(), rows.files, strict=True)
            },
        }


def _is_unreadable(file: RawFile) -> bool:
    return (file.reason or "").startswith(UNREADABLE)


def _restored(row: Sequence[object]) -> RawFile:
    return msgspec.convert(row, RawFile, dec_hook=lambda kind, value: kind(value))
