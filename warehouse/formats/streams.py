"""Raw files as streams of bytes, plain or compressed, and as numbered lines, each with its damage.

`LineTable` is the base class of formats whose lines Python reads as rows.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular, opener
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, Rejected

if TYPE_CHECKING:
    import numpy
    from _typeshed import WriteableBuffer
    from numpy.typing import NDArray

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
        self._pieces = self._unpacked()
        self._ready = memoryview(b"")

    def _unpacked(self) -> Iterator[bytes]:
        frame = None
        while piece := self._stream.read(self._PIECE):
            while piece:  # the next frame can begin in the piece that ends this one
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(piece)
                piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if frame:
            raise EOFError("it ends inside a frame")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:  # a piece may give no bytes yet, and 0 would mean the end
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
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


# lines

LONE_CR = "holds a carriage return: lines end in LF or CRLF"
"""Reason to reject a line, or to skip a file whose lines all end in a lone carriage return."""
TORN = "torn: the file ends without a final newline"
LINE_BYTES = 256 * 1024
"""Longest line that is read, in bytes; no line of any release comes near. It bounds memory for any file."""


def ends_with_newline(path: Path) -> bool:
    """Return True if the last byte of the content is a newline. A file without it is torn.

    A plain file costs one seek. A compressed file is read to its end.
    """
    if path.suffix.lower() in COMPRESSIONS:
        last = b""
        with open_bytes(path) as stream:
            while chunk := stream.read(1 << 20):
                last = chunk[-1:]
        return last == b"\n"
    with open_regular(path) as stream:
        if stream.seek(0, 2) == 0:
            return False
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield (line number, line without newline, damage or None), one line at a time.

    Damage is a reason: the last line of a torn file, a line longer than `LINE_BYTES`, or a broken compressed stream.
    """
    number = 0
    with open_bytes(path) as stream:
        try:
            while line := stream.readline(LINE_BYTES):
                number += 1
                if line.endswith(b"\n"):
                    yield number, line[:-1], None
                elif len(line) < LINE_BYTES:
                    yield number, line, TORN
                else:
                    yield number, line, f"longer than {LINE_BYTES:,} bytes"
                    while (rest := stream.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
        except STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"


Row = Mapping[str, object]


class LineTable:
    """Base class of formats whose lines are rows."""

    def rows(self, file: RawFile) -> Iterator[tuple[int, bytes, Row | ValueError]]:
        """Yield number, text and row of each line, or its problem. A line of several rows comes several times.

        Raises
        ------
        ValueError
            If the file is not of this format.
        """
        raise NotImplementedError

    def inspect(self, file: RawFile) -> RawFile:
        """Look at a file; skip it if it is not of this format."""
        try:
            return self.looked(file)
        except STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))

    def looked(self, file: RawFile) -> RawFile:
        """Read every line of a file. Raises ValueError if it is not of this format."""
        found = [(number, row) for number, _, row in self.rows(file)]
        bad = [f"line {number}: {row}" for number, row in found if isinstance(row, ValueError)]
        if len(bad) == len(found):
            raise ValueError(bad[0] if bad else "no row below the header")
        return file.but(status=PARTIAL, reason=bad[0]) if bad else file.but(status=READ)

    def read(self, files: Sequence[RawFile], relation: str, reject: list[Rejected]) -> Iterator[Row]:
        """Yield the rows of the files.

        Raises
        ------
        DataError
            If a file cannot be opened, or changed since it was inspected.
        """
        for file in files:
            try:
                for number, line, row in self.rows(file):
                    if isinstance(row, ValueError):
                        text = line.decode("utf-8", "backslashreplace")[:500]
                        reject.append(Rejected(file.release_path, number, str(row), text))
                    else:
                        yield {**row, "line": number, "filename": file.release_path}
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", place=Place(file.path)) from error
            except ValueError as error:
                raise DataError(f"changed while it was read: {error}", place=Place(file.path)) from error


# odd characters

_FIRST, _LAST = ord(","), ord("9")
"""Comma, minus, point, slash and the digits are adjacent in ASCII. Other bytes are not part of a number."""

_PIECE = 2**16
"""Bytes counted in one step: a piece that fits the processor's cache is counted several times faster."""


class UniformLines:
    """Counter of the characters of a comma-separated file, chunk by chunk: it finds odd ones while a file is hashed.

    The engine is lenient with numbers: it accepts `1e3`, `1_000`, ` 12` and `nan`, and a comma at the end of a line. A
    check of each line in Python would take longer than the rest of a build. In these files, all lines have the same
    text apart from their numbers. So each line has the same number of commas and of characters that are not part of a
    number. Counting both in the bytes that are hashed takes about 0.1 s per GB. A count that is not a multiple of the
    first line's shows that some line differs.
    """

    def __init__(self) -> None:
        self._outside = 0
        self._commas = 0
        self._head = b""

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        import numpy

        if self._head.count(b"\n") < 2:
            self._head += chunk[:_PIECE]
        data = numpy.frombuffer(chunk, numpy.uint8)
        for start in range(0, len(data), _PIECE):
            above_comma = data[start : start + _PIECE] - _FIRST
            self._outside += _outside(above_comma)
            self._commas += len(above_comma) - int(numpy.count_nonzero(above_comma))

    def is_odd(self) -> bool:
        """Return True if some line differs from the first line below the header. False if no bytes were read."""
        if not self._head:
            return False
        import numpy

        header, line = (text + b"\n" for text in (*self._head.split(b"\n", 2), b"", b"")[:2])
        fields = line.count(b",")
        lines, remainder = divmod(self._commas - header.count(b","), fields) if fields else (0, 1)
        in_header, in_line = (_outside(numpy.frombuffer(text, numpy.uint8) - _FIRST) for text in (header, line))
        return remainder != 0 or self._outside != in_header + lines * in_line


def _outside(above_comma: NDArray[numpy.uint8]) -> int:
    """Count the bytes that are not part of a number; the comma's code is subtracted, so bytes below it wrap around."""
    import numpy

    return int(numpy.count_nonzero(above_comma > _LAST - _FIRST))
