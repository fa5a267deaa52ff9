"""Tables for people, fitted to a width; columns that do not fit are named below."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from warehouse.reader.result import Row
    from warehouse.reader.value_text import Column

WIDTH = 80
_GAP = 2
"""Width between columns: the divider and one column of padding."""
_TEXT_AT_LEAST, _LAST_AT_LEAST = 24, 12
_MISSING = "NULL"
_NO_BREAK = "\xa0"
_HEADER = 2
"""Lines of a table before its first row."""


def print_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    stream: TextIO,
    *,
    width: int | None = None,
    wrap_last: bool = False,
    all_by: str = "",
    hidden: Sequence[str] = (),
    whole: bool = False,
) -> None:
    """Lay the rows out and print them; name columns that do not fit below, with the option that shows them.

    `wrap_last` wraps the last column instead of cutting it. `whole` keeps all columns uncut: if a row is too long, its
    last texts are printed below it. `hidden` names columns that were left out before.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console = make_console(stream, width)
    texts = [[_MISSING if value is None else escape(value) for value in row] for row in rows]
    names = [escape(column.name) for column in columns]
    below = _below(columns, names, texts, console.width) if whole else []
    in_table = [position for position in range(len(columns)) if position not in below]
    widths = dict.fromkeys(below, 0) | dict(
        zip(
            in_table,
            fit(
                [columns[at] for at in in_table],
                [names[at] for at in in_table],
                [[line[at] for at in in_table] for line in texts],
                console.width,
            ),
            strict=True,
        )
    )
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown = [position for position in in_table if widths[position]]
    _cut_apart(texts, columns, {at: widths[at] for at in (shown[:-1] if wrap_last else shown)})
    for position in shown:
        table.add_column(
            Text(_aligned(names[position], columns[position], widths[position])),
            width=widths[position],
            no_wrap=not (wrap_last and position == shown[-1]),
            overflow="ellipsis",
        )
    for row, line in zip(rows, texts, strict=True):
        cells = (
            Text(_aligned(line[at], columns[at], widths[at]), style="dim" if row[at] is None else "") for at in shown
        )
        table.add_row(*cells)
    with console.capture() as printed:
        console.print(table)
    lines = [line.rstrip() + "\n" for line in printed.get().splitlines()]
    stream.writelines(lines[:_HEADER] if below else lines)
    for row, line, cut in zip(rows, texts, lines[_HEADER:], strict=True) if below else ():
        stream.write(cut)
        stream.writelines(
            one for at in below if row[at] is not None for one in _labelled(names[at], line[at], console.width)
        )
    out = [name for name in (*(names[at] for at in in_table if not widths[at]), *hidden) if name]
    stream.writelines(_left_out(out, all_by, console.width) if out else ())


def _cut_apart(rows: Sequence[list[str]], columns: Sequence[Column], widths: Mapping[int, int]) -> None:
    """Cut the texts of some columns in place, where the end tells them apart."""
    for at, width in widths.items():
        if columns[at].kind != "number":
            for row, text in zip(rows, _told_apart([row[at] for row in rows], width), strict=True):
                row[at] = text


def _told_apart(values: list[str], width: int) -> list[str]:
    """Cut texts in the middle if two different ones would have the same beginning.

    >>> _told_apart(["llama2-7b-new-worker-1", "llama2-7b-new-worker-2"], 12)
    ['llama2…ker-1', 'llama2…ker-2']
    """
    from rich.cells import cell_len

    long = {value for value in values if cell_len(value) > width}
    if not long or len({value[: width - 1] for value in long}) == len(long):
        return values
    tail = (width - 1) // 2
    head = width - 1 - tail
    return [f"{value[:head]}…{value[len(value) - tail :]}" if value in long else value for value in values]


def _left_out(names: Sequence[str], all_by: str, width: int) -> Iterator[str]:
    """Yield the lines that name the columns left out and the option that shows them."""
    noun = "column" if len(names) == 1 else "columns"
    by = f" ({all_by})".replace(" ", _NO_BREAK)[1:] if all_by else ""
    text = f"… {len(names)} more {noun}: {', '.join(names)} {by}".rstrip()
    yield from (line.replace(_NO_BREAK, " ") for line in wrapped(text, width))


def _aligned(text: str, column: Column, width: int) -> str:
    """Align a number and its header right, but keep the padding after the number that aligns its decimal point."""
    from rich.cells import cell_len

    return " " * (width - cell_len(text)) + text if column.kind == "number" else text


def _below(columns: Sequence[Column], names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Choose the text columns to print below their row, from the last, until the other columns fit."""
    natural = natural_widths(names, rows)
    in_table = list(range(len(natural)))
    while len(in_table) > 1 and sum(natural[at] for at in in_table) + _GAP * (len(in_table) - 1) > width:
        texts = [at for at in in_table[1:] if columns[at].kind != "number"]
        in_table.remove(([at for at in texts if natural[at] > _LAST_AT_LEAST] or texts or in_table)[-1])
    return [at for at in range(len(natural)) if at not in in_table]


def _labelled(name: str, text: str, width: int) -> list[str]:
    """Return the lines of a value printed below its row, with its column name."""
    return wrapped(f"  {name.strip()}: {text.strip()}", width, indent="    ")


def natural_widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column if nothing is cut."""
    from rich.cells import cell_len

    return [max([cell_len(name), *(cell_len(row[position]) for row in rows), 1]) for position, name in enumerate(names)]


def fit(columns: Sequence[Column], names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the width of each column, 0 if it is left out.

    Numbers are never cut. Text is cut if more columns then fit, to at least 24 characters, or 12 in the last visible
    column. Width that remains goes back to the columns that were cut.
    """
    from rich.cells import cell_len

    natural = natural_widths(names, rows)
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


def wrapped(text: str, width: int, *, indent: str = "  ") -> list[str]:
    """Break a sentence into lines with line ends; indent all but the first.

    Wide characters count as two cells.
    """
    from rich.cells import cell_len, chop_cells

    lead = text[: len(text) - len(text.lstrip(" "))]
    lines, line, is_begun = [], lead, False
    for word in text.split(" "):
        if not word:
            continue
        if is_begun and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line, is_begun = indent, False
        pieces = (
            chop_cells(word, max(width - cell_len(indent), 2)) if cell_len(line + word) + is_begun > width else [word]
        )
        for piece in pieces[:-1]:
            lines.append(line + piece)
            line = indent
        line += (" " if is_begun else "") + pieces[-1]
        is_begun = True
    return [one.rstrip() + "\n" for one in [*lines, line]]


def for_terminal(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Yield lines with line ends, wrapped if the stream is a terminal narrower than the line."""
    import shutil

    if not stream.isatty():
        yield from (f"{line}\n" for line in lines)
        return
    from rich.cells import cell_len

    width = shutil.get_terminal_size().columns
    for line in lines:
        lead = " " * (len(line) - len(line.lstrip(" ")) + 2)
        yield from wrapped(line, width, indent=lead) if cell_len(line) > width else [f"{line}\n"]


def escape(text: str, *, keep_lines: bool = False) -> str:
    r"""Escape all characters that could control a terminal.

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
    """Return a Rich console without markup, emoji and automatic colors."""
    from rich.console import Console

    console = Console(file=stream, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if width is None and not console.is_terminal:
        console.width = WIDTH
    return console
