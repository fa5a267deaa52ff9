"""Content hash of a raw file, independent of its compression."""

from __future__ import annotations

from pathlib import Path

from warehouse.base import hashing
from warehouse.formats.base import COMPRESSIONS
from warehouse.formats.compressed import STREAM_ERRORS, open_bytes


def of_content(path: Path, watch: hashing.Watch | None = None) -> str:
    """Return the hash of a raw file's decompressed content; of the stored bytes if they are damaged."""
    if path.suffix.lower() not in COMPRESSIONS:
        return hashing.of_file(path, watch)
    try:
        with open_bytes(path) as stream:
            return hashing.of_stream(stream, watch)
    except STREAM_ERRORS:
        return hashing.of_file(path)
