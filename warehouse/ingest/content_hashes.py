"""Rows and content hashes of changed folders, several files at once.

Of many files, worker processes look at blocks of them: to recognize a file is Python code, which threads would run in
turn. Of few files, threads do it: hashing and reading release Python's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from warehouse.engine.workers import Call, Workers
from warehouse.formats import known_formats
from warehouse.formats.base import READ, SKIPPED, Format, RawFile, WatchedFormat
from warehouse.ingest.file_list import line_of
from warehouse.ingest.known_folders import KnownFolders, Record, encoded
from warehouse.ingest.scan import Place, others, recognize
from warehouse.store.changed_files import refuse_changed, settle
from warehouse.store.content_hash import of_content
from warehouse.store.folders import UNREADABLE, Folder

if TYPE_CHECKING:
    from warehouse.store.signatures import Stamp

_FILES_AT_ONCE = 1000
"""Number of files that are in memory or wait for a thread: a release has millions."""
_BLOCK_FILES, _BLOCK_BYTES = 64, 16_000_000
"""Files of a block, and their bytes: about a twentieth of a second of work."""
FEWEST_BLOCKS = 16
"""Blocks that are worth the start of workers. Most of so many files have a kernel, which needs the workers next."""


class _Unknown(NamedTuple):
    """File to look at."""

    folder: str
    name: str
    seen: Stamp
    place: Place
    row: RawFile | None
    """Row of the file, if it is known."""
    digest: str | None
    """Content hash, if it is known."""
    is_odd: bool
    """True if the file with this hash has a line that may be bad."""


Seen = tuple[RawFile, bool]
"""Row of a file, and True if one of its lines may be bad."""


@dataclass
class _Look:
    """Folder whose files are looked at."""

    folder: Folder
    place: Place
    rows: list[RawFile | _Unknown] = field(default_factory=list)
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
        Number of files that are hashed at once in this process.
    workers
        Processes for many files.
    """

    def __init__(self, formats: Sequence[Format], known: KnownFolders, threads: int, workers: Workers) -> None:
        self._formats = formats
        self._known = known
        self._threads = threads
        self._workers = workers
        self._stopped = threading.Event()

    def records(self, folders: Iterable[tuple[Folder, Place]]) -> list[Record]:
        """Return the records of folders, in order."""
        found: list[Record] = []
        for batch in _batches(folders):
            looks = [self._looked(folder, place) for folder, place in batch]
            unknown = [one for look in looks for one in look.rows if isinstance(one, _Unknown)]
            seen = self._seen(unknown)
            found += [self._record(look, seen) for look in looks]
        return found

    def _looked(self, folder: Folder, place: Place) -> _Look:
        """Return the rows of a folder, as far as they are known."""
        look = _Look(folder, place)
        known_rows = self._known.rows(folder, place)
        known = {name: (seen, digest, odd) for name, seen, digest, odd in self._known.looked_at(folder)}
        for name, seen in folder.stamps().items():
            before, digest, odd = known.get(name, (None, None, False))
            is_known = before == seen
            row = known_rows.get(name) if is_known else None
            if row is not None and _is_unreadable(row):
                row = None
            unknown = _Unknown(folder.path, name, seen, place, row, digest if is_known else None, odd)
            look.rows.append(unknown if row is None or row.is_read else row)
        return look

    def _seen(self, unknown: Sequence[_Unknown]) -> Iterator[Seen]:
        """Return an iterator over what was seen of files, in order."""
        settle(one.seen for one in unknown)
        blocks = list(_blocks(unknown))
        if self._workers.are_worth(len(blocks), FEWEST_BLOCKS):
            names = [one.name for one in self._formats]
            calls = (Call(f"{__name__}:look_at_block", (block, names), "looked at raw files") for block in blocks)
            return iter([one for found in self._workers.results(calls) for one in found])
        with ThreadPoolExecutor(self._threads) as pool:
            looks = [pool.submit(self._look_at, one) for one in unknown]
            try:
                # Not in order: the failure of one file ends the reading of an earlier one of 60 GB.
                for look in wait(looks, return_when=FIRST_EXCEPTION).done:
                    look.result()
            except BaseException:
                self._stopped.set()
                raise
        return iter([look.result() for look in looks])

    def _look_at(self, one: _Unknown) -> Seen:
        return _look_at(one, self._formats, self._stopped)

    def _record(self, look: _Look, seen: Iterator[Seen]) -> Record:
        rows = []
        for one in look.rows:
            row, is_odd = next(seen) if isinstance(one, _Unknown) else (one, False)
            rows.append(row)
            look.odd |= {row.path.name} if is_odd else set()
        rows += others(look.folder, look.place)
        is_unreadable = any(_is_unreadable(row) for row in rows[: look.folder.count])
        listed = line_of(rows, self._formats)
        return encoded(look.folder, look.place, rows, look.odd, listed, is_racy=is_unreadable)


def look_at_block(files: Sequence[_Unknown], names: Sequence[str]) -> list[Seen]:
    """Look at files in a worker process, with the formats of these names."""
    formats = [one for one in known_formats() if one.name in names]
    never = threading.Event()
    return [_look_at(one, formats, never) for one in files]


def _look_at(one: _Unknown, formats: Sequence[Format], stopped: threading.Event) -> Seen:
    """Recognize a file and hash it, as far as it is not known. Raises DataError if it changes meanwhile."""
    file = one.row or recognize(one.folder, one.name, one.seen, one.place, formats)
    is_odd = one.is_odd
    if file.is_read and one.digest:
        file = file.but(digest=one.digest)
    elif file.is_read:
        file, is_odd = _hashed(file, formats, stopped)
    if file.format:  # else no format has opened it
        refuse_changed({file.path: one.seen})
    return file, file.is_read and is_odd


def _hashed(file: RawFile, formats: Sequence[Format], stopped: threading.Event) -> Seen:
    """Hash a file and watch its bytes for lines that may be bad; skip it if it cannot be read."""
    watched = next((known for known in formats if known.name == file.format), None)
    watch = watched.watch() if isinstance(watched, WatchedFormat) and file.status == READ else None

    def unless_stopped(chunk: bytes) -> None:
        if stopped.is_set():
            raise InterruptedError
        if watch is not None:
            watch(chunk)

    try:
        file = file.but(digest=of_content(file.path, unless_stopped))
    except InterruptedError:
        raise
    except OSError as error:
        file = file.but(status=SKIPPED, reason=f"{UNREADABLE}{error.strerror}")
    return file, watch is not None and watch.is_odd()


def _blocks(files: Iterable[_Unknown]) -> Iterator[list[_Unknown]]:
    """Yield files in blocks of about equal work."""
    block: list[_Unknown] = []
    size = 0
    for one in files:
        block.append(one)
        size += one.seen[0]
        if size >= _BLOCK_BYTES or len(block) >= _BLOCK_FILES:
            yield block
            block, size = [], 0
    if block:
        yield block


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
