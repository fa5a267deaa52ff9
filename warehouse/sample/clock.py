"""Hours of a sample, in UTC and in the release's local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.sample.options import SampleOptions

LOCAL = timezone(timedelta(hours=8))
_WEEKDAYS = "一二三四五六日"


def hour_start(hour: int, options: SampleOptions) -> datetime:
    """Return the start of an hour, in local time."""
    first = datetime.strptime(options.first_hour, "%Y%m%d%H").replace(tzinfo=LOCAL)
    return first + timedelta(hours=hour)


def hour_folder(hour: int, options: SampleOptions) -> str:
    """Return the name of the hour's folder, which is local time."""
    return hour_start(hour, options).strftime("%Y%m%d%H")


def epoch_ms(options: SampleOptions) -> int:
    """Return the start of the first hour in milliseconds since 1970, UTC."""
    return int(hour_start(0, options).timestamp()) * 1000


def utc_text(moment: datetime) -> str:
    """Return a time in UTC, `YYYY-MM-DD HH:MM:SS`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def second_utc(second: int, options: SampleOptions) -> str:
    """Return a second of the timeline as UTC text."""
    return utc_text(hour_start(0, options) + timedelta(seconds=second))


def moment_utc(milliseconds: int, options: SampleOptions) -> datetime:
    """Return a millisecond of the timeline as a UTC datetime; negative milliseconds are before the first hour."""
    return (hour_start(0, options) + timedelta(milliseconds=milliseconds)).astimezone(UTC)


def millisecond_utc(milliseconds: int, options: SampleOptions) -> str:
    """Return a millisecond of the timeline as UTC text, `YYYY-MM-DD HH:MM:SS.mmm`."""
    return f"{moment_utc(milliseconds, options):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def save_time(milliseconds: int, options: SampleOptions) -> str:
    """Return the `SaveTime` of a millisecond of the timeline: date, Chinese weekday, local time of day."""
    second, rest = divmod(milliseconds, 1000)
    moment = hour_start(0, options) + timedelta(seconds=second)
    return f"{moment:%Y/%m/%d} 星期{_WEEKDAYS[moment.weekday()]} {moment:%H:%M:%S}.{rest:03}"


def export_time(second: int, options: SampleOptions, *, zero_hour: bool) -> str:
    """Return a second of the timeline as local time in the form of the hour-level tables.

    `2024/5/24 上午12:00:00` and `2024/5/24 上午00:00:00` both mean midnight. With `zero_hour` the hour is 00 to 11, two
    digits; else 12, 1 to 11.
    """
    moment = hour_start(0, options) + timedelta(seconds=second)
    half = "上午" if moment.hour < 12 else "下午"
    hour = f"{moment.hour % 12:02}" if zero_hour else str(moment.hour % 12 or 12)
    return f"{moment.year}/{moment.month}/{moment.day} {half}{hour}:{moment:%M:%S}"
