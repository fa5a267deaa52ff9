"""Large logs: one line of 100 MB, and many blank or equal lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.logs.conftest import Read, Rejects
from warehouse.formats.logs.reader import LogReader
from warehouse.formats.logs.segments import LONGEST

FIRST = b"node-1:1:2 [0] NCCL INFO Connected all rings\n"
LAST = b"node-1:1:2 [0] NCCL INFO Connected all trees\n"


def test_a_line_of_100_mb_is_one_reject_and_the_next_line_is_read(tmp_path: Path) -> None:
    with (tmp_path / "x.log").open("wb") as stream:
        stream.write(FIRST)
        stream.seek(100 * 10**6, 1)  # takes no space on disk
        stream.write(b"\n" + LAST)
    rejected: list[tuple[int, str, str]] = []
    reader = LogReader("x.log", lambda *rejection: rejected.append(rejection))
    events = list(reader.read(tmp_path / "x.log"))
    [(line, reason, shown)] = rejected
    assert (line, reason, len(shown) <= LONGEST) == (2, "longer than 262,144 bytes", True)
    assert [(event["line"], event["segment"], event["name"]) for event in events] == [
        (1, 1, "all rings"),
        (3, 3, "all trees"),
    ]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (b"\n", 500_000),
        (b"\r\n", 100_000),
        (b"Loading extension module cpu_adam...\n", 50_000),
        (b"\x1b[0m \n", 10_000),
    ],
    ids=["blank", "blank with a carriage return", "equal", "colored and blank"],
)
def test_many_lines_without_events_are_counted(read: Read, rejects: Rejects, line: bytes, count: int) -> None:
    events = read(raw=FIRST + line * count + LAST)

    assert [(event["line"], event["segment"]) for event in events] == [(1, 1), (count + 2, count + 2)]
    assert not rejects
