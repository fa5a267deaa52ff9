"""Hashes: of content, of what made a part, of a whole build. xxh3-128, hexadecimal, over canonical JSON."""

from __future__ import annotations

import json
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
    """The hash of a file's bytes, which `watch` is shown as they are read."""
    with path.open("rb", buffering=0) as stream:
        return of_stream(stream, watch)


def of_stream(stream: IO[bytes], watch: Watch | None) -> str:
    """Hash the bytes of a stream, which `watch` is shown as they are read."""
    hasher = xxhash.xxh3_128()
    while chunk := stream.read(CHUNK):
        hasher.update(chunk)
        if watch is not None:
            watch(chunk)
    return hasher.hexdigest()
