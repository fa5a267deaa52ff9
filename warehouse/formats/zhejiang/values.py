"""Exact parsers for the times and counters of the hour tables.

Docs: docs/formats/hour_tables.md. The tables are exports of exports. The same time is written in four ways, and a byte
count as a floating-point number. Both are parsed from their text, never by way of a float.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal

from warehouse.base.startup import regex

CHINA = timezone(timedelta(hours=8))
"""China Standard Time, the zone of the release's clocks and names; it has no daylight saving time."""

BIGINT_MAX = 2**63 - 1

PORT_NAME = r"(?:TwoHundredGigE|FourHundredGigE|M-GigabitEthernet)\d{1,3}/\d{1,3}/\d{1,3}(?::\d{1,3})?"
"""Full names of the ports whose class and line rate the models know."""

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = rf"(?:{OCTET}[.]){{3}}{OCTET}"
"""IPv4 address."""

_TIME = regex(
    r"""
    (?P<year>[0-9]{4}) (?P<mark>[-/]) (?P<month>[0-9]{1,2}) (?P=mark) (?P<day>[0-9]{1,2})
    (?: [T\s] \s* )
    (?: (?:星期|周)[一二三四五六日天] \s* )?
    (?P<half>上午|下午)? \s*
    (?P<hour>[0-9]{1,2}) : (?P<minute>[0-9]{2}) (?: : (?P<second>[0-9]{2}) (?:[.](?P<fraction>[0-9]{1,9}))? )?
    (?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?
    """,
    re.VERBOSE,
)
_HOUR = regex(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})")
_NUMBER = regex(r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?")


def parse_local_time(text: str | datetime) -> datetime:
    """Parse a time of the hour tables as UTC; local times are UTC+8.

    The published examples write midnight both as 上午12 and as 上午00 (上午 is before noon, 下午 after noon).
    So these words are accepted before hours of 1..12, of 0..11 and of 0..23.

    Parameters
    ----------
    text
        Such as `2024/5/24 上午12:00:00`, `2024/05/24 星期五 00:00:00.914`, `2024-05-24T00:00:04`, or the
        datetime of a workbook's cell. A time without a zone is local time.

    Returns
    -------
    datetime
        UTC, without zone; digits beyond microseconds are dropped.

    Raises
    ------
    ValueError
        If the text is not a time; the message is one sentence.

    Examples
    --------
    >>> parse_local_time("2024/5/24 上午12:00:00")
    datetime.datetime(2024, 5, 23, 16, 0)
    >>> parse_local_time("2024/5/24 下午1:30:00")
    datetime.datetime(2024, 5, 24, 5, 30)
    """
    written = text.isoformat(sep=" ") if isinstance(text, datetime) else text.strip()
    found = _TIME.fullmatch(written)
    if found is None:
        raise ValueError(f"{written[:60]!r} is not a time")
    try:
        local = datetime(
            int(found["year"]),
            int(found["month"]),
            int(found["day"]),
            _hour(int(found["hour"]), found["half"]),
            int(found["minute"]),
            int(found["second"] or 0),
            int((found["fraction"] or "0").ljust(6, "0")[:6]),
            tzinfo=_zone(found["zone"]) if found["zone"] else CHINA,
        )
        return local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError(f"{written[:60]!r} is not a time that exists") from None


def parse_counter(text: str) -> int:
    """Parse a counter exactly, even if it is written as a floating-point number.

    Raises
    ------
    ValueError
        If the text is not a number, not a whole number, or does not fit a BIGINT; the message is one
        sentence. Thousands separators are rejected, since a comma may also be a decimal mark.

    Examples
    --------
    >>> parse_counter("1.826184052268872e+16"), parse_counter("12.0")
    (18261840522688720, 12)
    """
    written = text.strip()
    if len(written) <= 18 and written.isascii() and written.isdigit():
        return int(written)  # fast path: nearly all counters
    if not _NUMBER.fullmatch(written):
        raise ValueError(f"{written[:60]!r} is not a number")
    value = Decimal(written)
    if value and value.adjusted() > 18:
        raise ValueError(f"{written[:60]} does not fit 64 bits")
    if value != value.to_integral_value():
        raise ValueError(f"{written[:60]} is not a whole number")
    count = int(value)
    if not -BIGINT_MAX - 1 <= count <= BIGINT_MAX:
        raise ValueError(f"{written[:60]} does not fit 64 bits")
    return count


def parse_hour(name: str) -> datetime:
    """Parse a local hour, `YYYYMMDDHH`, such as a folder's name, as UTC.

    Raises
    ------
    ValueError
        If there is no such hour.

    Examples
    --------
    >>> parse_hour("2024052400")
    datetime.datetime(2024, 5, 23, 16, 0)
    """
    found = _HOUR.fullmatch(name)
    if found is None:
        raise ValueError(f"{name[:60]!r} is not an hour, YYYYMMDDHH")
    return parse_local_time("{}-{}-{} {}:00".format(*found.groups()))


def _hour(hour: int, half: str | None) -> int:
    """Return the hour in 24-hour form. Raise ValueError for an hour above 12 that is marked as before noon."""
    if half == "上午":
        if hour > 12:
            raise ValueError
        return hour % 12
    if half == "下午" and hour < 12:
        return hour + 12
    return hour


def _zone(text: str) -> tzinfo | None:
    return datetime.strptime(text, "%z").tzinfo
