"""Large logs: one line of 100 MB, and many blank or equal lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.logs.conftest import Read, Rejects
from warehouse.formats.logs.reader import LogReader
from warehouse.formats.logs.segments import LONGEST

FIRST = b"node-1:1:2 [0] NCCL INFO Connected all rings\n"
LAST = b"node-1:1:2 [0] NCCL INFO Connected all trees\n"


def test_a_line_of_100_mb_is_one_reject_and_the_next_line_is_read(tmp_path: Path, rejects: Rejects) -> None:
    with (tmp_path / "x.log").open("wb") as stream:
        stream.write(FIRST)
        stream.seek(100 * 10**6, 1)  # takes no space on disk
        stream.write(b"\n" + LAST)
    events = list(LogReader("x.log", rejects.add).read(tmp_path / "x.log"))
    [(line, reason, shown)] = rejects
    assert (line, reason, len(shown) <= LONGEST) == (2, "longer than 262,144 bytes", True)
    assert [(event["line"], event["name"]) for event in events] == [(1, "all rings"), (3, "all trees")]


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\x1b[0m \n", b"Loading extension module cpu_adam...\n"])
def test_many_lines_without_events_are_counted(read: Read, rejects: Rejects, line: bytes) -> None:
    events = read(raw=FIRST + line * 50_000 + LAST)
    assert [(event["line"], event["segment"]) for event in events] == [(1, 1), (50_002, 50_002)]
    assert not rejects
