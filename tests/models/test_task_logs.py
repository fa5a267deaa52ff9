"""Whole logs up to the restarts and checkpoints of their tasks: a public bug report, and attempts of several kinds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only

[CRASH] = (Path(__file__).parents[1] / "fixtures" / "cases").glob("22_*/in/**/*.log")
"""A public bug report."""
MODELS = ("metrics.task_checkpoints", "metrics.task_iterations", "metrics.task_restarts")
BEGIN = datetime(2025, 5, 9, 6)  # noqa: DTZ001 - logs have no zone


def _iterations(first: int, last: int, after: int, label: str = "") -> str:
    """Return lines of iterations, one every three seconds, `after` seconds from the beginning."""
    return "".join(
        f"{label}[{BEGIN + timedelta(seconds=after + 3 * place):%Y-%m-%d %H:%M:%S},000] [INFO] [x.py:1:on_log] "
        f"loss: 2.5, learning_rate: 1e-05, epoch: 0.01, iter: {step}/20,  00:10 < 00:20,  3.0s/it\n"
        for place, step in enumerate(range(first, last + 1), 1)
    )


def _start(after: int) -> str:
    at = BEGIN + timedelta(seconds=after)
    return f"[INFO|trainer.py:1723] {at:%Y-%m-%d %H:%M:%S},000 >> ***** Running training *****\n"


ERROR = "RuntimeError: aborted\n"
LOGS = {
    "attempts": {
        "attempt_0/0/stderr.log": _start(0) + _iterations(1, 5, 0) + ERROR,
        "attempt_1/0/stderr.log": _start(100) + _iterations(4, 8, 100),
    },
    "rotated": {"m.log.1": _start(0) + _iterations(1, 5, 0), "m.log": _iterations(6, 9, 15)},
    "copied": {"m.log": _start(0) + _iterations(1, 5, 0), "m.log.2024-05-23": _start(0) + _iterations(1, 5, 0)},
    "pods": {
        "x-master.log": _start(0) + _iterations(1, 5, 0) + _start(100) + _iterations(4, 8, 100),
        "x-worker-1.log": _start(0) + _iterations(1, 5, 0) + ERROR + _start(100) + _iterations(4, 8, 100),
    },
    "loop": {
        "m.log": _start(0) + _iterations(1, 5, 0) + ERROR + _start(60) + ERROR + _start(100) + _iterations(4, 8, 100)
    },
    "no-step-back": {"m.log": _start(0) + _iterations(1, 5, 0) + ERROR + _iterations(6, 8, 100)},
    "harmless": {"m.log": _start(0) + _iterations(1, 5, 0) + "ConnectionError: no upload\n" + _iterations(6, 8, 15)},
    "clock": {"m.log": _start(0) + _iterations(1, 5, 0) + _iterations(6, 8, -3600) + _iterations(9, 12, 7200)},
    "ranks": {  # the second rank is an iteration late
        "m.log": _start(0) + _iterations(1, 1, 0, "[default0]:") + "".join(
            _iterations(step, step, 3 * step - 3, "[default0]:") + _iterations(step - 1, step - 1, 3 * step - 5)
            for step in range(2, 9)
        )
    },
}  # fmt: skip
"""Files of each task."""


@pytest.fixture(scope="module")
def asked(made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    """All logs in one folder, each a task."""

    def make(base: Path) -> None:
        report = CRASH.read_bytes().decode("utf-8")
        for task, files in (LOGS | {"22": {"m.log": report}}).items():
            for name, content in files.items():
                path = base / "c" / "taskinfo" / task / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8", newline="")
        with only(base / "project", *MODELS):
            warehouse.build(base / "c", base / "target")

    with warehouse.open(made_once("task-logs", make) / "target") as connection:
        yield connection


def test_restarts_by_kind_of_log(asked: duckdb.DuckDBPyConnection) -> None:
    restarts = "SELECT task, after_iteration, restarts, lost_iterations, down_seconds, reason, pod, line"
    found = asked.execute(f"{restarts} FROM metrics.task_restarts ORDER BY ALL").fetchall()
    reason = "RuntimeError: aborted"
    assert [row[:-1] for row in found] == [
        ("22", 5, 1, 2, 510.0, "RuntimeError: NCCL communicator was aborted on rank 1.", "m"),
        ("attempts", 5, 1, 2, 85.0, reason, "0/stderr"),
        ("loop", 5, 2, 2, 85.0, reason, "m"),
        ("no-step-back", 5, 1, 0, 88.0, reason, "m"),
        ("pods", 5, 1, 2, 85.0, reason, "x-worker-1"),
    ]
    assert found[0][-1] == 10
    assert asked.execute(
        "SELECT bool_and(seconds = 3) FILTER (list_contains(?, task)), count(*) FILTER (task = 'ranks'), "
        "count(*) FILTER (task = 'rotated') FROM metrics.task_iterations",
        [[task for task in LOGS if task != "clock"]],
    ).fetchall() == [(True, 8, 9)]
    checkpoints = "SELECT iteration, extra_seconds FROM metrics.task_checkpoints WHERE task = '22'"
    assert asked.execute(checkpoints).fetchall() == [(3, pytest.approx(0.756, abs=0.001))], "a crash is no checkpoint"
