"""Rows and content hashes of changed folders, several files at once: hashing and reading release Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from warehouse.formats.base import READ, SKIPPED, Format, RawFile, WatchedFormat
from warehouse.ingest.file_list import line_of
from warehouse.ingest.known_folders import KnownFolders, Record, encoded
from warehouse.ingest.scan import Place, others, recognize
from warehouse.store.content_hash import of_content
from warehouse.store.folders import UNREADABLE, Folder

_FILES_AT_ONCE = 1000
"""Number of files that are in memory or wait for a thread: a release has millions."""


@dataclass
class _Look:
    """Folder whose files are looked at."""

    folder: Folder
    place: Place
    rows: list[RawFile] = field(default_factory=list)
    to_hash: list[int] = field(default_factory=list)
    """Positions of the rows that lack their content hash."""
    odd: set[str] = field(default_factory=set)
    """Names of the files in which a line may be bad."""


class FolderReader:
    """Inspection and hashing of the files of changed folders.

    Parameters
    ----------
    formats
        Formats in order of precedence.
    known
        Records of the last build. Unchanged files of a changed folder keep their hash, and their row if the folder has
        the same names.
    threads
        Number of files that are hashed at once.
    """

    def __init__(self, formats: Sequence[Format], known: KnownFolders, threads: int) -> None:
        self._formats = formats
        self._known = known
        self._threads = threads
        self._watched = {one.name: one for one in formats if isinstance(one, WatchedFormat)}
        self._stopped = threading.Event()

    def records(self, folders: Iterable[tuple[Folder, Place]]) -> list[Record]:
        """Return the records of folders, in order."""
        found: list[Record] = []
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                for batch in _batches(folders):
                    looks = [self._looked(folder, place) for folder, place in batch]
                    waiting = [(look, at) for look in looks for at in look.to_hash]
                    for _ in pool.map(self._hash, waiting):
                        pass
                    found += map(self._record, looks)
            except BaseException:  # a file of 60 GB is not read to its end
                self._stopped.set()
                raise
        return found

    def _looked(self, folder: Folder, place: Place) -> _Look:
        """Recognize the files of a folder, as far as they are not known."""
        look = _Look(folder, place)
        known_rows = self._known.rows(folder, place)
        known = {name: (seen, digest, odd) for name, seen, digest, odd in self._known.looked_at(folder)}
        for name, seen in folder.stamps().items():
            before, digest, odd = known.get(name, (None, None, False))
            is_known = before == seen
            row = known_rows.get(name) if is_known else None
            if row is None or _is_unreadable(row):
                row = recognize(folder, name, seen, place, self._formats)
            if row.is_read and is_known and digest:
                row = row.but(digest=digest)
                look.odd |= {name} if odd else set()
            elif row.is_read:
                look.to_hash.append(len(look.rows))
            look.rows.append(row)
        look.rows += others(folder, place)
        return look

    def _hash(self, one: tuple[_Look, int]) -> None:
        """Hash one file; watch its bytes for lines that may be bad."""
        look, at = one
        file = look.rows[at]
        watched = self._watched.get(file.format or "") if file.status == READ else None
        watch = watched.watch() if watched else None

        def unless_stopped(chunk: bytes) -> None:
            if self._stopped.is_set():
                raise InterruptedError
            if watch is not None:
                watch(chunk)

        try:
            look.rows[at] = file.but(digest=of_content(file.path, unless_stopped))
        except InterruptedError:
            raise
        except OSError as error:
            look.rows[at] = file.but(status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
        if watch is not None and watch.is_odd():
            look.odd.add(file.path.name)

    def _record(self, look: _Look) -> Record:
        is_unreadable = any(_is_unreadable(row) for row in look.rows[: look.folder.count])
        listed = line_of(look.rows, self._formats)
        return encoded(look.folder, look.place, look.rows, look.odd, listed, is_racy=is_unreadable)


def _is_unreadable(row: RawFile) -> bool:
    """Return True for a file that could not be opened, and may be opened in the next build."""
    return row.status == SKIPPED and (row.reason or "").startswith(UNREADABLE)


def _batches(folders: Iterable[tuple[Folder, Place]]) -> Iterator[list[tuple[Folder, Place]]]:
    batch, count = [], 0
    for folder, place in folders:
        batch.append((folder, place))
        count += folder.count
        if count >= _FILES_AT_ONCE:
            yield batch
            batch, count = [], 0
    yield batch
