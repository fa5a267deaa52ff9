"""Lines of a raw text file, and what is wrong with one: torn, too long, or in a damaged stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warehouse.formats.base import COMPRESSIONS
from warehouse.formats.compressed import STREAM_ERRORS, open_bytes

LONE_CR = "holds a carriage return: lines end in LF or CRLF"
"""Why a line is no line, and a file is skipped that has nothing but carriage returns at the ends of its lines."""
TORN = "torn: the file ends without a final newline"
LINE_BYTES = 256 * 1024
"""No line of any release comes near; more is not read at once, whatever a file holds."""


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
                    yield number, line, TORN
                else:
                    yield number, line, f"longer than {LINE_BYTES:,} bytes"
                    while (rest := stream.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
        except STREAM_ERRORS as error:
            yield number + 1, b"", f"the compressed stream is damaged here: {error}"
