"""Content hashes of raw files, several files at once: hashing and reading release Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warehouse.formats.base import READ, SKIPPED, Format, RawFile, WatchedFormat
from warehouse.store.hash_cache import HashCache

_FILES_AT_ONCE = 1000
"""Maximum number of files that wait for a thread: a release has millions."""


def with_hashes(
    files: Sequence[RawFile], formats: Sequence[Format], cache: HashCache, threads: int
) -> tuple[list[RawFile], set[Path]]:
    """Return the files, those that are read with their content hash, and the paths in which a line may be bad."""
    watched = {one.name: one for one in formats if isinstance(one, WatchedFormat)}
    odd: set[Path] = set()
    stopped = threading.Event()

    def hashed(file: RawFile) -> RawFile:
        if not file.is_read:
            return file
        one = watched.get(file.format or "") if file.status == READ else None
        watch = one.watch() if one else None

        def unless_stopped(chunk: bytes) -> None:
            if stopped.is_set():
                raise InterruptedError
            if watch is not None:
                watch(chunk)

        try:
            digest = cache.of(file.path, unless_stopped)
        except OSError as error:
            return file.but(status=SKIPPED, reason=f"cannot be read: {error.strerror}")
        if watch is not None and watch.is_odd():
            odd.add(file.path)
            cache.forget(file.path)
        return file.but(digest=digest)

    found: list[RawFile] = []
    with ThreadPoolExecutor(threads) as pool:
        try:
            for start in range(0, len(files), _FILES_AT_ONCE):
                found += pool.map(hashed, files[start : start + _FILES_AT_ONCE])
        except BaseException:  # a file of 60 GB is not read to its end
            stopped.set()
            raise
    cache.save()
    return found, odd
