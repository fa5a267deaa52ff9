"""Raw text files as bytes by line, plain or compressed, and what their first bytes say."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import zstandard

from warehouse.formats.base import COMPRESSIONS

HEAD_BYTES = 4 * 1024

#: What a damaged compressed stream raises, of either kind.
STREAM_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing `.gz` and `.zst` on the way."""
    kind = COMPRESSIONS.get(path.suffix.lower())
    if kind == "gzip":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if kind == "zstd":
        return cast("IO[bytes]", zstandard.open(path, "rb"))
    return path.open("rb")


def head(path: Path) -> bytes:
    """The first 4 kB of the (decompressed) content."""
    with open_bytes(path) as stream:
        return stream.read(HEAD_BYTES)


def ends_with_newline(path: Path) -> bool:
    """Whether the content's last byte is a newline; a file without it is torn.

    A plain file costs one seek; a compressed one is read to its end, since only its end can tell.
    """
    if path.suffix.lower() in COMPRESSIONS:
        last = b""
        with open_bytes(path) as stream:
            while chunk := stream.read(1 << 20):
                last = chunk[-1:]
        return last == b"\n"
    with path.open("rb") as stream:
        if stream.seek(0, 2) == 0:
            return False
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """(line number, line without its newline, what is wrong with it or None), one line at a time.

    The last line of a torn file, and the place where a compressed stream breaks, come with the reason.
    """
    number = 0
    with open_bytes(path) as stream:
        try:
            for line in stream:
                number += 1
                if line.endswith(b"\n"):
                    yield number, line[:-1], None
                else:
                    yield number, line, "torn: the file ends without a final newline"
        except STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"
