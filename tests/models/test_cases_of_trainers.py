"""Logs of public bug reports (tests/fixtures/cases), up to the iterations of their tasks: steps, seconds and losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
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


@pytest.fixture(scope="module")
def built(made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    """All logs in one folder, each a task; the log of case 19 is of two trainers, one after the other."""

    def make(folder: Path) -> None:
        texts = {"unknown": UNKNOWN}
        for number in ("09", "11", "13", "19", "20", "23"):
            (path,) = CASES.glob(f"{number}_*/in/**/*.log")
            texts[number] = path.read_bytes().decode("utf-8")
        texts["19"], mark, second = texts["19"].partition("step    1/")
        texts["19-llmc"] = mark + second
        for task, text in texts.items():
            path = folder / "data" / "taskinfo" / task / f"{task}-master.log"
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8", newline="")
        with only(folder / "project", "metrics.task_iterations"):
            warehouse.build(folder / "data", folder / "target")

    with warehouse.open(made_once("cases_of_trainers", make) / "target") as connection:
        yield connection


@pytest.mark.parametrize("task", EXPECTED)
def test_iterations_of_a_task(built: duckdb.DuckDBPyConnection, task: str) -> None:
    source, evidence, expected = EXPECTED[task]
    rows = built.execute(
        "SELECT iteration, round(seconds, 6), loss, seconds_source, evidence FROM metrics.task_iterations "
        "WHERE task = ? ORDER BY iteration",
        [task],
    ).fetchall()
    assert [row[:3] for row in rows] == [(step, seconds, pytest.approx(loss)) for step, seconds, loss in expected]
    assert rows[-1][3:] == (source, evidence)
