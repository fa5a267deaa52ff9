"""The line of a text that an error is about, with carets below the place."""

from __future__ import annotations

from warehouse.base.text import on_one_line

_BEFORE = 0.6
"""Of the room, so much is for what is before the place, where the line does not fit."""


def excerpt(text: str, offset: int, length: int, room: int) -> tuple[str, str]:
    r"""Return the line of a byte offset, cut to so many cells, and carets below so many bytes of it.

    Wide letters count two; control characters are written out.

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
