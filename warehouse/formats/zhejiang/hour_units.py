"""Checks that the first rows of an hour table are in the units that its header states.

A file in other units gives wrong numbers without an error. So a file whose first values cannot be in the stated unit is
not read, and the reason names the column.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from warehouse.base.startup import regex
from warehouse.formats.zhejiang.hour_columns import HourColumn, HourTable
from warehouse.formats.zhejiang.hour_header import HourHeader
from warehouse.formats.zhejiang.values import lacks_seconds, parse_counter

Rows = Sequence[Mapping[str, str | None]]

LEAST_NS, MOST_NS = 200, 10**9
"""Bounds of the median round-trip time. One switch and its cables take longer than 200 ns, and no queue lasts 1 s."""
MINUTE = 60
BUSY = 100_000
"""Least speed that is compared, in bytes a second: on an idle port, a few packets decide."""
MOST_RATIO = 4
"""Largest ratio of a minute's bytes to its mean speed times 60 s, or the reverse; the document's example has 0.99,
and bits would be 8."""


FEW = 10
"""Number of values below which a bad one may be damage of its row."""
_FRACTION, _WHOLE = regex(r"[0-9]+[.][0-9]*[1-9][0-9]*"), regex(r"[0-9]+[.]0*")


def check_units(table: HourTable, header: HourHeader, rows: Rows) -> None:
    """Raise ValueError if the first rows contradict a unit."""
    times = [value for row in rows if (value := row.get(table.time.name))]
    if table.name == "nic" and times and all(map(lacks_seconds, times)):
        raise ValueError(f"column {table.time.name}: {times[0]} has no seconds, which counters of NICs need")
    for column in table.measures:
        _check_form(column, header, [value for row in rows if (value := row.get(column.name))])
    for column in table.measures:
        if column.value == "duration":
            values = [value for value in _values(rows, column, header) if value]
            middle = statistics.median(values) if values else LEAST_NS
            if not LEAST_NS <= middle <= MOST_NS:
                raise ValueError(
                    f"column {column.name}: the median of the first rows is {middle:g} ns, which is no round-trip time:"
                    f" state the unit in the name, as {column.name} (us)"
                )
    if table.name == "port":
        for direction in ("In", "Out"):
            _check_minute(table, header, rows, direction)


def _check_form(column: HourColumn, header: HourHeader, written: Sequence[str]) -> None:
    """Refuse a column if most of its numbers are unreadable, or have fractions: the few others would be wrong, too."""
    if len(written) < FEW:
        return
    bad = [text for text in written if _number(text, column, header) is None]
    fractions = [text for text in bad if _FRACTION.fullmatch(text.strip())]
    whole = sum(1 for text in written if _WHOLE.fullmatch(text.strip()))
    if len(bad) * 2 > len(written) or (len(fractions) > whole and len(fractions) * 100 > len(written)):
        example = (fractions or bad)[0].strip()[:60]
        raise ValueError(
            f"column {column.name}: {len(bad)} of the first {len(written)} values are no whole numbers, as {example!r}:"
            " state the unit in the name, and write numbers without a separator"
        )


def _check_minute(table: HourTable, header: HourHeader, rows: Rows, direction: str) -> None:
    """Compare the bytes of a minute with its mean speed in bytes a second."""
    moved, speed = table.columns[f"{direction}Bytes"], table.columns[f"{direction}Speed"]
    if speed.name in header.stated:
        return
    pairs = zip(_values(rows, moved, header), _values(rows, speed, header), strict=True)
    ratios = [amount / (rate * MINUTE) for amount, rate in pairs if amount and rate and rate >= BUSY]
    if ratios and not 1 / MOST_RATIO <= statistics.median(ratios) <= MOST_RATIO:
        raise ValueError(
            f"columns {moved.name} and {speed.name}: the bytes of a minute are {statistics.median(ratios):.3g} times"
            f" 60 s at the speed, in bytes a second: state the unit in the name, as {moved.name} (B)"
        )


def _values(rows: Rows, column: HourColumn, header: HourHeader) -> list[int | None]:
    """Return the values of the first rows; None where there is no number."""
    return [_number(row.get(column.name) or "", column, header) for row in rows]


def _number(text: str, column: HourColumn, header: HourHeader) -> int | None:
    try:
        return parse_counter(text, header.factors.get(column.name, 1), has_decimal_commas=header.separator != ",")
    except ValueError:
        return None
