"""Hashes: of content, of what made a part, of a whole build. xxh3-128, hexadecimal, over canonical JSON."""

from __future__ import annotations

import json
from pathlib import Path

import xxhash

CHUNK = 1 << 20


def of(value: object) -> str:
    """The hash of a JSON-able value; the same value gives the same hash on any machine.

    >>> of({"b": 1, "a": [2]}) == of({"a": [2], "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return xxhash.xxh3_128_hexdigest(text.encode())


def of_file(path: Path) -> str:
    """The hash of a file's bytes."""
    hasher = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def of_content(path: Path) -> str:
    """The hash of a raw file's content, decompressed where it is compressed: the rows count, not their packing."""
    from warehouse.formats.base import COMPRESSIONS
    from warehouse.formats.text import STREAM_ERRORS, open_bytes

    if path.suffix.lower() not in COMPRESSIONS:
        return of_file(path)
    hasher = xxhash.xxh3_128()
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(CHUNK):
                hasher.update(chunk)
    except STREAM_ERRORS:
        return of_file(path)  # damaged: the stored bytes name it
    return hasher.hexdigest()
