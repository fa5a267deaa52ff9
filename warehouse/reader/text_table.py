"""Answers for people: readable numbers, tables fitted to a width, and lines, one column per line.

A number has its own unit and digits: `6.67 TB`, `12.3 Gb/s`, `3.9 %`, `2 h 13 min`. Exact values are in csv, json,
jsonl, markdown and Parquet. Texts wrap; what does not fit is named below or stands below its row.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TextIO

from warehouse.base.text import wrapped
from warehouse.reader.result import COUNT, INTEGERS, SHARE, Column, Result, Row

if TYPE_CHECKING:
    from warehouse.reader.named_queries import Query

WIDTH = 80
_GAP = 2
"""Width between columns: the divider and one column of padding."""
_TEXT_AT_LEAST, _LAST_AT_LEAST = 24, 12
"""Width that a long text has at least, and in the last column that fits."""
_NO_BREAK = "\xa0"
_HEADER = 2
"""Lines of a table before its first row."""


def print_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    stream: TextIO,
    *,
    width: int | None = None,
    all_by: str = "",
    hidden: Sequence[str] = (),
    whole: bool = False,
) -> None:
    """Print rows as a table; name the columns that do not fit below it, with the option that shows them.

    Parameters
    ----------
    columns
        Columns; numbers are aligned right and never wrapped.
    rows
        Their values.
    stream
        Output.
    width
        Characters per line; by default those of the terminal.
    all_by
        Option or command that shows all columns.
    hidden
        Names of columns that were left out before.
    whole
        True to show all columns: the last texts of rows that are too long stand below their row.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    wide = width_of(stream, width)
    names = [escape(column.name) for column in columns]
    widths = _widths(columns, rows)
    below = _below(columns, widths, wide) if whole else []
    last = len(columns) if whole else _fitting(columns, widths, wide)
    shown = [at for at in range(last) if at not in below]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for at in shown:
        is_number = columns[at].kind == "number"
        table.add_column(
            Text(names[at]),
            justify="right" if is_number else "left",
            no_wrap=is_number or bool(below),
            overflow="ellipsis" if is_number or below else "fold",
        )
    for row in rows:
        # As `Text`, since rich would take [brackets] in a str for markup.
        table.add_row(*(Text("NULL", "dim") if row[at] is None else Text(escape(row[at] or "")) for at in shown))
    console = Console(file=stream, width=wide)
    # Captured, since rich pads each line with spaces.
    with console.capture() as printed:
        console.print(table)
    lines = [f"{line.rstrip()}\n" for line in printed.get().splitlines()]
    stream.writelines(lines[:_HEADER] if below else lines)
    for row, line in zip(rows, lines[_HEADER:], strict=True) if below else ():
        stream.write(line)
        for at in below:
            if (value := row[at]) is not None:
                stream.writelines(f"  {one}" for one in wrapped(f"{names[at]}: {escape(value)}", wide - 2))
    if out := [name for name in (*names[last:], *hidden) if name]:
        noun = "column" if len(out) == 1 else "columns"
        # An option must not be broken between its words: it is to be pasted.
        by = f" ({all_by})".replace(" ", _NO_BREAK)[1:] if all_by else ""
        text = f"… {len(out)} more {noun}: {', '.join(out)} {by}"
        stream.writelines(line.replace(_NO_BREAK, " ") for line in wrapped(text, wide))


def _widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return the width of each column without a break."""
    from rich.cells import cell_len

    return [
        max(cell_len(escape(text or "NULL")) for text in (column.name, *(row[at] for row in rows)))
        for at, column in enumerate(columns)
    ]


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> int:
    """Return the number of columns that fit, from the left, at least one; long texts wrap."""
    left = width + _GAP
    for at, (column, needed) in enumerate(zip(columns, widths, strict=True)):
        if column.kind != "number" and needed > _TEXT_AT_LEAST:
            needed = _LAST_AT_LEAST if left < _TEXT_AT_LEAST + _GAP else _TEXT_AT_LEAST
        if needed + _GAP > left and at:
            return at
        left -= needed + _GAP
    return len(columns)


def _below(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Return the columns whose values stand below their row: texts from the last on, until the others fit."""
    shown = list(range(len(columns)))
    while len(shown) > 1 and sum(widths[at] + _GAP for at in shown) - _GAP > width:
        texts = [at for at in shown[1:] if columns[at].kind != "number"]
        shown.remove(([at for at in texts if widths[at] > _LAST_AT_LEAST] or texts or shown)[-1])
    return [at for at in range(len(columns)) if at not in shown]


def width_of(stream: TextIO, width: int | None = None) -> int:
    """Return a given width, else that of the terminal, else 80."""
    return width or (shutil.get_terminal_size().columns if stream.isatty() else WIDTH)


