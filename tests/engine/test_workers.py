"""Worker processes answer in order, and their death costs no row."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import PATIENCE
from warehouse.base.errors import ProcessError
from warehouse.engine import workers as workers_module
from warehouse.engine.workers import Answer, Request, Workers
from warehouse.formats.zhejiang.port_counters import HEADER
from warehouse.kernels import UnsupportedError
from warehouse.kernels.port_readings import PortFile, PortHour

HOUR_MS = 1716480000000
"""2024-05-23 16:00 UTC."""


def _blocks(folder: Path, count: int) -> list[list[PortFile]]:
    """Write one small port file for each block."""
    blocks = []
    for number in range(count):
        path = folder / f"port{number}.csv"
        line = "2024/05/24 00:00:{0:02}.000,{1},Leaf-1,TwoHundredGigE1/0/{2},0,{0},0,0,0,0\n"
        rows = "".join(line.format(second, HOUR_MS + 1000 * second, number) for second in range(1, 5))
        path.write_text(f"{HEADER}\n{rows}", encoding="utf-8")
        hour = np.datetime64(HOUR_MS, "ms").item()
        of = PortHour(hour, "Leaf-1", f"TwoHundredGigE1/0/{number}", False)
        blocks.append([PortFile(number, of, path.name, str(path))])
    return blocks


def _requests(blocks: list[list[PortFile]]) -> list[Request]:
    return [Request("port_readings", block, {}) for block in blocks]


def _rows(answers: Iterator[Answer]) -> list[tuple[int, int]]:
    return [
        row
        for chunks, _ in answers
        for chunk in chunks
        for row in zip(chunk["file_key"].tolist(), chunk["offset_ms"].tolist(), strict=True)
    ]


EXPECTED = [(number, 1000 * second) for number in range(12) for second in range(1, 5)]


@pytest.fixture
def pool() -> Iterator[Workers]:
    with closing(Workers(2)) as pool:
        yield pool


def test_blocks_come_back_in_order(pool: Workers, tmp_path: Path) -> None:
    assert _rows(pool.rows(_requests(_blocks(tmp_path, 12)))) == EXPECTED


def test_a_killed_worker_is_replaced_and_no_row_is_lost(pool: Workers, tmp_path: Path) -> None:
    chunks = pool.rows(_requests(_blocks(tmp_path, 12)))
    found = _rows(iter([next(chunks)]))
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    assert found + _rows(chunks) == EXPECTED


def test_a_worker_that_died_between_two_blocks_leaves_no_open_pipe(pool: Workers, tmp_path: Path) -> None:
    assert _rows(pool.rows(_requests(_blocks(tmp_path, 12)))) == EXPECTED
    before = {worker: worker.process for worker in pool._started}
    for process in before.values():
        process.kill()
        process.wait()
    assert _rows(pool.rows(_requests(_blocks(tmp_path, 12)))) == EXPECTED
    replaced = [process for worker, process in before.items() if worker not in pool._started]
    assert replaced
    assert all(pipe.closed for process in replaced for pipe in (process.stdin, process.stdout) if pipe)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was killed (SIGKILL)"),
        ("import os; os.kill(os.getpid(), 36)", "was killed (signal 36)"),
        ("raise SystemExit(3)", "ended with status 3"),
    ],
)
def test_a_block_that_ends_two_workers_is_one_sentence(
    code: str, what: str, pool: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_START", code)
    with pytest.raises(ProcessError) as failed:
        _rows(pool.rows(_requests(_blocks(tmp_path, 3))))
    assert failed.value.message == (
        f"a worker process {what}, twice, while it computed a part by the kernel port_readings"
    )


def test_an_unsupported_file_is_the_error_of_its_kernel(pool: Workers, tmp_path: Path) -> None:
    blocks = _blocks(tmp_path, 3)
    Path(blocks[1][0].path).write_text("other\n", encoding="utf-8")
    with pytest.raises(UnsupportedError, match=r"port1\.csv \(.+\)"):
        _rows(pool.rows(_requests(blocks)))
    assert _rows(pool.rows(_requests(_blocks(tmp_path, 12)))) == EXPECTED  # the worker goes on


def test_an_unexpected_error_has_the_traceback_of_the_worker(pool: Workers) -> None:
    with pytest.raises(TypeError) as failed:
        list(pool.rows([Request("port_readings", [(1, 2, 3, 4)], {})]))
    assert "in a worker process:" in failed.value.__notes__[0]
    assert "port_readings.py" in failed.value.__notes__[0]


def test_a_closed_pool_has_no_process(tmp_path: Path) -> None:
    pool = Workers(2)
    chunks = pool.rows(_requests(_blocks(tmp_path, 12)))
    next(chunks)
    pids = pool.pids
    pool.close()
    assert pids
    assert not any(_is_alive(pid) for pid in pids)


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    blocks = tmp_path / "blocks"
    blocks.write_bytes(pickle.dumps(_requests(_blocks(tmp_path, 12))))
    script = (
        "import pickle, sys, time\n"
        "from warehouse.engine.workers import Workers\n"
        "pool = Workers(2)\n"
        f"chunks = pool.rows(pickle.load(open({str(blocks)!r}, 'rb')))\n"
        "next(chunks)\n"
        "print(*pool.pids, flush=True)\n"
        "time.sleep(10_000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) >= 1
        assert all(_is_alive(pid) for pid in pids)
        starter.kill()
    deadline = time.monotonic() + PATIENCE
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_alive(pid: int) -> bool:
    """Return True if a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
