"""Restarts in whole logs: a reported crash, logs of several attempts, and signs that are no restart."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import warehouse

MODELS = ("metrics.task_checkpoints", "metrics.task_iterations", "metrics.task_restarts", "staging.log_events")
pytestmark = pytest.mark.usefixtures("only_own_models")
CASE = Path(__file__).parents[1] / "fixtures" / "cases" / "22_restart_same_log"
BEGIN = datetime(2025, 5, 9, 6)  # noqa: DTZ001 - logs have no zone
Rows = list[tuple[object, ...]]


def _ask(data: Path, target: Path, sql: str) -> Rows:
    warehouse.build(data, target)
    with warehouse.open(target) as asked:
        return list(asked.sql(sql).fetchall())


def test_the_reported_crash_is_a_restart_and_no_checkpoint(tmp_path: Path) -> None:
    expected = json.loads((CASE / "expected.json").read_text(encoding="utf-8"))
    found = _ask(
        CASE / "in",
        tmp_path,
        """
        SELECT (SELECT count(DISTINCT step) FILTER (WHERE kind = 'iteration') FROM staging.log_events),
            (SELECT count(*) FILTER (WHERE kind = 'iteration') FROM staging.log_events),
            (SELECT count(*) FILTER (WHERE kind = 'train_start') FROM staging.log_events),
            (SELECT list(DISTINCT a.iteration ORDER BY a.iteration) FROM metrics.task_lines AS a
                JOIN metrics.task_lines AS b ON a.iteration = b.iteration AND a.line < b.line),
            (SELECT list(struct_pack(i := iteration, s := extra_seconds)) FROM metrics.task_checkpoints),
            after_iteration, lost_iterations, down_seconds, reason, line
        FROM metrics.task_restarts
        """,
    )
    [(steps, lines, starts, twice, checkpoints, *restart)] = found
    assert (steps, lines, starts) == (expected["distinct_steps"], expected["lines"], expected["train_starts"])
    assert twice == expected["steps_twice"]
    assert restart == [5, 2, 510.0, "RuntimeError: NCCL communicator was aborted on rank 1.", 10]
    [checkpoint] = checkpoints  # type: ignore[misc]
    assert checkpoint["i"] == 3
    assert checkpoint["s"] == pytest.approx(0.756, abs=0.001)


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


def test_restarts_by_kind_of_log(tmp_path: Path) -> None:
    for task, files in LOGS.items():
        for name, content in files.items():
            path = tmp_path / "c" / "taskinfo" / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    found = _ask(
        tmp_path / "c",
        tmp_path / "target",
        "SELECT task, after_iteration, restarts, lost_iterations, down_seconds, reason, pod FROM metrics.task_restarts",
    )
    assert sorted(found) == [
        ("attempts", 5, 1, 2, 85.0, "RuntimeError: aborted", "0/stderr"),
        ("loop", 5, 2, 2, 85.0, "RuntimeError: aborted", "m"),
        ("no-step-back", 5, 1, 0, 88.0, "RuntimeError: aborted", "m"),
        ("pods", 5, 1, 2, 85.0, "RuntimeError: aborted", "x-worker-1"),
    ]
    with warehouse.open(tmp_path / "target") as asked:
        [iterations] = asked.sql(
            "SELECT bool_and(seconds = 3) FILTER (WHERE task <> 'clock'), count(*) FILTER (WHERE task = 'ranks'), "
            "count(*) FILTER (WHERE task = 'rotated') FROM metrics.task_iterations"
        ).fetchall()
    assert iterations == (True, 8, 9)
