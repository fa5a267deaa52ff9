"""Rows of `raw.files`: each file of the data folders with its format, status and content hash.

A folder whose names and signatures are those of the last build gives its rows without a look at its files. The target's
state has a row for each folder.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.errors import DataError
from warehouse.formats.base import READ, SKIPPED, Format, RawFile, WatchedFormat
from warehouse.ingest.scan import Place, Places, others, printable, recognize
from warehouse.store.changed_files import changed, changed_meanwhile, refuse_changed, settle
from warehouse.store.content_hash import of_content
from warehouse.store.parts import Store
from warehouse.store.state import FOLDER, State, opened
from warehouse.store.walk import UNREADABLE, Folder

_FIELDS = (
    *("release_path", "bytes", "mtime_ns", "format", "cluster", "switch", "device", "port", "file_group"),
    *("status", "reason", "is_odd"),
)
"""Fields of a row that the state has as they are."""


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
        places = Places(cluster)
        found = [self._before(folder, places.of(folder)) for folder in folders.values()]
        unknown = [(rows, at) for rows in found for at in rows.unknown]
        settle(rows.files[at].seen for rows, at in unknown)
        with ThreadPoolExecutor(self._threads) as pool:
            looks = [pool.submit(self._look_at, rows.files[at], rows.place) for rows, at in unknown]
            try:
                # Not in order: the failure of one file ends the reading of an earlier one of 60 GB.
                for look in wait(looks, return_when=FIRST_EXCEPTION).done:
                    look.result()
            except BaseException as error:
                self._stopped.set()
                wait(looks)
                paths = changed({rows.files[at].path: rows.files[at].seen for rows, at in unknown})
                if isinstance(error, DataError) and paths:
                    raise changed_meanwhile(paths) from error
                raise
        for (rows, at), look in zip(unknown, looks, strict=True):
            rows.files[at] = look.result()
        self._rows |= {rows.folder.key: rows for rows in found}
        return [file for rows in found for file in rows.files]

    def _before(self, folder: Folder, place: Place) -> FolderRows:
        """Return the rows of a folder as the last build saw them; an unknown file has neither format nor status.

        The row of a file depends on the names of the files beside it.
        """
        known = opened(FOLDER, folder.key, self._known.get(folder.key)) or {"files": (), "seen_as": None}
        before = {name: (seen, digest, row) for name, seen, digest, row in known["files"]}
        keeps_rows = known["seen_as"] == self._seen_as(place) and before.keys() == folder.entries().keys()
        rows, unknown = [], []
        for at, (name, seen) in enumerate(folder.stamps.items()):
            old_seen, digest, row = before.get(name, (None, None, {}))
            file = RawFile(Path(folder.path, printable(name)), name, seen[0], seen[1], seen=seen)
            if old_seen == seen:
                file = file.but(digest=digest, is_odd=row["is_odd"])
            if old_seen == seen and keeps_rows and not (row["reason"] or "").startswith(UNREADABLE):
                file = _restored(file, row)
            else:
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
        watch = one.watch() if isinstance(one, WatchedFormat) and file.status == READ else None

        def unless_stopped(chunk: bytes) -> None:
            if self._stopped.is_set():
                raise InterruptedError
            if watch is not None:
                watch(chunk)

        try:
            digest = of_content(file.path, unless_stopped)
        except InterruptedError:
            raise
        except OSError as error:
            return file.but(status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
        return file.but(digest=digest, is_odd=watch is not None and watch.is_odd())

    def mark_odd(self, paths: Collection[Path]) -> None:
        """Note that lines of these files are bad, which was found when they were read."""
        for rows in self._rows.values():
            odd = [at for at, file in enumerate(rows.files) if file.path in paths]
            rows.unknown.extend(odd)
            for at in odd:
                rows.files[at] = rows.files[at].but(is_odd=True)

    def keep(self, store: Store) -> None:
        """Note the rows of folders in which something was unknown; forget folders that are gone."""
        new = {key: self._content(rows) for key, rows in self._rows.items() if rows.unknown or not self._is_noted(rows)}
        store.note(FOLDER, new, gone=self._known.keys() - self._rows.keys())
        self._known = store.state.texts(FOLDER) if store.state else {}
        for rows in self._rows.values():
            rows.unknown.clear()

    def _is_noted(self, rows: FolderRows) -> bool:
        known = opened(FOLDER, rows.folder.key, self._known.get(rows.folder.key))
        return known is not None and known["signature"] == rows.folder.signature

    def _content(self, rows: FolderRows) -> dict[str, object]:
        """Return what the state has of a folder; without a signature if a file must be looked at again."""
        folder = rows.folder
        read = rows.files[: len(folder.stamps)]
        is_whole = not any((file.reason or "").startswith(UNREADABLE) for file in read)
        return {
            "path": folder.path,
            "signature": folder.signature if is_whole else "",
            "seen_as": self._seen_as(rows.place),
            "files": [
                [name, seen, file.digest, _plain(file)]
                for (name, seen), file in zip(folder.entries().items(), rows.files, strict=True)
            ],
        }


def _plain(file: RawFile) -> dict[str, object]:
    hour = file.hour_utc.isoformat() if file.hour_utc else None
    return {name: getattr(file, name) for name in _FIELDS} | {"hour_utc": hour, "header": file.header}


def _restored(file: RawFile, row: Mapping[str, Any]) -> RawFile:
    hour = datetime.fromisoformat(row["hour_utc"]) if row["hour_utc"] else None
    header = tuple(row["header"]) if row["header"] is not None else None
    return file.but(**{**row, "hour_utc": hour, "header": header})
