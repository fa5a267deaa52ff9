"""Pipes among the files of a project, and a thread that the system blocks at one.

tests/runner/test_torn_reads.py puts pipes and devices in the place of raw files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import PATIENCE
from tests.tiny import Tiny


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
