"""Explanations come after the answer, in time of their own, and never cost it: why it is empty, how many rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.conftest import Command, answered
from warehouse.reader import user_query
from warehouse.reader.connection import connect, interruptible
from warehouse.reader.table_info import reasons_of


def test_the_clock_of_a_query_stops_before_explanations(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def clocked(*arguments: Any, **named: Any) -> Any:
        answers = interruptible(*arguments, **named)
        order.append("clock stopped")
        return answers

    monkeypatch.setattr(user_query, "interruptible", clocked)
    monkeypatch.setattr(user_query, "explain", lambda *_, **__: order.append("explained"))
    assert answered(target, "SELECT 1 AS one WHERE false") == "one\n"
    assert order[:2] == ["clock stopped", "explained"]


def test_a_table_that_is_cut_says_how_many_rows_there_are(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(rows: int) -> str:
        return answered(target, f"FROM range({rows})", format="table", limit=2).splitlines()[-1]

    assert said(1_245) == "1,245 rows, 2 shown"
    assert said(10**12) == "more than 100,000 rows, 2 shown"

    def too_slow(*_: object) -> str:
        raise duckdb.InterruptException

    monkeypatch.setattr(user_query, "total", too_slow)
    assert said(1_245) == "more than 2 rows, 2 shown"


def test_a_reason_that_takes_too_long_is_left_out(
    target: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(connection: duckdb.DuckDBPyConnection, *_: object) -> str:
        return str(connection.execute("SELECT sum(range) FROM range(10000000000000)").fetchall())

    monkeypatch.setattr(user_query, "no_rows", slow)
    monkeypatch.setattr(user_query, "EXPLANATION_SECONDS", 0.1)
    assert answered(target, "SELECT 1 AS one WHERE false") == "one\n"
    assert capsys.readouterr().err == ""


def test_an_empty_answer_has_a_reason(command: Command, built: Path) -> None:
    reasons = {
        ("-q", "nic", "--server", "GPU-999"): "no server GPU-999; near: GPU-",
        ("-q", "hottest-uplinks", "--leaf", "leaf_1"): "no switch leaf_1; near: Leaf-1",
        ("-q", "busiest-servers", "--hour", "2020-01-01"): "the hour 2020-01-01 is not loaded; loaded",
        ("FROM metrics.jobs WHERE trace = 'borg'",): "no trace borg; there are acme, helios, itp, pai and 1 more",
        ("FROM metrics.leaf_hour WHERE switch = 'Leaf-99'", "--timeout", "300"): "no switch Leaf-99; near: Leaf-",
        ("FROM metrics.leaf_hour WHERE in_bytes < 0",): "none meets the conditions of the query",
    }
    for words, reason in reasons.items():
        said = command("sql", *words, "--format", "csv", "-t", built)
        assert (said.status, said.err.startswith(f"no rows: {reason}")) == (0, True), said.err


def test_an_empty_table_names_the_missing_files(command: Command, two_leaves: Path) -> None:
    files = "AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly in the data folders"
    assert command("sql", "-q", "jobs", "-t", two_leaves).err == (
        f"no rows: metrics.job_totals is empty: no files of {files} (warehouse doctor -t {two_leaves})\n"
    )
    shown = " ".join(command("show", "metrics.flow_locality_hour", "-t", two_leaves).out.split())
    assert "metrics.flow_locality_hour is empty: no files of flow" in shown
    with closing(connect(two_leaves)) as connection:
        assert reasons_of(connection, ["metrics.port_hour", "no.such"]) == {}
