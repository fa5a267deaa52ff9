"""Raw files as byte streams, plain or compressed."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from warehouse.base.hashing import open_regular, opener
from warehouse.formats.base import COMPRESSIONS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES = 4 * 1024

#: Exceptions that a damaged compressed stream raises.
STREAM_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a regular file for reading; decompress `.gz` and `.zst`. Raises OSError for a pipe or device."""
    kind = COMPRESSIONS.get(path.suffix.lower())
    if kind == "gzip":
        stored = open_regular(path)
        stream = gzip.GzipFile(fileobj=stored)
        stream.myfileobj = cast("io.FileIO", stored)  # closed with the stream
        return cast("IO[bytes]", stream)
    if kind == "zstd":
        return io.BufferedReader(_Zstd(open(path, "rb", buffering=0, opener=opener)))
    return open_regular(path)


class _Zstd(io.RawIOBase):
    """Stream of consecutive zstd frames. A truncated frame is an error, not the end of the file."""

    _PIECE = 4 * 1024
    """Compressed bytes read at once: a malicious file can expand them to 128 MB."""

    def __init__(self, stream: IO[bytes] | io.RawIOBase) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:  # a piece may give no bytes yet, and 0 would mean the end
            # The next frame can begin in the piece that ended this one.
            piece = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            piece = piece or self._stream.read(self._PIECE) or b""
            if not piece:
                if self._inside:
                    raise EOFError("it ends inside a frame")
                return 0
            self._ready = memoryview(self._frame.decompress(piece))
            self._inside = not self._frame.eof
        into = memoryview(buffer)
        count = min(len(into), len(self._ready))
        into[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of the (decompressed) content, 4 kB by default."""
    with open_bytes(path) as stream:
        return stream.read(size)
