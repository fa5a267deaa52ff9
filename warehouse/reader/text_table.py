"""A table for people: in the width that there is, with a word on what was left out."""

from __future__ import annotations

import textwrap
from itertools import islice
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from warehouse.reader.result import Result, Row
    from warehouse.reader.value_text import Column

WIDTH = 80
_GAP = 2
"""Between columns: the box's divider and one column of padding."""
_TEXT_AT_LEAST, _LAST_AT_LEAST = 24, 12
_MISSING = "NULL"
_NO_BREAK = "\xa0"


def write_table(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> int:
    """Write a result as a table, and say how many rows were written.

    Where the columns do not fit, as many as fit are shown and the others are named below; where `limit` cuts
    the rows, their number is said below.
    """
    rows = list(islice(result.rows, None if limit is None else limit + 1))
    if result.is_plan:
        stream.writelines(f"{escape(row[-1] or '', keep_lines=True).rstrip()}\n" for row in rows)
        return len(rows)
    more = limit is not None and len(rows) > limit
    shown = rows[:limit] if more else rows
    print_rows(result.columns, shown, stream, width=width, all_by="--format lines")
    if more:
        stream.write(f"{result.count():,} rows, {len(shown):,} shown\n")
    return len(shown)


def print_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    stream: TextIO,
    *,
    width: int | None = None,
    wrap_last: bool = False,
    all_by: str = "",
) -> None:
    """Lay the rows out and print them; what does not fit is named below, with what would show it.

    With `wrap_last` the last column goes on in further lines where others are cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console = make_console(stream, width)
    texts = [[_MISSING if value is None else escape(value) for value in row] for row in rows]
    names = [escape(column.name) for column in columns]
    widths = fit(columns, names, texts, console.width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown = [position for position, space in enumerate(widths) if space]
    for position in shown:
        table.add_column(
            Text(names[position]),
            justify="right" if columns[position].kind == "number" else "left",
            width=widths[position],
            no_wrap=not (wrap_last and position == shown[-1]),
            overflow="ellipsis",
        )
    for row, line in zip(rows, texts, strict=True):
        table.add_row(*(Text(line[at], style="dim" if row[at] is None else "") for at in shown))
    with console.capture() as printed:
        console.print(table)
    stream.writelines(line.rstrip() + "\n" for line in printed.get().splitlines())
    hidden = [name for name, space in zip(names, widths, strict=True) if not space]
    if hidden:
        noun = "column" if len(hidden) == 1 else "columns"
        by = f" ({all_by})".replace(" ", _NO_BREAK)[1:] if all_by else ""
        said = f"… {len(hidden)} more {noun}: {', '.join(hidden)} {by}".rstrip()
        lines = textwrap.fill(said, console.width, subsequent_indent="  ", break_on_hyphens=False)
        stream.write(lines.replace(_NO_BREAK, " ") + "\n")


def fit(columns: Sequence[Column], names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Give each column its width, 0 where it is left out.

    Numbers are never cut. Text is cut where that lets more columns in, but not below 24 characters, or 12 in
    the last column that is shown; what is then left of the line is given back to the columns that were cut.
    """
    from rich.cells import cell_len

    natural = [
        max([cell_len(name), *(cell_len(row[position]) for row in rows), 1]) for position, name in enumerate(names)
    ]
    if sum(natural) + _GAP * (len(natural) - 1) <= width:
        return natural
    least = [
        wide if column.kind == "number" else min(wide, max(_TEXT_AT_LEAST, cell_len(name)))
        for column, name, wide in zip(columns, names, natural, strict=True)
    ]
    widths = [0] * len(natural)
    left = width
    for position, wide in enumerate(least):
        long_text = columns[position].kind != "number" and natural[position] > _TEXT_AT_LEAST
        if wide > left and any(widths) and not (long_text and left >= _LAST_AT_LEAST):
            break
        widths[position] = min(wide, left)
        left -= widths[position] + _GAP
    left += _GAP
    for position, wide in enumerate(widths):
        if wide and left > 0:
            more = min(natural[position] - wide, left)
            widths[position] += more
            left -= more
    return widths


def wrapped(text: str, width: int) -> list[str]:
    """Break a sentence into lines, each with its end; the later ones are set in."""
    lines = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
    return [line + "\n" for line in lines]


def escape(text: str, *, keep_lines: bool = False) -> str:
    r"""Write out everything in a text that could steer a terminal.

    >>> escape("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable()
        or (letter.isspace() and letter > "\x9f" and letter not in "\u2028\u2029")
        or (keep_lines and letter == "\n")
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def make_console(stream: TextIO, width: int | None) -> Console:
    """Make Rich's console without its own ideas: no markup, no emoji, no colours for numbers."""
    from rich.console import Console

    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if width is None and not console.is_terminal:
        console.width = WIDTH
    return console
