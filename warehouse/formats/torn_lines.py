"""Numbered lines of a raw text file, each with its damage: torn, too long, or in a damaged stream.

`LineTable` is the base class of formats whose lines Python reads as rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from warehouse.base.errors import DataError, Place
from warehouse.base.hashing import open_regular
from warehouse.formats.base import COMPRESSIONS, PARTIAL, READ, SKIPPED, RawFile, Rejected
from warehouse.formats.compressed import STREAM_ERRORS, open_bytes

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
        """Read every line."""
        try:
            found = [(number, row) for number, _, row in self.rows(file)]
        except STREAM_ERRORS as error:
            return file.but(status=SKIPPED, reason=f"cannot be decompressed: {error}")
        except ValueError as error:
            return file.but(status=SKIPPED, reason=str(error))
        bad = [f"line {number}: {row}" for number, row in found if isinstance(row, ValueError)]
        if len(bad) == len(found):
            return file.but(status=SKIPPED, reason=bad[0] if bad else "no row below the header")
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
