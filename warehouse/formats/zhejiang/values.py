"""Parsers of the times in the hour tables, and patterns of names.

Docs: docs/formats/hour_tables.md. The tables are exports of exports, in which the same time is written in several ways.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

from warehouse.base.startup import regex

CHINA_SECONDS = 8 * 3600
"""Seconds that China Standard Time, the zone of the release's clocks and names, is ahead of UTC, all year."""
HOUR = timedelta(hours=1)
TOLERANCE = timedelta(seconds=60)
"""Maximum distance of a row's time from the file's hour: the pollers' clocks and the folders disagree."""

PORT_NAME = r"(?:TwoHundredGigE|FourHundredGigE|M-GigabitEthernet)\d{1,3}/\d{1,3}/\d{1,3}(?::\d{1,3})?"
"""Full names of the ports whose class and line rate the models know."""

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = rf"(?:{OCTET}[.]){{3}}{OCTET}"
"""IPv4 address."""

_TIME = regex(
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})[T\s]\s*"
    r"(?:(?:星期|周)[一二三四五六日天]\s*)?"
    r"(上午|下午|[AaPp][Mm])?\s*"
    r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{1,9}))?)?\s*"
    r"([AaPp][Mm])?\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
"""Date, half of the day, hour, minute, second, fraction, half of the day, zone."""
_EPOCH = regex(r"([0-9]{10})(?:[.]([0-9]{1,9}))?|([0-9]{13})(?:[.]0*)?|([0-9]{16})(?:[.]0*)?|([0-9]{16})[0-9]{3}")
"""Seconds (with a fraction), milliseconds, microseconds or nanoseconds since 1970."""
_YEAR_LAST = regex(r"([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]{4})(?=[T\s])(.*)")
"""Date with the month or the day first, and the rest of a time."""
_HOUR = regex(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})")


def parse_hour_time(text: str, ahead: int, hour: datetime, *, needs_seconds: bool = False) -> datetime:
    """Parse a time of the hour tables as UTC. If the year is last, the hour says if the month or the day is first.

    Raises
    ------
    ValueError
        If the text is no time of the hour; the message follows the text in a sentence.
    """
    found = _YEAR_LAST.fullmatch(text)
    orders = ((found[1], found[3]), (found[3], found[1])) if found else ()
    written = [f"{found[4]}{found[2]}{month}{found[2]}{day}{found[5]}" for month, day in orders if found] or [text]
    times = []
    for one in written:
        with contextlib.suppress(ValueError):
            times.append(parse_local_time(one, ahead))
    if not times:
        raise ValueError("is not a time")
    time = next((one for one in times if hour - TOLERANCE <= one <= hour + HOUR + TOLERANCE), None)
    if time is None:
        raise ValueError(f"is {times[0]} UTC, not in the hour from {hour} UTC")
    if needs_seconds and (clock := _TIME.fullmatch(written[0])) and clock[7] is None:
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
        If the text is not a time; the message is one sentence.

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
    if found := _EPOCH.fullmatch(written):
        seconds, fraction, millis, micros, longer = found.groups()
        micro = int(micros or longer or 0) + int(millis or 0) * 1000 + int(seconds or 0) * 10**6 + _micros(fraction)
        return datetime(1970, 1, 1) + timedelta(microseconds=micro)  # noqa: DTZ001 - UTC without zone
    found = _TIME.fullmatch(written)
    if found is None:
        raise ValueError(f"{written[:60]!r} is not a time")
    year, month, day, half, hour, minute, second, fraction, half_after, zone = found.groups()
    try:
        whole = datetime(int(year), int(month), int(day), _hour(int(hour), half or half_after), int(minute))  # noqa: DTZ001
        offset = _zone(zone) if zone else timedelta(seconds=ahead)
        return whole + timedelta(seconds=int(second or 0), microseconds=_micros(fraction)) - offset
    except (ValueError, OverflowError):
        raise ValueError(f"{written[:60]!r} is not a time that exists") from None


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
    if half and (half == "上午" or half.upper() == "AM"):
        if hour > 12:
            raise ValueError
        return hour % 12
    if half and hour < 12:
        return hour + 12
    return hour


def _micros(fraction: str | None) -> int:
    """Return the digits after the decimal point as microseconds."""
    return int((fraction or "0").ljust(6, "0")[:6])


def _zone(text: str) -> timedelta:
    """Return the offset of a zone from UTC."""
    offset = datetime.strptime(text if len(text) != 3 else f"{text}00", "%z").utcoffset()  # %z refuses +08
    assert offset is not None
    return offset
