"""Pipes and devices among the files of a build: never waited for, before the scan and after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook

from tests.conftest import PATIENCE
from tests.formats.test_workbook import BOOK
from tests.tiny import Tiny
from warehouse.base.errors import DataError
from warehouse.base.settings import settle
from warehouse.formats.base import Inventory
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter

ITP = "job_id,submission_time,duration,num_gpu\n" + "".join(f"j{n},{n},600,8\n" for n in range(9))
LOG = b"[2024-05-23 16:00:03] iteration 3/ 10 | lm loss: 2.0 |\n"


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_book(path: Path) -> Path:
    book = Workbook()
    for title, rows in BOOK.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


FILES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "CSV": ("itp_jobs", lambda data: write(data / "cluster01.csv", ITP.encode())),
    "pod starts": (
        "pod_starts",
        lambda data: write(
            data / "c/taskinfo/t/pod-node-starttime.log", b"p 10.1.1.1 node-1 2024-05-23T16:00:00.000Z\n"
        ),
    ),
    "log": ("log_events", lambda data: write(data / "c/taskinfo/t/pod.log", LOG)),
    "workbook": ("gpu_nics", lambda data: write_book(data / "c/c.xlsx")),
}  # fmt: skip
"""Kind of file -> relation and file."""


class Swap(Reporter):
    """A reporter that puts something in the place of a file once the files are listed and hashed."""

    def __init__(self, path: Path, put: Callable[[Path], None]) -> None:
        super().__init__()
        self._path = path
        self._put = put

    def found(self, inventory: Inventory) -> None:
        assert {file.path for file in inventory.files if file.is_read} >= {self._path}
        self._path.unlink()
        self._put(self._path)


@pytest.mark.parametrize("kind", FILES)
def test_a_pipe_or_device_in_place_of_a_file_after_the_scan_is_refused(tiny: Tiny, kind: str) -> None:
    relation, make = FILES[kind]
    put = os.mkfifo if kind in ("CSV", "log", "workbook") else lambda path: path.symlink_to("/dev/zero")
    path = make(tiny.data)
    tiny.model(
        "metrics.rows", f"SELECT 'all' AS name, count(*) AS n FROM raw.{relation}", {"name": "VARCHAR", "n": "BIGINT"}
    )
    settings = settle({"data": [str(tiny.data)], "target": str(tiny.target), "project": str(tiny.folder)})
    with pytest.raises((DataError, OSError)) as error:
        build(settings, Swap(path, put))
    assert str(path) in str(error.value)
    assert not (tiny.target / "warehouse.duckdb").exists()


def test_a_pipe_in_a_project_is_one_sentence(tiny: Tiny) -> None:
    tiny.model("metrics.more", "SELECT '{{ 1 + 1 }}' AS name", {"name": "VARCHAR"})
    project = ("models/metrics/x.sql", "sql/macros/m.sql", "sql/queries/q.sql", "data/tables.yaml")
    for path in (tiny.base / "warehouse.toml", *(tiny.folder / name for name in project)):
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        said = tiny.build()
        assert said.status in (1, 2)
        assert "Traceback" not in said.err
        assert "not a file" in said.err
        assert path.name in said.err
        path.unlink()
        if before is not None:
            path.write_bytes(before)


BLOCKED = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from warehouse.runner import work

work._PATIENCE_SECONDS = 0

class Runs:
    interrupt = staticmethod(lambda: None)

def blocked():
    print("started", flush=True)
    os.open(sys.argv[1], os.O_RDONLY)

future = ThreadPoolExecutor(1).submit(blocked)
try:
    future.result()
except KeyboardInterrupt:
    print("stopping", flush=True)
    work._stop(Runs, [future])
"""


def test_ctrl_c_ends_a_build_whose_thread_the_system_blocks(tmp_path: Path) -> None:
    """A thread waits for a writer of a pipe, which no interrupt of the engine ends."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", BLOCKED, str(tmp_path / "pipe")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in ("started\n", "stopping\n"):
            assert process.stdout.readline() == line
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said == "interrupted\n"
