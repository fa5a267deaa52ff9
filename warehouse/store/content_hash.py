"""The hash of a raw file's content: of its rows, however they are packed."""

from __future__ import annotations

from pathlib import Path

from warehouse.base import hashing
from warehouse.formats.base import COMPRESSIONS
from warehouse.formats.compressed import STREAM_ERRORS, open_bytes


def of_content(path: Path, watch: hashing.Watch | None = None) -> str:
    """The hash of a raw file's content, decompressed where it is compressed: the rows count, not their packing."""
    if path.suffix.lower() not in COMPRESSIONS:
        return hashing.of_file(path, watch)
    try:
        with open_bytes(path) as stream:
            return hashing.of_stream(stream, watch)
    except STREAM_ERRORS:
        return hashing.of_file(path)  # damaged: the stored bytes name it
