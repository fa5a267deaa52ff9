"""Times of a sample, in UTC and in the release's local time. They count from the start of the first hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

FIRST = datetime(2024, 5, 24, tzinfo=timezone(timedelta(hours=8)))
"""Start of the first hour, in local time."""
START_MS = int(FIRST.timestamp()) * 1000
"""The same in milliseconds since 1970, UTC."""
_WEEKDAYS = "一二三四五六日"


def hour_folder(hour: int) -> str:
    """Return the name of the hour's folder, which is local time."""
    return f"{FIRST + timedelta(hours=hour):%Y%m%d%H}"


def hour_utc(hour: int) -> str:
    """Return the start of an hour as UTC text."""
    return second_utc(3600 * hour)


def second_utc(second: int) -> str:
    """Return a second as UTC text, `YYYY-MM-DD HH:MM:SS`."""
    return f"{moment_utc(1000 * second):%Y-%m-%d %H:%M:%S}"


def moment_utc(milliseconds: int) -> datetime:
    """Return a millisecond as a UTC datetime; negative milliseconds are before the first hour."""
    return (FIRST + timedelta(milliseconds=milliseconds)).astimezone(UTC)


def millisecond_utc(milliseconds: int) -> str:
    """Return a millisecond as UTC text, `YYYY-MM-DD HH:MM:SS.mmm`."""
    return f"{moment_utc(milliseconds):%Y-%m-%d %H:%M:%S.%f}"[:-3]  # strftime has microseconds only


def save_time(milliseconds: int) -> str:
    """Return the `SaveTime` of a millisecond : date, Chinese weekday, local time of day."""
    second, rest = divmod(milliseconds, 1000)
    moment = FIRST + timedelta(seconds=second)
    return f"{moment:%Y/%m/%d} 星期{_WEEKDAYS[moment.weekday()]} {moment:%H:%M:%S}.{rest:03}"


def export_time(second: int, *, zero_hour: bool) -> str:
    """Return a second as local time in the form of the hour-level tables.

    `2024/5/24 上午12:00:00` and `2024/5/24 上午00:00:00` both mean midnight. With `zero_hour` the hour is 00 to 11, two
    digits; else 12, 1 to 11.
    """
    moment = FIRST + timedelta(seconds=second)
    half = "上午" if moment.hour < 12 else "下午"
    hour = f"{moment.hour % 12:02}" if zero_hour else str(moment.hour % 12 or 12)
    return f"{moment.year}/{moment.month}/{moment.day} {half}{hour}:{moment:%M:%S}"
