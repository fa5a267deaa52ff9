"""Changes of single lines of a CSV, and its compression."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import zstandard

from tests.release import Spoil


def an_hour_later(line: bytes) -> bytes:
    fields = line.split(b",")
    fields[0] = fields[0].replace(b" 00:", b" 01:")
    fields[1] = str(int(fields[1]) + 3_600_000).encode()
    return b",".join(fields)


def row_100(change: Callable[[bytes], bytes]) -> Spoil:
    """Line 101 of the file is changed."""
    return lambda lines: [*lines[:100], change(lines[100]), *lines[101:]]


def field(position: int, value: bytes) -> Spoil:
    """Line 101 has another value in this field, counted from 0."""

    def change(line: bytes) -> bytes:
        fields = line.rstrip(b"\n").split(b",")
        fields[position] = value
        return b",".join(fields) + b"\n"

    return row_100(change)


def swap(old: bytes, new: bytes) -> Spoil:
    return row_100(lambda line: line.replace(old, new))


PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


def pack(path: Path, suffix: str, cut: int = 0) -> Path:
    """Compress a file in two frames, as parallel compressors do, and cut some bytes off."""
    content = path.read_bytes()
    half = len(content) // 2
    packed = PACK[suffix](content[:half]) + PACK[suffix](content[half:])
    path.unlink()
    found = Path(f"{path}{suffix}")
    found.write_bytes(packed[: len(packed) - cut])
    return found
