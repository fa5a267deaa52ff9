"""Explanations come after the answer, in time of their own, and never cost it: why it is empty, how many rows."""

from __future__ import annotations

import io
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.formats import known_formats
from warehouse.graph.empty_tables import EmptyTables
from warehouse.reader import explanations, user_query
from warehouse.reader.connection import connect
from warehouse.reader.explanations import reasons_of
from warehouse.reader.interrupt import interruptible
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command


def test_the_clock_of_a_query_stops_before_explanations(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def clocked(*arguments: Any, **named: Any) -> Any:
        answers = interruptible(*arguments, **named)
        order.append("clock stopped")
        return answers

    def explained(*arguments: Any, **named: Any) -> None:
        order.append("explained")
        explanations.explain(*arguments, **named)

    monkeypatch.setattr(user_query, "interruptible", clocked)
    monkeypatch.setattr(user_query, "explain", explained)
    assert run_query(target, "SELECT 1 AS one WHERE false", stream=io.StringIO()) == 0
    assert order == ["clock stopped", "explained"]


def test_an_empty_answer_within_a_timeout_has_its_reason(command: Command, built: Path) -> None:
    sql = "SELECT time_utc, in_bytes FROM staging.port_counters WHERE switch = 'Leaf-99'"
    said = command("sql", sql, "--timeout", "300", "-t", built)
    assert (said.status, said.out) == (0, "time_utc,in_bytes\n")
    assert said.err.startswith("no rows: no switch Leaf-99; near: Leaf-")


def test_a_table_that_is_cut_says_how_many_rows_there_are(target: Path) -> None:
    def said(rows: int) -> str:
        stream = io.StringIO()
        assert run_query(target, f"FROM range({rows})", format="table", limit=2, stream=stream) == 0
        return stream.getvalue().splitlines()[-1]

    assert said(1_245) == "1,245 rows, 2 shown"
    assert said(10**12) == "more than 100,000 rows, 2 shown"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-q", "nic", "--server", "GPU-999"], "no server GPU-999; near: GPU-"),
        (["-q", "hottest-uplinks", "--leaf", "leaf_1"], "no switch leaf_1; near: Leaf-1"),
        (["-q", "busiest-servers", "--hour", "2020-01-01"], "the hour 2020-01-01 is not loaded; loaded"),
        (["FROM metrics.jobs WHERE trace = 'borg'"], "no trace borg; there are acme, helios, itp, pai and 1 more"),
        (["FROM metrics.server_hour AS s WHERE s.server = 'GPU-999'"], "no server GPU-999; near: GPU-"),
        (["FROM metrics.leaf_hour WHERE switch = 'Leaf-1' AND in_bytes < 0"], "none meets the conditions of the query"),
        (["FROM metrics.utilization_distribution"], "metrics.utilization_distribution is empty: "),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)  # fmt: skip
def test_an_empty_answer_has_a_reason(command: Command, built: Path, arguments: list[str], reason: str) -> None:
    said = command("sql", *arguments, "--format", "csv", "-t", built)
    assert said.status == 0
    assert said.err.startswith(f"no rows: {reason}")


def test_an_empty_table_names_the_missing_files(command: Command, two_leaves: Path) -> None:
    files = "AcmeTrace, Alibaba GPU v2023, Helios, ITP, PAI or Philly in the data folders"
    assert command("sql", "-q", "jobs", "-t", two_leaves).err == (
        f"no rows: metrics.job_totals is empty: no files of {files} (warehouse doctor -t {two_leaves})\n"
    )
    shown = " ".join(command("show", "metrics.flow_locality_hour", "-t", two_leaves).out.split())
    assert "metrics.flow_locality_hour is empty: no files of flow" in shown
    with closing(connect(two_leaves)) as connection:
        assert reasons_of(connection, ["metrics.port_hour", "no.such"]) == {}


@pytest.mark.parametrize(
    ("loaded", "reason"),
    [
        ((), "no files of AcmeTrace in the data folders"),
        (("acme.utilization",), "no files of jobs of AcmeTrace in the data folders"),
    ],
)
def test_files_that_are_missing_beside_others_of_the_trace_are_named(loaded: tuple[str, ...], reason: str) -> None:
    [relation] = [one.full_name for form in known_formats() if form.name == "acme.jobs" for one in form.relations][:1]
    needs = {"metrics.jobs": [[relation]], relation: []}
    tables = EmptyTables({"metrics.jobs": "table", relation: "raw"}, {"metrics.jobs": 0}, needs, {}, loaded)
    assert tables.reason("metrics.jobs") == reason
