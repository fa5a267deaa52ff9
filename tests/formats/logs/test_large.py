"""Large logs: one line of 100 MB, and megabytes of blank or equal lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import warehouse
from tests.formats.logs.conftest import Read, Rejects
from warehouse.formats.logs.reader import LogReader
from warehouse.formats.logs.segments import LONGEST

MODELS = ("staging.log_events", "staging.rejected_rows")
pytestmark = pytest.mark.usefixtures("only_own_models")
FIRST = b"node-1:1:2 [0] NCCL INFO Connected all rings\n"
LAST = b"node-1:1:2 [0] NCCL INFO Connected all trees\n"


def _sparse(path: Path) -> Path:
    """Write a log with a line of 100 MB that takes no space on disk."""
    with path.open("wb") as stream:
        stream.write(FIRST)
        stream.seek(100 * 10**6, 1)
        stream.write(b"\n" + LAST)
    return path


def test_a_line_of_100_mb_is_one_reject_and_the_next_line_is_read(tmp_path: Path) -> None:
    rejected: list[tuple[int, str, str]] = []
    reader = LogReader("x.log", lambda *rejection: rejected.append(rejection))

    events = list(reader.read(_sparse(tmp_path / "x.log")))

    [(line, reason, shown)] = rejected
    assert (line, reason, len(shown) <= LONGEST) == (2, "longer than 262,144 bytes", True)
    assert [(event["line"], event["segment"], event["name"]) for event in events] == [
        (1, 1, "all rings"),
        (3, 3, "all trees"),
    ]


def test_a_build_counts_a_line_of_100_mb_once(tmp_path: Path) -> None:
    folder = tmp_path / "d" / "c" / "taskinfo" / "task"
    folder.mkdir(parents=True)
    head = FIRST * (1 + (1 << 16) // len(FIRST))  # the first 4 kB decide that the file is text
    (folder / "worker-0.log").write_bytes(head + b"x" * 100_000_000 + b"\n" + LAST)

    warehouse.build(tmp_path / "d", tmp_path / "t")

    with warehouse.open(tmp_path / "t") as reader:
        rejected = reader.sql("SELECT line, reason FROM staging.rejected_rows").fetchall()
        lines = reader.sql("SELECT max(line) FROM staging.log_events").fetchall()
    place = head.count(b"\n") + 1
    assert (rejected, lines) == ([(place, "longer than 262,144 bytes")], [(place + 1,)])


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (b"\n", 1_000_000),
        (b"\r\n", 500_000),
        (b"Loading extension module cpu_adam...\n", 100_000),
        (b"\x1b[0m \n", 250_000),
    ],
    ids=["blank", "blank with a carriage return", "equal", "colored and blank"],
)
def test_megabytes_of_lines_without_events_are_counted(read: Read, rejects: Rejects, line: bytes, count: int) -> None:
    events = read(raw=FIRST + line * count + LAST)

    assert [(event["line"], event["segment"]) for event in events] == [(1, 1), (count + 2, count + 2)]
    assert not rejects


@pytest.mark.parametrize("breaks", [b"\n\n\n", b"\n\r\n\n", b"\n\n\r", b"\r\r\n\n\n"])
def test_blank_lines_before_a_bar_are_counted_the_same_on_both_paths(read: Read, breaks: bytes) -> None:
    bar = b" 10%|#         | 1/9 [00:46<06:08, 46.00s/it]"
    iteration = b"[2024-04-29 06:18:13,208] [INFO] [x.py:1:f] loss: 2.5, learning_rate: 0.1, epoch: 0.1, "
    iteration += b"iter: 1/9,  00:46 < 06:08,  46.00s/it\n"
    content = (FIRST + breaks + bar + b"{'loss': 2.5, 'learning_rate': 0.1, 'epoch': 0.1}\n" + iteration + breaks) * 2

    assert read(raw=content) == read(raw=content)
