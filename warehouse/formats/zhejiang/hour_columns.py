"""Columns of the hour tables, the headers that are accepted, from `data/hour_columns.csv`, and the forms of times.

Docs: docs/formats/hour_tables.md. A project's own `data/hour_columns.csv` adds lines to the shipped ones.
"""

from __future__ import annotations

import csv
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import DataError, Place
from warehouse.base.settings import shipped_root
from warehouse.base.startup import regex
from warehouse.formats.zhejiang import ADDRESS, UTC_OFFSET

_PORT = (
    r"(?i:(?:[a-z-]*(?:GigE|Ethernet)|[0-9]{1,3}GE?|M-?GE|FH|TH|[a-z]+-(?:Aggregation|interface)|LoopBack)"
    r" *[0-9]{1,4}(?:/[0-9]{1,4}){0,3}(?::[0-9]{1,3})?)"
)
FORMS = {
    "server": rf"(?:.*GPU-\d{{1,6}}|{ADDRESS})",
    "switch": rf"(?:.*(ST-leaf|Leaf|spine)-\d{{1,4}}(\..*)?|{ADDRESS})",
    "address": ADDRESS,
    "queue_pair": r"\d{1,10}",
    "adapter": r"\S*[0-9]\S*",
    "switch_port": _PORT,
    "far_port": rf"(?:{_PORT}|[^/]*)",
}
"""Kind of value -> pattern of the whole value without blanks around it, for columns that identify a row.

The port at the other end of a link may be blank, or a name of another kind if a server is there.
"""
BOUNDS = {"bytes": 10**18, "count": 10**15, "duration": 10**15}
"""Kind of number -> smallest value that is damage: sums over an hour would not fit 64 bits."""
TIME = "time"
CHINA_SECONDS = UTC_OFFSET // timedelta(seconds=1)
UNITS = {TIME: ("UTC", 0), "bytes": ("KB", 1000), "duration": ("us", 1000)}
"""Kind of value -> a unit that a file may have, and its factor."""
Units = Mapping[str, Mapping[str, int]]
"""Kind of value -> unit in a header -> factor."""


class HourColumn(NamedTuple):
    """Column that the document names."""

    name: str
    value: str
    """Kind of value: time, server, count and so on."""
    required: str
    """`yes`, or the column that can take its place; empty for an optional column."""
    lacking: str
    """Consequence if a file has no such column."""


@dataclass
class HourTable:
    """Columns of one of the four tables."""

    name: str
    columns: dict[str, HourColumn] = field(default_factory=dict)
    spellings: dict[str, tuple[HourColumn, int]] = field(default_factory=dict)
    """Header, as written and folded -> column and factor; of a time, seconds ahead of UTC."""

    @property
    def time(self) -> str:
        """Column with the time of a row."""
        return next(column.name for column in self.columns.values() if column.value == TIME)

    def match(self, header: str) -> tuple[HourColumn, int] | None:
        """Return the column of a header, with its factor; None if no line of the CSV file accepts it."""
        found = self.spellings.get(header)
        if found is None and (found := self.spellings.get(folded(header))):
            column, factor = found
            if column.value == "bytes" and factor != 1 and header.rstrip(" )]}").endswith("b"):
                return None  # may be bits
        return found

    def accept(self, column: HourColumn, headers: Iterable[str], factor: int, units: Units) -> None:
        """Accept headers for a column, and each of them with a unit."""
        for header in headers:
            self.spellings |= {header: (column, factor), folded(header): (column, factor)}
            for unit, unit_factor in units[column.value].items():
                self.spellings.setdefault(folded(header + unit), (column, unit_factor))  # a line's own header wins

    def line(self, column: str, header: str, factor: int | None = None) -> str:
        """Return the line of the CSV file that accepts a header for a column."""
        shown = f'"{header}"' if "," in header else header
        return f"{self.name},{column},{shown},{'' if factor is None else factor}"


def folded(name: str) -> str:
    """Return a header without case, blanks and marks.

    >>> folded("Rtt (us)") == folded("rtt_us") == folded("RttUs")
    True
    """
    kept = (letter for letter in unicodedata.normalize("NFKC", name) if letter.isalnum() or letter == "+")
    return "".join(kept).casefold()


def read_tables(own: Sequence[Path] = ()) -> tuple[dict[str, HourTable], int]:
    """Return the four tables by name, in the order of the release's document, and a checksum of the CSV files.

    Raises
    ------
    DataError
        If an own file has a line of an unknown table or column.
    """
    lines: list[tuple[Place, dict[str, str]]] = []
    checksum = 0
    for path in (shipped_root() / "data" / "hour_columns.csv", *own):
        content = path.read_bytes()
        checksum = zlib.crc32(content, checksum)
        read = csv.DictReader(content.decode("utf-8-sig", "replace").splitlines())
        lines += ((Place(path, number), line) for number, line in enumerate(read, start=2))
    tables: dict[str, HourTable] = {}
    units: dict[str, dict[str, int]] = defaultdict(dict)
    for place, line in sorted(lines, key=lambda one: one[1].get("relation") != "*"):  # units first, in order
        try:
            headers, factor = line["headers"].split("|"), int(line["factor"] or 1)
            if line["relation"] == "*":
                units[line["published"]] |= dict.fromkeys(headers, factor)
                continue
            name = line["published"]
            if line.get("value"):
                table = tables.setdefault(line["relation"], HourTable(line["relation"]))
                table.columns[name] = HourColumn(name, line["value"], line["required"], line["lacking"])
            table = tables[line["relation"]]
            table.accept(table.columns[name], headers, factor, units)
        except (KeyError, ValueError, AttributeError) as error:
            raise DataError(
                f"{error} is no table, column or factor of the hour tables",
                place=place,
                hint="a line is relation,published,headers,factor, as in the shipped data/hour_columns.csv",
            ) from error
    return tables, checksum


