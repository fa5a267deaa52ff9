"""Times of the hour tables: every published form is read, and no other text."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.formats.zhejiang.values import parse_hour, parse_local_time

EIGHT_HOURS = timedelta(hours=8)
MIDNIGHT = datetime(2024, 5, 23, 16)  # noqa: DTZ001 - UTC without zone, as everywhere
TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2099, 12, 31))  # noqa: DTZ001
SECONDS = {
    "2024/5/24 上午12:00:00": 0, "2024/5/24 上午00:00:04": 4, "2024/5/24 上午0:00:04": 4, "2024/5/24 上午1:00:00": 3600,
    "2024/5/24 上午11:59:59": 43_199, "2024/5/24 下午12:00:00": 43_200, "2024/5/24 下午00:00:00": 43_200,
    "2024/5/24 下午1:00:00": 46_800, "2024/5/24 下午13:00:00": 46_800, "2024/5/24 下午11:59:59": 86_399,
    "2024/5/24 下午23:59:59": 86_399, "2024/5/24 上午 12:00:01": 1, "2024/5/24 00:00:04": 4, "2024/5/24 0:05": 300,
    "2024/5/24 13:00:00": 46_800, "2024/05/24 星期五 00:00:00.914": 0.914, "2024/05/24 周五 00:00:01": 1,
    "2024-05-24 00:00:04": 4, "2024-05-24T00:00:04": 4, "2024-05-24T00:00:04.123456789": 4.123456,
    "2024-05-23T16:00:04Z": 4, "2024-05-24T01:00:04+09:00": 4, "2024-05-23 16:00:04+0000": 4,
    "  2024/5/24 上午12:00:00  ": 0,
}  # fmt: skip
NO_TIMES = [
    "", "上午", "2024/5/24", "2024/5/24 上午13:00:00", "2024/5/24 下午24:00:00", "2024/5/24 24:00:00",
    "2024/5/24 00:60:00", "2024/5/24 00:00:60", "2024/2/30 00:00:00", "2024/13/1 00:00:00", "24/5/24 00:00:00",
    "2024/5/24 13:00:00 AM", "2024/5/24 00:00:00,5", "２０２４/5/24 00:00:00", "17164800009", "0001-01-01 00:00:00",
    "2024-05-24T00:00:04+99:00", "2024/5/24 上午12:00:00\n2024/5/24 上午12:00:00",
]  # fmt: skip


@pytest.mark.parametrize("text", SECONDS)
def test_every_published_form_of_a_time_is_parsed(text: str) -> None:
    assert parse_local_time(text) == MIDNIGHT + timedelta(seconds=SECONDS[text])


@pytest.mark.parametrize("text", NO_TIMES)
def test_invalid_times_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time") as refused:
        parse_local_time(text)
    assert "\n" not in str(refused.value)


@given(TIMES)
def test_all_forms_of_one_time_agree(time: datetime) -> None:
    expected = time.replace(microsecond=0) - EIGHT_HOURS
    date, clock, half = f"{time.year}/{time.month}/{time.day}", f"{time:%M:%S}", "上午" if time.hour < 12 else "下午"
    for text in (
        f"{date} {half}{time.hour % 12 or 12}:{clock}",
        f"{date} {half}{time.hour % 12:02}:{clock}",
        f"{date} {half}{time.hour:02}:{clock}",
        f"{date} {time.hour}:{clock}",
        f"{time:%Y-%m-%d %H:%M:%S}",
        f"{time:%Y-%m-%dT%H:%M:%S}",
    ):
        assert parse_local_time(text) == expected, text
    weekday, milli = "一二三四五六日"[time.weekday()], time.microsecond // 1000
    text = f"{time:%Y/%m/%d} 星期{weekday} {time:%H:%M:%S}.{milli:03}"
    assert parse_local_time(text) == expected + timedelta(milliseconds=milli)


def test_hours_are_local() -> None:
    assert parse_hour("2024052400") == MIDNIGHT
    assert parse_hour("2024052423") == MIDNIGHT + timedelta(hours=23)
    for name in ("2024052424", "2024053200", "202405240", "0000000000", "２０２４052400", "0001010100"):
        with pytest.raises(ValueError, match="not"):
            parse_hour(name)
