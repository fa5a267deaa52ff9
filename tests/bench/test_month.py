"""The hours of `bench.month` are those of the hour that they are made of, later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.month import Month, move_on, tiny_hour
from tests.tiny import Tiny

WEEKDAYS = "一二三四五六日"


@pytest.mark.parametrize("hours", [13, 40, 9_000])
def test_every_time_of_every_row_is_moved_on_and_nothing_else(tiny: Tiny, hours: int) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5", "3,300,4,400,1,0", "5,500,6,600,2,0")
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    moved_header, *moved = move_on(path.read_bytes(), hours).decode().splitlines()
    assert moved_header == header
    for before, after in zip(rows, moved, strict=True):
        saved, milliseconds, *rest = after.split(",")
        assert rest == before.split(",")[2:]
        assert int(milliseconds) - int(before.split(",")[1]) == hours * 3_600_000
        local = datetime.fromtimestamp(int(milliseconds) / 1000, UTC) + timedelta(hours=8)
        assert saved == f"{local:%Y/%m/%d} 星期{WEEKDAYS[local.weekday()]} {local:%H:%M:%S}.000"


def test_a_tiny_hour_has_ports_alone_and_any_file_of_it_can_be_corrected(tmp_path: Path) -> None:
    hour = tiny_hour(tmp_path)
    month = Month(hour, tmp_path / "month", 1, tmp_path / "cache")
    month.lay_out()
    month.add(1)
    moved = [path for path in month.traffic.rglob("*") if path.is_file()]
    assert len(moved) == 2 * len(list(hour.rglob("*.csv")))
    assert {path.name.partition("-")[0].lower() for path in moved} <= {"leaf", "st"}
    before = {path: path.read_bytes() for path in moved}
    for number in range(3):
        month.correct(number)
    assert len([path for path in moved if path.read_bytes() != before[path]]) == 3
