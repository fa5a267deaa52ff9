"""Explanations come after the answer, in time of their own, and never cost it."""

from __future__ import annotations

import io
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.reader import explanations, user_query
from warehouse.reader.connection import connect
from warehouse.reader.guard import check_read_only
from warehouse.reader.interrupt import interruptible
from warehouse.reader.result import Asked
from warehouse.reader.user_query import run_query
from warehouse.reader.why_empty import no_rows

if TYPE_CHECKING:
    import duckdb

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


def test_a_table_that_is_cut_says_how_many_rows_there_are_if_that_is_quick(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(rows: int) -> str:
        stream = io.StringIO()
        assert run_query(target, f"FROM range({rows})", format="table", limit=2, stream=stream) == 0
        return stream.getvalue().splitlines()[-1]

    assert said(1_245) == "1,245 rows, 2 shown"
    monkeypatch.setattr(explanations, "SECONDS", 0.2)
    assert said(10**12) == "more than 2 rows, 2 shown"


def test_explanations_of_several_statements_name_them(target: Path, command: Command) -> None:
    sql = "SELECT 1 AS a; SELECT 2 AS b WHERE false; FROM range(3)"
    said = command("sql", sql, "--format", "table", "--limit", "2", "-t", target)
    assert said.out.endswith("statement 3: 3 rows, 2 shown\n")
    assert said.err == "statement 2: no rows: none meets the conditions of the query\n"


class Recorder:
    """Connection that records the tables that it is asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.tables: set[str] = set()

    def execute(self, sql: str, *values: Any) -> duckdb.DuckDBPyConnection:
        self.tables |= set(re.findall(r"(?:FROM|JOIN) ([\w.\"]+)", sql))
        return self._connection.execute(sql, *values)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM staging.port_counters WHERE switch = 'Leaf-99'",
        "FROM metrics.port_second AS p JOIN topology.switches USING (switch) WHERE p.port = 'x' AND p.cluster = 'y'",
        "FROM metrics.jobs WHERE job_type = 'none' AND trace = 'acme'",
        "FROM staging.port_seconds WHERE file_key = -1",
    ],
)
def test_reasons_read_no_large_table(built: Path, sql: str) -> None:
    with closing(connect(built)) as connection:
        [statement] = check_read_only(connection, sql)
        recorder = Recorder(connection)
        assert no_rows(recorder, statement, Asked(built, None, {}, {})).startswith("no rows: ")  # type: ignore[arg-type]
        small = connection.execute("SELECT model FROM meta.models WHERE kind = 'table' AND rows < 10000").fetchall()
    allowed = {one for (one,) in small} | {"duckdb_tables", "duckdb_columns"}
    read = {name.replace('"', "") for name in recorder.tables}
    assert {name for name in read if not name.startswith("meta.")} <= allowed
