"""Checks that the first rows of an hour table are in the units that its header states.

A file in other units gives wrong numbers without an error. So a file whose first values cannot be in the stated unit is
not read, and the reason names the column.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from warehouse.formats.zhejiang.hour_columns import HourColumn, HourTable
from warehouse.formats.zhejiang.hour_header import HourHeader
from warehouse.formats.zhejiang.values import parse_counter

Rows = Sequence[Mapping[str, str | None]]

LEAST_NS, MOST_NS = 200, 10**9
"""Bounds of the median round-trip time. One switch and its cables take longer than 200 ns, and no queue lasts 1 s."""
MINUTE = 60
BUSY = 100_000
"""Least speed that is compared, in bytes a second: on an idle port, a few packets decide."""
MOST_RATIO = 4
"""Largest ratio of a minute's bytes to its mean speed times 60 s, or the reverse; the document's example has 0.99,
and bits would be 8."""


def check_units(table: HourTable, header: HourHeader, rows: Rows) -> None:
    """Raise ValueError if the first rows contradict a unit."""
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
    found: list[int | None] = []
    for row in rows:
        try:
            found.append(
                parse_counter(
                    row.get(column.name) or "",
                    header.factors.get(column.name, 1),
                    has_decimal_commas=header.separator != ",",
                )
            )
        except ValueError:
            found.append(None)
    return found
