"""Hashes of content, fingerprints and builds: xxh3-128, hexadecimal, of bytes or of canonical JSON.

Only regular files are opened: a pipe without a writer would block forever, a device may never end.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

import xxhash

Watch = Callable[[bytes], None]
NOT_REGULAR = "not a regular file"

CHUNK = 1 << 20
# Every fingerprint follows from this text: with other options, all parts would be stale.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def of(value: object) -> str:
    """Return the hash of a JSON-able value; equal on any machine.

    >>> of({"b": 1, "a": [2]}) == of({"a": [2], "b": 1})
    True
    """
    return xxhash.xxh3_128_hexdigest(_CANONICAL.encode(value).encode())


def of_bytes(content: bytes) -> str:
    """Return the hash of bytes."""
    return xxhash.xxh3_128_hexdigest(content)


def of_file(path: Path, watch: Watch | None = None) -> str:
    """Return the hash of a file's bytes; pass them to `watch`. Raises OSError if it is not a regular file."""
    with open(path, "rb", buffering=0, opener=opener) as stream:  # chunks are larger than a buffer
        return of_stream(stream, watch)


def of_stream(stream: IO[bytes], watch: Watch | None = None) -> str:
    """Return the hash of a stream's bytes; pass them to `watch`."""
    hasher = xxhash.xxh3_128()
    while chunk := stream.read(CHUNK):
        hasher.update(chunk)
        if watch is not None:
            watch(chunk)
    return hasher.hexdigest()


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to read its bytes. Raises OSError for a pipe, socket or device."""
    return open(path, "rb", opener=opener)


def opener(path: str, flags: int) -> int:
    """Open a regular file for `open`, without waiting for a writer. Raises OSError for anything else."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    # The open file is examined, not the path, which can lead elsewhere between two calls.
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return handle
