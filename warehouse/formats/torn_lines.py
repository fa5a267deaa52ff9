"""Numbered lines of a raw text file, each with its damage: torn, too long, or in a damaged stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warehouse.base.regular_files import open_regular
from warehouse.formats.base import COMPRESSIONS
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
