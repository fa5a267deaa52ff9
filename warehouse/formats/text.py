"""Raw text files as bytes by line, plain or compressed, and what their first bytes say."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from warehouse.formats.base import COMPRESSIONS

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES = 4 * 1024
LINE_BYTES = 256 * 1024
"""No line of any release comes near; more is not read at once, whatever a file holds."""

LONE_CR = "holds a carriage return: lines end in LF or CRLF"
"""Why a line is no line, and a file is skipped that has nothing but carriage returns at the ends of its lines."""

#: What a damaged compressed stream raises, of either kind.
STREAM_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing `.gz` and `.zst` on the way."""
    kind = COMPRESSIONS.get(path.suffix.lower())
    if kind == "gzip":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if kind == "zstd":
        return io.BufferedReader(_Zstd(path.open("rb", buffering=0)))
    return path.open("rb")


class _Zstd(io.RawIOBase):
    """A zstd stream of one frame after another, which must be whole: a cut one is an error, not a short file."""

    _PIECE = 4 * 1024
    """Read at once: it can grow to 128 MB, were it made to."""

    def __init__(self, stream: IO[bytes] | io.RawIOBase) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
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

    The last line of a torn file, a line that is too long to be one, and the place where a compressed stream
    breaks, come with the reason.
    """
    number = 0
    with open_bytes(path) as stream:
        try:
            while line := stream.readline(LINE_BYTES):
                number += 1
                if line.endswith(b"\n"):
                    yield number, line[:-1], None
                elif len(line) < LINE_BYTES:
                    yield number, line, "torn: the file ends without a final newline"
                else:
                    yield number, line, f"longer than {LINE_BYTES:,} bytes"
                    while (rest := stream.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
        except STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"
