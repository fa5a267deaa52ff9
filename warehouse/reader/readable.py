"""Readable numbers: `6.67 TB`, `12.3 Gb/s`, `3.9 %`, `2 h 13 min`, with aligned decimal points.

Exact values are in csv, json, jsonl, markdown and Parquet, and in a table with `--raw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from warehouse.reader.units import COUNT, SHARE

_DIGITS = 3
"""Significant digits of the largest number with a unit."""
_PLAIN_DIGITS = 4
"""Significant digits of the largest number without a unit, and of any number that neighbors must differ from."""
_JOINT = 100
"""Ratio of largest to smallest plain number up to which all have equal decimals."""
_GROUPED = 1000
"""Smallest number with thousands separators."""
_SPAN = 1000
"""Ratio of largest to smallest number above which each number has a unit of its own."""
_SHARE_SPAN = 10_000
"""The same for shares, which have one unit: above it, each has decimals of its own."""
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


class _Cell(NamedTuple):
    """Number in pieces, which are aligned with those of the other rows."""

    whole: str
    decimals: str = ""
    unit: str = ""
    apart: bool = False
    """True for text such as `2 h 13 min`: it is aligned right, not at a decimal point."""


def readable(
    values: Sequence[str | None], unit: str | None, *, exact: bool = False, distinct: bool = False
) -> list[str | None]:
    """Return the values of one column for people, padded so that decimal points are aligned.

    Parameters
    ----------
    values
        Exact numbers as text; None is NULL.
    unit
        Unit from `warehouse.reader.units`.
    exact
        Keep numbers without a unit unchanged: integers may be identifiers.
    distinct
        Write up to four significant digits where neighbors with different values would have one text.

    >>> readable(["6665677503028", "3010000000000", None], "B")
    ['6.67 TB', '3.01 TB', None]
    >>> readable(["0.0394", "0.12"], "share")
    [' 3.9 %', '12.0 %']
    >>> readable(["7980", "45.8"], "s")
    ['2 h 13 min', '    45.8 s']
    >>> readable(["5.768779759139165", "12.5"], None)
    [' 5.77', '12.50']
    >>> readable(["0.0394", "0.0393"], "share", distinct=True)
    ['3.94 %', '3.93 %']
    """
    cells = _cells(values, unit, exact=exact)
    for more in (1, 2) if distinct else ():
        if not _hides_a_difference(values, cells):
            break
        cells = _cells(values, unit, exact=exact, more=more)
    forms = {(cell.unit, len(cell.decimals)) for cell in cells if cell and not cell.apart}
    if len(forms) > 1 and any(unit for unit, _ in forms):  # TB and MB have no common decimal place
        cells = [cell and _Cell(f"{cell.whole}{cell.decimals}{cell.unit}", apart=True) for cell in cells]
    aligned = [cell for cell in cells if cell and not cell.apart]
    pieces = [(cell.whole, cell.decimals, cell.unit) for cell in aligned]
    wholes, decimals, units = (max(map(len, column)) for column in zip(*pieces, strict=True)) if pieces else (0, 0, 0)
    texts = [
        None
        if cell is None
        else cell.whole
        if cell.apart
        else f"{cell.whole:>{wholes}}{cell.decimals:<{decimals}}{cell.unit:<{units}}"
        for cell in cells
    ]
    width = max((len(text) for text in texts if text), default=0)
    return [None if text is None else text.rjust(width) for text in texts]


def _hides_a_difference(values: Sequence[str | None], cells: Sequence[_Cell | None]) -> bool:
    """Return True if two neighbors have different values and the same text."""
    pairs = zip(zip(values, cells, strict=True), zip(values[1:], cells[1:], strict=True), strict=False)
    return any(one != other and text == other_text for (one, text), (other, other_text) in pairs)


def header_unit(unit: str | None) -> str:
    """Return the unit for a header, or nothing if the cells have the unit.

    >>> header_unit("1/s"), header_unit("B")
    (' [1/s]', '')
    """
    return "" if unit in (None, COUNT) or unit in _SCALES or unit in _AS else f" [{unit}]"


def _cells(values: Sequence[str | None], unit: str | None, *, exact: bool, more: int = 0) -> list[_Cell | None]:
    numbers = [None if value is None else _number(value) for value in values]
    unit, factor = _AS.get(unit or "", (unit, Decimal(1)))
    known = [number * factor for number in numbers if number is not None]
    if unit == "s":  # longer durations are shown in hours and minutes
        known = [number for number in known if abs(number) < _CLOCK]
    largest = max(map(abs, known), default=Decimal(0))
    smallest = min((abs(number) for number in known if number), default=largest)
    is_near = smallest * (_SHARE_SPAN if unit == "%" else _SPAN) >= largest
    is_joint = smallest * _JOINT >= largest and smallest >= _LEAST and not any(map(_is_count, known))
    joint = _joint_decimals(known, largest) if is_joint else None
    cells: list[_Cell | None] = []
    for value, number in zip(values, numbers, strict=True):
        if value is None or number is None:  # NULL, or not a finite number: inf, nan
            cells.append(None if value is None else _Cell(value, apart=True))
        elif unit == "s" and abs(number * factor) >= _CLOCK:
            cells.append(_clock(number * factor))
        elif unit in _SCALES:
            shown = number * factor
            ends = (smallest, largest) if is_near else (abs(shown), abs(shown))
            cells.append(_scaled(shown, _SCALES[unit], *ends, more=more))
        elif unit == COUNT or not exact:
            cells.append(_plain(number, joint))
        else:
            cells.append(_Cell(value))
    return cells


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_count(number: Decimal) -> bool:
    """Return True for a number such as 655, which is a count beside numbers with decimals."""
    return abs(number) >= _JOINT and number == number.to_integral_value()


def _joint_decimals(numbers: Sequence[Decimal], largest: Decimal) -> int:
    """Return the decimals that all plain numbers of a column need: four significant digits of the largest, no more.

    >>> _joint_decimals([Decimal("2.5"), Decimal("0.75")], Decimal("2.5"))
    2
    """
    most = max(_PLAIN_DIGITS - 1 - max(largest.adjusted(), 0 if largest >= 1 else largest.adjusted()), 0)
    rounded = [format(number, f".{most}f").rstrip("0").partition(".")[2] for number in numbers] if most else []
    return max(map(len, rounded), default=0)


def _scaled(
    number: Decimal, scale: Sequence[tuple[int, str]], smallest: Decimal, largest: Decimal, *, more: int = 0
) -> _Cell:
    """Format a number with its unit, in the power of ten that suits the largest number of its column.

    The largest number has three significant digits, or four if the smallest would have only one. `more` adds decimals,
    up to four significant digits of the largest number.
    """
    if not number and scale[0][0] == 0 and scale[0][1] not in ("s", "%"):
        return _Cell("0", unit=f" {scale[0][1]}")
    if not largest:
        return _Cell("0", unit=f" {scale[0][1] if scale[0][0] >= 0 else scale[-1][1]}")
    rounded = Decimal(f"{largest:.{_DIGITS - 1}e}")
    power, name = next(((p, n) for p, n in reversed(scale) if rounded >= Decimal(1).scaleb(p)), scale[0])
    shown = rounded.scaleb(-power)
    decimals = max(_DIGITS - 1 - max(shown.adjusted(), 0), 0)
    if name == "%":
        decimals = 1 if shown >= 1 else 1 - shown.adjusted()
        if shown >= 1 and -smallest.adjusted() > decimals:
            decimals = max(_PLAIN_DIGITS - 1 - shown.adjusted(), decimals)
    elif 1 - smallest.scaleb(-power).adjusted() > decimals:
        decimals = max(_PLAIN_DIGITS - 1 - max(shown.adjusted(), 0), 0)
    if more:
        decimals = max(min(decimals + more, _PLAIN_DIGITS - 1 - shown.adjusted()), decimals)
    if name == "s" and decimals == 0 and number != int(number):
        decimals = 1
    if power == 0 and name in ("B", "b/s", "W") and number == int(number):
        decimals = 0
    text = f"{number.scaleb(-power):,.{decimals}f}"
    return _pieces(text if text.strip("-0.") else text.removeprefix("-"), f" {name}")


def _plain(number: Decimal, joint: int | None = None) -> _Cell:
    """Format a number without a unit: with the decimals of its column, else integers unchanged and four digits."""
    if joint and abs(number) < _GROUPED * 10:
        return _pieces(f"{number:,.{joint}f}", "")
    if number == number.to_integral_value():
        return _Cell(f"{int(number):,}" if abs(number) >= _GROUPED else str(int(number)))
    decimals = _PLAIN_DIGITS - 1 - number.adjusted()
    if abs(number) < _LEAST:
        return _Cell(f"{number:.{_PLAIN_DIGITS - 1}e}".lower(), apart=True)
    text = f"{number:,.{max(decimals, 0)}f}"
    return _pieces(text.rstrip("0").rstrip(".") if "." in text else text, "")


def _pieces(text: str, unit: str) -> _Cell:
    whole, point, rest = text.partition(".")
    return _Cell(whole, point + rest, unit)


def _clock(seconds: Decimal) -> _Cell:
    """Format a long duration in its two largest units.

    >>> _clock(Decimal(7980)).whole, _clock(Decimal(3600)).whole, _clock(Decimal(200_000)).whole
    ('2 h 13 min', '1 h', '2 d 8 h')
    """
    sign, left = ("-" if seconds < 0 else ""), abs(seconds)
    for large, name, small, below in _CLOCKS:
        rounded = int((left / small).to_integral_value()) * small
        if rounded >= large:
            whole, rest = divmod(rounded, large)
            text = f"{sign}{whole:,} {name} {rest // small} {below}" if rest else f"{sign}{whole:,} {name}"
            return _Cell(text, apart=True)
    raise AssertionError(seconds)
