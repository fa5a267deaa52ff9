"""Logs of public bug reports (tests/fixtures/cases), up to the iterations of their tasks: steps, seconds and losses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
TASKS = ("09", "11", "13", "20", "23")
"""Cases whose logs are of one trainer."""
TWO_TRAINERS = "19"
GENERIC = """\
2031-07-01 10:00:00 INFO trainer: Step 7/90, loss = 2.5, step time: 1250 ms
2031-07-01 10:00:02 INFO trainer: Step 8/90, loss = 2.25, step time: 1500 ms
"""
Rows = list[tuple[Any, ...]]


def _write(root: Path, task: str, text: str) -> None:
    path = root / "taskinfo" / task / f"{task}-master.log"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8", newline="")


def _case(number: str) -> Path:
    (folder,) = CASES.glob(f"{number}_*")
    return folder


def _text(number: str) -> str:
    (path,) = (_case(number) / "in").rglob("*.log")
    return path.read_bytes().decode("utf-8")


def _facts(number: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((_case(number) / "expected.json").read_text(encoding="utf-8"))
    return facts


@pytest.fixture(scope="module")
def built(made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    """All cases in one folder, each a task of its number; a log of two trainers is two tasks."""

    def make(folder: Path) -> None:
        for number in TASKS:
            _write(folder / "data", f"case-{number}", _text(number))
        first, mark, second = _text(TWO_TRAINERS).partition("step    1/")
        _write(folder / "data", "case-19-nanogpt", first)
        _write(folder / "data", "case-19-llmc", mark + second)
        _write(folder / "data", "unknown", GENERIC)
        with only(folder / "project", "metrics.task_iterations"):
            warehouse.build(folder / "data", folder / "target")

    with warehouse.open(made_once("cases_of_trainers", make) / "target") as connection:
        yield connection


def _rows(built: duckdb.DuckDBPyConnection, task: str, columns: str) -> Rows:
    sql = f"SELECT {columns} FROM metrics.task_iterations WHERE task = ? ORDER BY iteration"
    return built.execute(sql, [task]).fetchall()


def test_torchtitan_is_timed_by_its_stamps(built: duckdb.DuckDBPyConnection) -> None:
    facts = _facts("09")

    rows = _rows(built, "case-09", "iteration, loss, round(seconds, 6), iterations_covered, seconds_source, evidence")

    assert [row[:2] for row in rows] == list(zip(facts["steps"], facts["loss"], strict=True))
    assert [row[2:] for row in rows] == [
        (10.5, 1, "stamps", "log"),
        (round(15.008 / 9, 6), 9, "stamps", "log"),
        (1.5637, 10, "stamps", "log"),
        (1.6156, 10, "stamps", "log"),
    ]


@pytest.mark.parametrize("number", ["11", "20"])
def test_maxtext_and_megatron_print_their_seconds(built: duckdb.DuckDBPyConnection, number: str) -> None:
    facts = _facts(number)

    rows = _rows(built, f"case-{number}", "iteration, seconds, loss, seconds_source, evidence")

    assert [row[:3] for row in rows] == list(zip(facts["steps"], facts["seconds"], facts["loss"], strict=True))
    assert {row[3:] for row in rows} == {("log", "log")}


def test_lines_of_torchtune_come_before_its_bars(built: duckdb.DuckDBPyConnection) -> None:
    assert _rows(built, "case-13", "iteration, loss, seconds, evidence") == [
        (1, 2.0, None, "log"),
        (2, 1.9000000000000001, None, "log"),
        (3, 1.8, None, "log"),
    ]


def test_nanogpt_and_llmc_print_their_seconds(built: duckdb.DuckDBPyConnection) -> None:
    seconds = _facts(TWO_TRAINERS)["seconds"]

    first = _rows(built, "case-19-nanogpt", "iteration, seconds, loss, seconds_source")
    second = _rows(built, "case-19-llmc", "iteration, seconds, loss, seconds_source")

    assert [row[1] for row in first + second] == seconds
    assert [row[0] for row in first + second] == [0, 1, 2, 1, 2, 3]
    assert [row[2] for row in first + second] == [10.9881, 10.4021, 9.99, 10.95, 10.81, 10.7]
    assert {row[3] for row in first + second} == {"log"}


def test_axolotl_is_timed_by_the_clock_of_its_bars(built: duckdb.DuckDBPyConnection) -> None:
    facts = _facts("23")

    rows = _rows(built, "case-23", "iteration, loss, seconds, seconds_source, evidence")

    assert [row[:2] for row in rows] == list(zip(facts["steps"], facts["losses"], strict=True))
    assert rows[1][2:] == (4.0, "clock", "log")


def test_a_line_of_an_unknown_trainer_says_generic(built: duckdb.DuckDBPyConnection) -> None:
    assert _rows(built, "unknown", "iteration, seconds, loss, seconds_source, evidence") == [
        (7, 1.25, 2.5, "log", "generic"),
        (8, 1.5, 2.25, "log", "generic"),
    ]
