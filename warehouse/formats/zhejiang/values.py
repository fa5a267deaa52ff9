"""Exact parsers for the times and counters of the hour tables.

Docs: docs/formats/hour_tables.md. The tables are exports of exports. The same time is written in four ways, and a byte
count as a floating-point number. Both are parsed from their text, never by way of a float.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from warehouse.base.startup import regex

CHINA_SECONDS = 8 * 3600
"""Seconds that China Standard Time, the zone of the release's clocks and names, is ahead of UTC, all year."""

BIGINT_MAX = 2**63 - 1

PORT_NAME = r"(?:TwoHundredGigE|FourHundredGigE|M-GigabitEthernet)\d{1,3}/\d{1,3}/\d{1,3}(?::\d{1,3})?"
"""Full names of the ports whose class and line rate the models know."""

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = rf"(?:{OCTET}[.]){{3}}{OCTET}"
"""IPv4 address."""

TIME_PATTERN = (
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})[T\s]\s*"
    r"(?:(?:星期|周)[一二三四五六日天]\s*)?"
    r"(上午|下午|[AaPp][Mm])?\s*"
    r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9])(?:[.]([0-9]{1,9}))?)?\s*"
    r"([AaPp][Mm])?\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
"""Date, half of the day, hour, minute, second, fraction, half of the day, zone. Also a pattern of DuckDB."""
TIME_PARTS = ("year", "month", "day", "half", "hour", "minute", "second", "fraction", "half_after", "zone")
EPOCH_PATTERN = r"([0-9]{10})(?:[.]([0-9]{1,9}))?|([0-9]{13})(?:[.]0*)?|([0-9]{16})(?:[.]0*)?|([0-9]{16})[0-9]{3}"
"""Seconds (with a fraction), milliseconds, microseconds or nanoseconds since 1970."""
BLANKS = frozenset(("", "-", "--", "na", "n/a", "nan", "null", "none", "nil", "\\n"))
"""Texts for no value, without blanks around and in lower case."""
GROUPED_PATTERN = r"[1-9][0-9]{0,2}(?:[, '’_\x{a0}\x{202f}][0-9]{3})+(?:[.]0*)?"
"""Number with a separator of thousands, as DuckDB writes the pattern."""

_TIME = regex(TIME_PATTERN)
_EPOCH = regex(EPOCH_PATTERN)
_GROUPED = regex(GROUPED_PATTERN.replace(r"\x{a0}", "\xa0").replace(r"\x{202f}", "\u202f"))
_SEPARATORS = str.maketrans("", "", ", '’_\xa0\u202f")
_HOUR = regex(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})")
_NUMBER = regex(r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?")


def parse_local_time(text: str | datetime, ahead: int = CHINA_SECONDS) -> datetime:
    """Parse a time of the hour tables as UTC; local times are UTC+8.

    The published examples write midnight both as 上午12 and as 上午00 (上午 is before noon, 下午 after noon).
    So these words, and AM and PM, are accepted before hours of 1..12, of 0..11 and of 0..23.

    Parameters
    ----------
    text
        Such as `2024/5/24 上午12:00:00`, `2024/05/24 星期五 00:00:00.914`, `2024-05-24T00:00:04`, `1716480004` (seconds
        since 1970, or milliseconds, or microseconds), or the datetime of a workbook's cell.
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
    written = text.isoformat(sep=" ") if isinstance(text, datetime) else text.strip()
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


def lacks_seconds(text: str) -> bool:
    """Return True if a text is a time of day to the minute."""
    found = _TIME.fullmatch(text.strip())
    return found is not None and found[TIME_PARTS.index("second") + 1] is None


def is_blank(text: str) -> bool:
    """Return True if a text says that there is no value."""
    return text.strip().lower() in BLANKS


def parse_counter(text: str, factor: int = 1, *, has_decimal_commas: bool = False) -> int:
    """Parse a counter exactly, even if it is written as a floating-point number.

    Parameters
    ----------
    text
        The number. Thousands may be separated by a comma, blank, apostrophe or underscore.
    factor
        Factor to the unit of the result. Only a number in a larger unit may have a fraction; it is rounded.
    has_decimal_commas
        True if a single comma may be a decimal mark, as in files whose separator is not the comma.

    Raises
    ------
    ValueError
        If the text is not a number, not a whole number, does not fit a BIGINT, or has a comma that may be a decimal
        mark; the message is one sentence.

    Examples
    --------
    >>> parse_counter("1.826184052268872e+16"), parse_counter("12.0"), parse_counter("5.887", 1000)
    (18261840522688720, 12, 5887)
    """
    written = text.strip()
    if len(written) <= 18 and factor == 1 and written.isascii() and written.isdigit():
        return int(written)  # fast path: nearly all counters
    if _GROUPED.fullmatch(written):
        if (factor != 1 or has_decimal_commas) and written.count(",") == 1:
            raise ValueError(f"{written[:60]!r} may be a fraction or thousands")
        written = written.translate(_SEPARATORS)
    if not _NUMBER.fullmatch(written):
        raise ValueError(f"{written[:60]!r} is not a number")
    value = Decimal(written)
    if value and value.adjusted() > 18:
        raise ValueError(f"{written[:60]} does not fit 64 bits")
    value *= factor
    if factor == 1 and value != value.to_integral_value():
        raise ValueError(f"{written[:60]} is not a whole number")
    count = int(value.to_integral_value(ROUND_HALF_UP))
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
    offset = datetime.strptime(text if len(text) != 3 else f"{text}00", "%z").utcoffset()
    assert offset is not None
    return offset