# times: the tables are exports of exports, in which the same time is written in several ways

HOUR = timedelta(hours=1)
TOLERANCE = timedelta(seconds=60)
"""Maximum distance of a row's time from the file's hour: the pollers' clocks and the folders disagree."""
_TIME = regex(
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})[T\s]\s*"
    r"(?:(?:星期|周)[一二三四五六日天]\s*)?"
    r"(上午|下午|[AaPp][Mm])?\s*"
    r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{1,9}))?)?\s*"
    r"([AaPp][Mm])?\s*(Z|[+-][0-9]{2}(?::?[0-5][0-9])?)?"
)
"""Date, half of the day, hour, minute, second, fraction, half of the day, zone."""
_EPOCH = regex(r"[0-9]{10}(?:[.][0-9]{1,9})?|[0-9]{13}(?:[.]0*)?|[0-9]{16}(?:[.]0*)?|[0-9]{19}")
"""Seconds (with a fraction), milliseconds, microseconds or nanoseconds since 1970."""


def parse_hour_time(text: str, ahead: int, hour: datetime, *, needs_seconds: bool = False) -> datetime:
    """Parse a time of the hour tables as UTC.

    Raises
    ------
    ValueError
        If the text is no time of the hour; the message follows the text in a sentence.
    """
    time = parse_local_time(text, ahead)
    if not hour - TOLERANCE <= time <= hour + HOUR + TOLERANCE:
        raise ValueError(f"is {time} UTC, not in the hour from {hour} UTC")
    if needs_seconds and (clock := _TIME.fullmatch(text)) and clock[7] is None:
        raise ValueError("has no seconds, which counters of NICs need")
    return time


def parse_local_time(text: str, ahead: int = CHINA_SECONDS) -> datetime:
    """Parse a time as UTC; local times are UTC+8.

    The published examples write midnight both as 上午12 and as 上午00 (上午 is before noon, 下午 after noon).
    So these words, and AM and PM, are accepted before hours of 1..12, of 0..11 and of 0..23.

    Parameters
    ----------
    text
        Such as `2024/5/24 上午12:00:00`, `2024/05/24 星期五 00:00:00.914`, `2024-05-24T00:00:04`, `1716480004` (seconds
        since 1970, or milliseconds, or microseconds).
    ahead
        Seconds that a time without a zone is ahead of UTC.

    Returns
    -------
    datetime
        UTC, without zone; digits beyond microseconds are dropped.

    Raises
    ------
    ValueError
        If the text is not a time; the message follows the text in a sentence.

    Examples
    --------
    >>> parse_local_time("2024/5/24 上午12:00:00")
    datetime.datetime(2024, 5, 23, 16, 0)
    >>> parse_local_time("2024/5/24 下午1:30:00")
    datetime.datetime(2024, 5, 24, 5, 30)
    >>> parse_local_time("1716480004.5")
    datetime.datetime(2024, 5, 23, 16, 0, 4, 500000)
    """
    written = text.strip()
    if _EPOCH.fullmatch(written):
        micros = int(Decimal(written).scaleb(16 - len(written.partition(".")[0])))  # seconds have 10 digits
        return datetime(1970, 1, 1) + timedelta(microseconds=micros)  # noqa: DTZ001 - UTC without zone
    found = _TIME.fullmatch(written)
    if found is None:
        raise ValueError("is not a time")
    year, month, day, half, hour, minute, second, fraction, half_after, zone = found.groups()
    try:
        whole = datetime(int(year), int(month), int(day), _hour(int(hour), half or half_after), int(minute))  # noqa: DTZ001
        micros = int((fraction or "").ljust(6, "0")[:6])
        zoned = datetime.fromisoformat(f"2000-01-01T00:00{zone}").utcoffset() if zone else None
        offset = timedelta(seconds=ahead) if zoned is None else zoned
        return whole + timedelta(seconds=int(second or 0), microseconds=micros) - offset
    except (ValueError, OverflowError):
        raise ValueError("is not a time that exists") from None


def _hour(hour: int, half: str | None) -> int:
    """Return the hour in 24-hour form. Raise ValueError for an hour above 12 that is marked as before noon."""
    if half and (half == "上午" or half.upper() == "AM"):
        if hour > 12:
            raise ValueError
        return hour % 12
    if half and hour < 12:
        return hour + 12
    return hour
