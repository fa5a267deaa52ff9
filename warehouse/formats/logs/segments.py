"""Log files as blocks of whole segments, with bounded memory for files of any size.

A segment ends at a line feed or at a bare carriage return; progress bars write the latter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from warehouse.formats.compressed import STREAM_ERRORS, open_bytes
from warehouse.formats.torn_lines import TORN

CHUNK = 1 << 16
"""Bytes read at once. At 256 KiB, a chunk and its events exceed a core's cache, and reads take 10% longer."""
LONGEST = 1 << 18
"""Maximum bytes of a segment; anything longer is not a line of a log."""
NARROWEST, WIDEST = 40, 320
"""Range of terminal widths, in characters."""
TOO_LONG = f"longer than {LONGEST:,} bytes"


def blocks(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield (text, damage or None): whole segments with their line breaks, in order, 64 KiB or one segment at a time.

    Damaged text comes alone, with a reason. It is one of these:

    - the last segment of a torn file;
    - the first 500 bytes of a segment that is too long;
    - the text before the place where a compressed stream breaks.
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
                yield readable(data[: cut + 1]), None
            rest = data[cut + 1 :]
    if rest:
        whole, _, last = rest.rpartition(b"\r")
        if whole:
            yield readable(whole + b"\r"), None
        if last:
            yield readable(last), TORN


def _last_break(data: bytes) -> int:
    """Return the end of the last segment that is surely complete; -1 if there is none.

    It ends at a line feed, or at a carriage return that is not the last byte (a line feed may follow).
    """
    feed = data.rfind(b"\n")
    bare = data.rfind(b"\r", feed + 1, len(data) - 1)
    return max(feed, bare)


def wrap_width(block: str) -> int:
    """Return the width at which a terminal wrapped the lines of a log; 0 if the log is not wrapped.

    A terminal wraps anywhere: lines that fill the width end in any character, and the lines behind them begin with any.
    """
    lines = [line for line in block.replace("\r", "\n").split("\n") if line]
    width = max(map(len, lines), default=0)
    pairs = [(line[-1], behind[0]) for line, behind in pairwise(lines) if len(line) == width]
    if not NARROWEST <= width <= WIDEST or len(pairs) < len(lines) / 20:
        return 0
    kinds = [{"0" if one.isdigit() else one for one in side} for side in zip(*pairs, strict=True)]
    return width if all(len(kind) >= 3 for kind in kinds) else 0


def readable(data: bytes) -> str:
    """Decode UTF-8. Invalid bytes and NUL become `\\xff` escapes, so that nothing is lost.

    >>> readable(b"loss: 1\\xff \\x00")
    'loss: 1\\\\xff \\\\x00'
    """
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\0", "\\x00") if "\0" in text else text
