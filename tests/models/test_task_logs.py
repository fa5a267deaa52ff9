"""Whole logs up to the iterations and restarts of their tasks: public bug reports, and attempts of several kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
MODELS = ("metrics.task_checkpoints", "metrics.task_iterations", "metrics.task_restarts")
UNKNOWN = """\
2031-07-01 10:00:00 INFO trainer: Step 7/90, loss = 2.5, step time: 1250 ms
2031-07-01 10:00:02 INFO trainer: Step 8/90, loss = 2.25, step time: 1500 ms
"""
Rows = list[tuple[int, float | None, float]]
EXPECTED: dict[str, tuple[str | None, str, Rows]] = {
    "09": (
        "stamps",
        "log",
        [(1, 10.5, 8.12345), (10, 1.667556, 7.62585), (20, 1.5637, 7.07623), (30, 1.6156, 6.90001)],
    ),
    "11": ("log", "log", [(1, 0.631, 12.979), (2, 10.228, 12.98), (3, 10.344, 12.979)]),
    "13": (None, "log", [(1, None, 2.0), (2, None, 1.9), (3, None, 1.8)]),  # its bars give no second line of a step
    "19": ("log", "log", [(0, 14.34527, 10.9881), (1, 1.45661, 10.4021), (2, 1.431, 9.99)]),
    "19-llmc": ("log", "log", [(1, 1.23456, 10.95), (2, 1.23456, 10.81), (3, 1.23456, 10.7)]),
    "20": ("log", "log", [(1, 9.0121, 11), (2, 9.0122, 10.5), (3, 9.0123, 10.2)]),
    "23": ("clock", "log", [(1, 3.0, 0.7294), (2, 4.0, 0.7001)]),
    "unknown": ("log", "generic", [(7, 1.25, 2.5), (8, 1.5, 2.25)]),
}
"""For each log how the seconds are known, the evidence, and (iteration, seconds, loss), worked out by hand."""


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


def _case(number: str) -> str:
    (path,) = CASES.glob(f"{number}_*/in/**/*.log")
    return path.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def asked(made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    """All logs in one folder, each a task; the log of case 19 is of two trainers, one after the other."""

    def make(base: Path) -> None:
        reports = {number: _case(number) for number in ("09", "11", "13", "19", "20", "22", "23")}
        reports["unknown"] = UNKNOWN
        reports["19"], mark, second = reports["19"].partition("step    1/")
        reports["19-llmc"] = mark + second
        for task, files in (LOGS | {task: {"m.log": text} for task, text in reports.items()}).items():
            for name, content in files.items():
                path = base / "c" / "taskinfo" / task / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8", newline="")
        with only(base / "project", *MODELS):
            warehouse.build(base / "c", base / "target")

    with warehouse.open(made_once("task-logs", make) / "target") as connection:
        yield connection


@pytest.mark.parametrize("task", EXPECTED)
def test_iterations_of_a_task(asked: duckdb.DuckDBPyConnection, task: str) -> None:
    source, evidence, expected = EXPECTED[task]
    rows = asked.execute(
        "SELECT iteration, round(seconds, 6), loss, seconds_source, evidence FROM metrics.task_iterations "
        "WHERE task = ? ORDER BY iteration",
        [task],
    ).fetchall()
    assert [row[:3] for row in rows] == [(step, seconds, pytest.approx(loss)) for step, seconds, loss in expected]
    assert rows[-1][3:] == (source, evidence)


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


def test_the_reported_crash_is_no_checkpoint(asked: duckdb.DuckDBPyConnection) -> None:
    expected = json.loads(next(CASES.glob("22_*/expected.json")).read_text(encoding="utf-8"))
    assert asked.execute(
        """SELECT count(DISTINCT step) FILTER (kind = 'iteration'), count(*) FILTER (kind = 'iteration'),
            count(*) FILTER (kind = 'train_start') FROM staging.log_events WHERE task = '22'"""
    ).fetchall() == [(expected["distinct_steps"], expected["lines"], expected["train_starts"])]
    assert asked.execute(
        """SELECT list(DISTINCT a.iteration ORDER BY a.iteration) FROM metrics.task_lines AS a
        JOIN metrics.task_lines AS b ON a.iteration = b.iteration AND a.line < b.line AND a.task = b.task
        WHERE a.task = '22'"""
    ).fetchall() == [(expected["steps_twice"],)]
    checkpoints = "SELECT iteration, extra_seconds FROM metrics.task_checkpoints WHERE task = '22'"
    assert asked.execute(checkpoints).fetchall() == [(3, pytest.approx(0.756, abs=0.001))]
