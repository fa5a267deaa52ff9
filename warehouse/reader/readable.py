"""Readable numbers: `6.67 TB`, `12.3 Gb/s`, `3.9 %`, `2 h 13 min`. Each number has its own unit and digits.

Exact values are in csv, json, jsonl, markdown and Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from warehouse.reader.units import COUNT, SHARE

_DIGITS = 3
"""Significant digits of a number with a unit."""
_PLAIN_DIGITS = 4
"""Significant digits of a number without a unit."""
_GROUPED = 1000
"""Smallest number with thousands separators."""
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
        Unit from `warehouse.reader.units`.
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
    try:
        number = Decimal(value) * factor
    except InvalidOperation:
        return value
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
        return f"{int(number):,}" if abs(number) >= _GROUPED else str(int(number))
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