def for_terminal(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Yield lines with line ends, wrapped if the stream is a terminal narrower than the line."""
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    for line in lines:
        lead = " " * (len(line) - len(line.lstrip(" ")) + 2)
        yield from wrapped(line, width if width and len(line) > width else None, indent=lead)


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
        # Spaces such as U+00A0 are harmless but not `printable`; these two separators break lines.
        or (letter.isspace() and letter > "\x9f" and letter not in "\u2028\u2029")
        or (keep_lines and letter == "\n")
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


SHARED = {"cluster": "cluster", "hour_utc": "hour"}
"""Columns that move above the table if all rows share one value, and their labels there."""
_ARROWS = {"desc": "↓", "asc": "↑"}
_DIRECTIONS = {"desc": "largest first", "asc": "smallest first"}
_AT_LEAST = 20
"""Minimum width of a value in lines, however long the column names are."""


def write_table(
    result: Result,
    stream: TextIO,
    *,
    width: int | None = None,
    limit: int | None = None,
    query: Query | None = None,
    all_by: str = "--format lines",
) -> None:
    """Write a result as a table; columns that do not fit are named below.

    Of columns that the named query chose, the last texts then stand below their row.

    Parameters
    ----------
    result
        The answer.
    stream
        Output.
    width
        Characters per line; by default those of the terminal.
    limit
        Maximum number of rows.
    query
        Named query that was run: its header chooses columns.
    all_by
        Option or attribute that shows all columns.
    """
    rows = list(result.take(None if result.is_plan else limit))
    if result.is_plan:
        stream.writelines(f"{escape(row[-1] or '', keep_lines=True).rstrip()}\n" for row in rows)
    else:
        _print_answer(result, rows, stream, width_of(stream, width), query, all_by)


def write_lines(result: Result, stream: TextIO, *, width: int | None = None, limit: int | None = None) -> None:
    """Write each row as a block of `column  value` lines; a long value wraps, aligned with its start."""
    columns, rows = for_reading(result.columns, result.units(), list(result.take(limit)))
    names = [escape(column.name) for column in columns]
    widest = max((len(name) for name in names), default=0)
    room = max(width_of(stream, width) - widest - 2, _AT_LEAST)
    for number, row in enumerate(rows, start=1):
        stream.write(f"── row {number} " + "─" * 20 + "\n")
        for name, value in zip(names, row, strict=True):
            first, *others = wrapped("NULL" if value is None else escape(value), room, indent="")
            stream.write(f"{name:<{widest}}  {first}".rstrip() + "\n")
            stream.writelines(f"{'':<{widest}}  {line}" for line in others)


def for_reading(
    columns: Sequence[Column], units: Sequence[str | None], rows: Sequence[Row]
) -> tuple[list[Column], list[Row]]:
    """Return columns with units in their headers, and rows with readable numbers, formatted alike within a column."""
    headed = [
        column._replace(name=column.name + header_unit(unit)) for column, unit in zip(columns, units, strict=True)
    ]
    values = [
        readable([row[at] for row in rows], unit, exact=column.type.lower() in INTEGERS)
        if column.kind == "number"
        else [row[at] for row in rows]
        for at, (column, unit) in enumerate(zip(columns, units, strict=True))
    ]
    return headed, list(zip(*values, strict=True))


def _print_answer(
    result: Result, rows: Sequence[Row], stream: TextIO, width: int, query: Query | None, all_by: str
) -> None:
    """Print the rows of a result; values that all rows share stand above the table."""
    names = [column.name for column in result.columns]
    columns, texts = for_reading(result.columns, result.units(), rows)
    shared = [name for name in SHARED if name in names and _is_same(rows, names.index(name))]
    above = [f"{SHARED[name]} {_shared(name, rows[0][names.index(name)])}" for name in shared]
    rest = [name for name in names if name not in shared]
    if not rest:
        rest, above = names, []
    answer = query.answer if query else ()
    shown = [name for name in answer if name in rest] or rest
    by, _, direction = (query.ranked if query else "").rpartition(" ")
    if by in shown:
        at = names.index(by)
        columns[at] = columns[at]._replace(name=f"{columns[at].name} {_ARROWS[direction]}")
    elif by:
        above.append(f"by {by}, {_DIRECTIONS[direction]}")
    if above and rows:
        stream.writelines(wrapped(" · ".join(above), width))
    places = [names.index(name) for name in shown]
    columns, texts = [columns[at] for at in places], [tuple(row[at] for at in places) for row in texts]
    hidden = [name for name in rest if name not in shown] if rows else []
    print_rows(columns, texts, stream, width=width, all_by=all_by, hidden=hidden, whole=bool(answer and rows))


def _is_same(rows: Sequence[Row], at: int) -> bool:
    values = {row[at] for row in rows}
    return len(values) == 1 and None not in values


def _shared(name: str, value: str | None) -> str:
    return f"{(value or '').removesuffix(':00')} UTC" if name == "hour_utc" else value or ""


_DIGITS = 3
"""Significant digits of a number with a unit."""
_PLAIN_DIGITS = 4
"""Significant digits of a number without a unit."""
_LEAST = Decimal("1e-4")
"""Smallest plain number without an exponent."""
_CLOCK = 120
"""Seconds above which a duration is shown in minutes, hours or days."""
_SCALES: dict[str, tuple[tuple[int, str], ...]] = {
    "B": ((0, "B"), (3, "kB"), (6, "MB"), (9, "GB"), (12, "TB"), (15, "PB"), (18, "EB")),
    "bit/s": ((0, "b/s"), (3, "kb/s"), (6, "Mb/s"), (9, "Gb/s"), (12, "Tb/s")),
    "s": ((-9, "ns"), (-6, "µs"), (-3, "ms"), (0, "s")),
    "W": ((0, "W"), (3, "kW"), (6, "MW")),
    "%": ((0, "%"),),
}
"""Unit names for powers of ten."""
_AS = {
    SHARE: ("%", Decimal(100)),
    "ms": ("s", Decimal("1e-3")),
    "us": ("s", Decimal("1e-6")),
    "ns": ("s", Decimal("1e-9")),
    "min": ("s", Decimal(60)),
    "h": ("s", Decimal(3600)),
    "GB": ("B", Decimal(10**9)),
}
"""Units that are shown as another unit, with the conversion factor."""
_CLOCKS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def readable(values: Sequence[str | None], unit: str | None, *, exact: bool = False) -> list[str | None]:
    """Return the numbers of a column for people.

    Parameters
    ----------
    values
        Exact numbers as text; None is NULL.
    unit
        Unit from `warehouse.reader.result`.
    exact
        Keep numbers without a unit unchanged: integers may be identifiers.

    >>> readable(["6665677503028", "119000000000", None], "B"), readable(["0.0394", "0.12"], "share")
    (['6.67 TB', '119 GB', None], ['3.9 %', '12.0 %'])
    >>> readable(["7980", "45.8"], "s"), readable(["5.768779759139165", "0.5"], None)
    (['2 h 13 min', '45.8 s'], ['5.769', '0.5000'])
    """
    if exact and (unit is None or header_unit(unit)):
        return list(values)
    unit, factor = _AS.get(unit or "", (unit, Decimal(1)))
    most = max((len(value.partition(".")[2]) for value in values if value), default=0)
    return [None if value is None else _cell(value, unit, factor, most) for value in values]


def header_unit(unit: str | None) -> str:
    """Return the unit for a header, or nothing if the cells have the unit.

    >>> header_unit("1/s"), header_unit("B")
    (' [1/s]', '')
    """
    return "" if unit in (None, COUNT) or unit in _SCALES or unit in _AS else f" [{unit}]"


def _cell(value: str, unit: str | None, factor: Decimal, most: int) -> str:
    number = Decimal(value) * factor
    if not number.is_finite():
        return value
    if unit == "s" and abs(number) >= _CLOCK:
        return _clock(number)
    return _scaled(number, _SCALES[unit]) if unit in _SCALES else _plain(number, most)


def _scaled(number: Decimal, scale: Sequence[tuple[int, str]]) -> str:
    """Format a number with three significant digits in the largest unit that it reaches; a small share with two."""
    if not number:
        return f"0 {scale[-1][1] if scale[0][0] < 0 else scale[0][1]}"
    rounded = abs(Decimal(f"{number:.{_DIGITS - 1}e}"))
    power, name = next(((p, n) for p, n in reversed(scale) if rounded >= Decimal(1).scaleb(p)), scale[0])
    before_point = rounded.adjusted() - power
    decimals = max(_DIGITS - 1 - before_point, 0)
    if name == "%":
        decimals = 1 if before_point >= 0 else 1 - before_point
    elif power == 0 and name != "s" and number == int(number):
        decimals = 0
    return f"{number.scaleb(-power):,.{decimals}f} {name}"


def _plain(number: Decimal, most: int) -> str:
    """Format a number without a unit: an integer unchanged, others with four digits, but not more than are known."""
    if number == number.to_integral_value():
        return f"{int(number):,}"
    if abs(number) < _LEAST:
        return f"{number:.{_PLAIN_DIGITS - 1}e}"
    return f"{number:,.{min(max(_PLAIN_DIGITS - 1 - number.adjusted(), 0), most or _PLAIN_DIGITS)}f}"


def _clock(seconds: Decimal) -> str:
    """Format a long duration in its two largest units.

    >>> _clock(Decimal(7980)), _clock(Decimal(3600)), _clock(Decimal(-200_000))
    ('2 h 13 min', '1 h', '-2 d 8 h')
    """
    sign, left = ("-" if seconds < 0 else ""), abs(seconds)
    for large, name, small, below in _CLOCKS:
        rounded = int((left / small).to_integral_value()) * small
        if rounded >= large:
            whole, rest = divmod(rounded, large)
            return f"{sign}{whole:,} {name} {rest // small} {below}" if rest else f"{sign}{whole:,} {name}"
    raise AssertionError(seconds)
