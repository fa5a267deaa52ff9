"""Hashes: of content, of what made a part, of a whole build. xxh3-128, hexadecimal, over canonical JSON."""

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

CHUNK = 1 << 20


def of(value: object) -> str:
    """The hash of a JSON-able value; the same value gives the same hash on any machine.

    >>> of({"b": 1, "a": [2]}) == of({"a": [2], "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return xxhash.xxh3_128_hexdigest(text.encode())


def of_bytes(content: bytes) -> str:
    """The hash of bytes."""
    return xxhash.xxh3_128_hexdigest(content)


def of_file(path: Path, watch: Watch | None = None) -> str:
    """Return the hash of a file's bytes, which `watch` is shown as they are read; raise OSError for what is no file."""
    with open(path, "rb", buffering=0, opener=_without_waiting) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        return of_stream(stream, watch)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to would block for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def of_stream(stream: IO[bytes], watch: Watch | None) -> str:
    """Hash the bytes of a stream, which `watch` is shown as they are read."""
    hasher = xxhash.xxh3_128()
    while chunk := stream.read(CHUNK):
        hasher.update(chunk)
        if watch is not None:
            watch(chunk)
    return hasher.hexdigest()
