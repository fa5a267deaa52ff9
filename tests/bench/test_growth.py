"""The hours of `bench.growth` are those of the hour that they are made of, later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bench.growth import move_on
from tests.tiny import Tiny


def test_every_time_of_every_row_is_moved_on_and_nothing_else(tiny: Tiny) -> None:
    path = tiny.file(0, "1,100,2,200,0,0.5", "3,300,4,400,1,0", "5,500,6,600,2,0")
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    moved_header, *moved = move_on(path.read_bytes(), 13).decode().splitlines()
    assert moved_header == header
    for before, after in zip(rows, moved, strict=True):
        saved, milliseconds, *rest = after.split(",")
        assert rest == before.split(",")[2:]
        assert int(milliseconds) - int(before.split(",")[1]) == 13 * 3_600_000
        local = datetime.fromtimestamp(int(milliseconds) / 1000, UTC) + timedelta(hours=8)
        assert saved == f"{local:%Y/%m/%d} 星期五 {local:%H:%M:%S}.000"
    assert move_on(path.read_bytes(), 0) == path.read_bytes()
