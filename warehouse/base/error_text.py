"""Error messages for people, with the source line and carets below the place of the error."""

from __future__ import annotations

from warehouse.base.errors import WarehouseError
from warehouse.base.text import on_one_line, wrapped

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
    indent = " " * 7
    shown: tuple[str, ...] = ()
    if error.source:
        shown = excerpt(*error.source, max((width or _WIDTH) - len(indent), _NARROW))
    head = f"{error.place}: {error.message}" if error.place else error.message
    below = (line.strip() for line in (*error.details, error.hint or "") if line)
    lines = wrapped(f"error: {on_one_line(head)}", width, indent=indent)
    lines += [f"{indent}{line}\n" for line in shown]
    for line in below:
        lines += wrapped(f"{indent}{on_one_line(line)}", width, indent=indent)
    return "".join(lines).rstrip("\n")


def excerpt(text: str, offset: int, length: int, room: int) -> tuple[str, str]:
    r"""Return the line at a byte offset, cut to `room` cells, and carets below `length` bytes.

    Wide characters take two cells; control characters are escaped.

    >>> excerpt("SELECT '漢' AS a,\n  '漢字', swtch\nFROM x", 31, 5, 72)
    ("  '漢字', swtch", '          ^^^^^')
    >>> excerpt("SELECT one, two, three, four, five FROM x", 24, 4, 24)
    ('… two, three, four, fiv…', '              ^^^^')
    """
    from rich.cells import cell_len, set_cell_size

    source = text.encode()
    start, end = source.rfind(b"\n", 0, offset) + 1, source.find(b"\n", offset)
    end = len(source) if end < 0 else end
    middle = min(offset + length, end)
    before, word, after = (
        # A tab would be escaped as two characters.
        on_one_line(source[at:to].decode(errors="ignore").replace("\t", " "))
        for at, to in ((start, offset), (offset, middle), (middle, end))
    )
    left = int(room * _BEFORE)
    if cell_len(before + word + after) > room and cell_len(before) > left:
        # `set_cell_size` cuts at the right, and the text next to the error must stay.
        before = "…" + set_cell_size(before[::-1], left - 1)[::-1]
    line = before + word + after
    if cell_len(line) > room:
        line = set_cell_size(line, room - 1) + "…"
    return line, " " * cell_len(before) + "^" * max(min(cell_len(word), room - cell_len(before)), 1)
