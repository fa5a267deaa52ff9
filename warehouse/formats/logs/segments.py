"""A log as blocks of whole segments, however large the file.

A segment is what stands between line feeds or bare carriage returns: progress bars write the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from warehouse.base.startup import regex
from warehouse.formats.compressed import STREAM_ERRORS, open_bytes
from warehouse.formats.torn_lines import TORN

CHUNK = 1 << 16
"""Bytes that are read at once. A quarter of a megabyte, with its events, no longer stays in a core's cache, and is
read a tenth slower."""
LONGEST = 1 << 18
"""Bytes of a segment; what is longer is no line of a log."""
TOO_LONG = f"longer than {LONGEST:,} bytes"
BREAK = regex("\r\n|\n|\r")
BLANKS = regex("\n+(?=\n)").match
"""Blank lines but the last, which may be the beginning of a bar."""
WRAP = "\x1e"
"""Stands between two segments that a terminal made of one line."""
NARROWEST, WIDEST = 40, 320
"""Characters of a terminal's line."""
_SEGMENT = regex("[^\r\n]*(?:\r\n|\n|\r)")
_COLOUR = regex("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07]*\x07|\x1b[()][A-Z0-9]")


def blocks(path: Path) -> Iterator[tuple[str, str | None]]:
    """(text, what is wrong with it): segments with their breaks, in order, 64 KiB or a segment at a time.

    A character is a byte, which `text_of` makes text: most lines are ASCII, and are soonest read so. The last segment
    of a torn file, a segment that is too long, and the place where a compressed stream breaks come alone, with the
    reason, as text; of one that is too long only the beginning, and its break later.
    """
    rest = b""
    too_long = False
    with open_bytes(path) as stream:
        while True:
            try:
                chunk = stream.read(CHUNK)
            except STREAM_ERRORS as error:
                yield readable(rest[:LONGEST]), f"the compressed stream is damaged here: {error}"
                return
            if not chunk:
                break
            data = rest + chunk
            if too_long:
                places = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
                if not places:
                    continue
                too_long, data = False, data[min(places) :]
            cut = _last_break(data)
            if cut < 0 and len(data) > LONGEST:
                yield readable(data[:500]), TOO_LONG
                too_long, rest = True, b""
                continue
            if cut >= 0:
                yield data[: cut + 1].decode("latin-1"), None
            rest = data[cut + 1 :]
    if rest:
        whole, _, last = rest.rpartition(b"\r")
        if whole:
            yield (whole + b"\r").decode("latin-1"), None
        if last:
            yield readable(last), TORN


def _last_break(data: bytes) -> int:
    """Where the last segment that is surely complete ends: at a line feed, or a carriage return before none."""
    feed = data.rfind(b"\n")
    bare = data.rfind(b"\r", feed + 1, len(data) - 1)
    return max(feed, bare)


def text_of(segment: str) -> str:
    """A segment of a block as text.

    >>> text_of("50% \xe2\x96\x88 | 5\xb5s")
    '50% █ | 5\\\\xb5s'
    """
    return segment if segment.isascii() and "\0" not in segment else readable(segment.encode("latin-1"))


def readable(data: bytes) -> str:
    """Bytes as text: those that are not UTF-8, and NUL, are written `\\xff`, so that nothing is lost.

    >>> readable(b"loss: 1\\xff \\x00")
    'loss: 1\\\\xff \\\\x00'
    """
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\0", "\\x00") if "\0" in text else text


def plain(text: str) -> str:
    """Text without the escape sequences of terminals."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def wrap_width(block: str, begins_a_line: Callable[[str], bool]) -> int:
    """Return the width at which a terminal wrapped the lines of a log; 0 where none did.

    Wrapped lines fill the width, none is longer, and what follows most of them does not begin as a line does. They
    break anywhere, so that they end in different characters, as lines of one form do not.
    """
    segments = [text_of(one.rstrip("\r\n")) for one in _SEGMENT.findall(block)]
    width = max(map(len, segments), default=0)
    full = [number for number, one in enumerate(segments[:-1]) if len(one) == width]
    if not NARROWEST <= width <= WIDEST or len(full) < len(segments) / 20:
        return 0
    go_on = [one for one in full if segments[one + 1].strip() and not begins_a_line(segments[one + 1])]
    ends = {segments[one][-1] for one in go_on}
    return width if len(ends) >= 3 and 2 * len(go_on) >= len(full) and any(map(begins_a_line, segments)) else 0


def unwrapped(block: str, width: int, begins_a_line: Callable[[str], bool]) -> str:
    """Return a block whose wrapped lines are one again, with `WRAP` where they were broken."""
    if not width:
        return block
    out: list[str] = []
    goes_on = False
    for one in _SEGMENT.findall(block):
        if goes_on and not begins_a_line(text_of(one)):
            out[-1] = out[-1].rstrip("\r\n") + WRAP + one
        else:
            out.append(one)
        goes_on = len(text_of(one.rstrip("\r\n"))) == width
    return "".join(out)
