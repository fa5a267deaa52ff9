"""Error messages for people, with the source line and carets below the place of the error."""

from __future__ import annotations

import textwrap

from warehouse.base.errors import WarehouseError
from warehouse.base.text import on_one_line

_BEFORE = 0.6
"""Share of the room for the text before the place, if the line is cut."""
_WIDTH, _NARROW = 80, 20
"""Width in cells without a terminal, and the minimum width on a terminal."""


def error_text(error: WarehouseError, width: int | None = None) -> str:
    """Return an error as indented text: message, source line with carets, details, hint.

    Parameters
    ----------
    error
        The error.
    width
        The width of the terminal, for line breaks; None without a terminal.
    """

    def broken(line: str) -> str:
        if width is None or len(line) <= width:
            return line
        return textwrap.fill(
            line, max(width, _NARROW), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )  # fmt: skip

    indent = " " * 7
    shown: tuple[str, ...] = ()
    if error.source:
        shown = excerpt(*error.source, max((width or _WIDTH) - len(indent), _NARROW))
    head = f"{error.place}: {error.message}" if error.place else error.message
    below = (line.strip() for line in (*error.details, error.hint or "") if line)
    return "\n".join(
        [
            broken(f"error: {on_one_line(head)}"),
            *(f"{indent}{line}" for line in shown),
            *(broken(f"{indent}{on_one_line(line)}") for line in below),
        ]
    )


def excerpt(text: str, offset: int, length: int, room: int) -> tuple[str, str]:
    r"""Return the line at a byte offset, cut to `room` cells, and carets below `length` bytes.

    Wide characters take two cells; control characters are escaped.

    >>> excerpt("SELECT '漢' AS a,\n  '漢字', swtch\nFROM x", 31, 5, 72)
    ("  '漢字', swtch", '          ^^^^^')
    >>> excerpt("SELECT one, two, three, four, five FROM x", 24, 4, 24)
    ('… two, three, four, fiv…', '              ^^^^')
    """
    from rich.cells import cell_len

    source = text.encode()
    start, end = source.rfind(b"\n", 0, offset) + 1, source.find(b"\n", offset)
    end = len(source) if end < 0 else end
    middle = min(offset + length, end)
    before, word, after = (
        on_one_line(source[at:to].decode(errors="ignore").replace("\t", " "))
        for at, to in ((start, offset), (offset, middle), (middle, end))
    )
    if cell_len(before + word + after) <= room:
        return before + word + after, _carets(cell_len(before), cell_len(word), room)
    left = max(int(room * _BEFORE), 1)
    if cell_len(before) > left:
        before = before[-left:]
        while cell_len(before) >= left:
            before = before[1:]
        before = "…" + before
    line = (before + word + after)[: room + 1]
    if cell_len(line) > room:
        while cell_len(line) >= room:
            line = line[:-1]
        line += "…"
    return line, _carets(cell_len(before), cell_len(word), room)


def _carets(before: int, width: int, room: int) -> str:
    return " " * before + "^" * max(min(width, room - before), 1)
