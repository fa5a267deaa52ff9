"""Rows of the hour tables: published columns as text, and typed columns that the models compute with.

Docs: docs/formats/hour_tables.md. Every published column keeps its text, so that a wrong guess of its type loses
nothing. This module is the definition of a valid row, and gives the reason why a row is invalid. `hour_scan` reads the
rows of the usual forms by SQL.
"""

from __future__ import annotations

import contextlib
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.base.startup import regex
from warehouse.formats.base import RawFile, Rejected
from warehouse.formats.zhejiang.hour_columns import LINE, OTHERS, HourColumn, HourTable, read_tables
from warehouse.formats.zhejiang.values import CHINA_SECONDS, parse_counter, parse_hour, parse_local_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from warehouse.formats.zhejiang.headers import Row
    from warehouse.formats.zhejiang.hour_header import HourHeader

HOUR = timedelta(hours=1)
MOST, MOST_BYTES = 10**15, 10**18
"""Upper bounds of counters; a larger value is damage, and sums over an hour would not fit 64 bits.

Bytes may be counted since the machine was started: the document's example is 1.8e16.
"""
TOLERANCE = timedelta(seconds=60)
"""Maximum distance of a row's time from the file's hour: the pollers' clocks and the folders disagree."""

TABLES = read_tables()
"""The four tables by name."""
VERSION = 2**33
"""Version of the readers, above the checksum of `data/hour_columns.csv` that is added to it."""

REPEATED = "repeats an earlier row"
"""Reason of a row that counts once."""
_YEAR_LAST = regex(r"([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]{4})(?=[T\s])(.*)")
"""Date with the month or the day first, and the rest of a time."""


@lru_cache(maxsize=1024)
def _time_of(written: str, ahead: int, hour: datetime) -> datetime:
    """Return a time as UTC. If the year is last, the hour of the file says if the month or the day is first."""
    found = _YEAR_LAST.fullmatch(written.strip())
    if found is None:
        return parse_local_time(written, ahead)
    one, mark, two, year, rest = found.groups()
    for month, day in ((one, two), (two, one)):
        with contextlib.suppress(ValueError):
            time = parse_local_time(f"{year}{mark}{month}{mark}{day}{rest}", ahead)
            if is_within(time, hour):
                return time
    raise ValueError(f"{written[:60]!r} is not a time of the hour, with the month or with the day first")


def bound(column: HourColumn) -> int:
    """Return the smallest value of a measure that is damage."""
    return MOST_BYTES if column.value == "bytes" else MOST


def typed_rows(
    table: HourTable,
    rows: Iterable[Row],
    file: RawFile,
    hour: datetime,
    reject: list[Rejected],
    header: HourHeader,
    sheet: str = "",
) -> Iterator[dict[str, object]]:
    """Yield each row with its typed columns; append bad rows to `reject`, with the sheet's name if there is one."""
    seen: set[int] = set()
    for row in rows:
        try:
            typed = _typed(table, row, hour, header)
            written = {column: row.values.get(column) for column in (*table.columns, OTHERS)}
            if has_identity(table, header):
                _note(seen, hash(tuple(written.values())))
        except ValueError as error:
            reason = f"{error} (sheet {sheet!r})" if sheet else str(error)
            reject.append(Rejected(file.release_path, row.number, reason, row.text))
        else:
            yield {**written, **typed, LINE: row.number, "filename": str(file.read_path)}


def _note(seen: set[int], row: int) -> None:
    if row in seen:
        raise ValueError(REPEATED)
    seen.add(row)


def has_identity(table: HourTable, header: HourHeader) -> bool:
    """Return True if equal rows are one row written twice: flows without queue pairs may be equal."""
    return all(c.name in header.positions for c in table.columns.values() if c.value == "queue_pair")


def _typed(table: HourTable, row: Row, hour: datetime, header: HourHeader) -> dict[str, object]:
    """Parse time and counters; a blank counter is NULL, not zero."""
    if row.problem:
        raise ValueError(row.problem)
    name = table.time.name
    try:
        time = _time_of(row.values[name] or "", header.factors.get(name, CHINA_SECONDS), hour)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not is_within(time, hour):
        raise ValueError(f"{name} is {time} UTC, not in the hour from {hour} UTC")
    for column in table.columns.values():
        if column.form and column.name in row.values:
            value = (row.values[column.name] or "").strip()
            if not re.fullmatch(column.form, value, re.ASCII) and not (column.may_be_blank and not value):
                raise ValueError(f"{column.name} is {value!r}" if value else f"{column.name} is blank")
    typed: dict[str, object] = {"time_utc": time}
    for column in table.measures:
        typed[column.typed] = _measure(column, row.values.get(column.name), header)
    return typed


def is_within(time: datetime, hour: datetime) -> bool:
    """Return True if a time is in the hour, within the tolerance."""
    return hour - TOLERANCE <= time <= hour + HOUR + TOLERANCE


def _measure(column: HourColumn, written: str | None, header: HourHeader) -> int | None:
    """Parse one counter; None if it is blank."""
    if written is None:
        return None
    try:
        factor = header.factors.get(column.name, 1)
        count = parse_counter(written.strip(), factor, has_decimal_commas=header.separator != ",")
    except ValueError as error:
        raise ValueError(f"{column.name}: {error}") from None
    if count < 0:
        raise ValueError(f"{column.name}: {written} is negative")
    if count >= bound(column):
        raise ValueError(f"{column.name}: {written} is beyond all bounds")
    return count


def hour_of(path: Path) -> datetime:
    """Parse the hour in the file name. Raise ValueError if the folder is named like another hour."""
    stated, folder = path.name[:10], path.parent.name
    if re.fullmatch(r"[0-9]{10}", folder) and folder != stated:
        raise ValueError(f"its name says hour {stated}, its folder {folder}")
    return parse_hour(stated)
