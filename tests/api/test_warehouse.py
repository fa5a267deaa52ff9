"""The class `Warehouse`: answers, tables, citations, and errors of one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.api.answer import Answer


@pytest.fixture(scope="module")
def traces(built: Path) -> warehouse.Warehouse:
    return warehouse.Warehouse(built)


def test_an_answer_is_a_relation_with_units_and_meanings(traces: warehouse.Warehouse) -> None:
    answer = traces.sql(
        "SELECT switch, in_bytes, in_utilization, in_bytes / 2 AS x FROM metrics.port_hour ORDER BY ALL"
    )
    assert answer.units == {"switch": None, "in_bytes": "B", "in_utilization": "share", "x": None}
    assert answer.meanings["switch"] == "short name of the switch"
    assert answer.relation.columns == answer.columns == ["switch", "in_bytes", "in_utilization", "x"]
    assert len(answer.fetchall()) == len(answer.df()) == len(answer.pl()) == answer.to_arrow_table().num_rows > 40
    assert "the first 40 rows" in answer._repr_html_()
    assert {"df", "fetchall", "filter", "units", "relation"} <= set(dir(answer)), "an editor completes them"


def test_a_notebook_shows_units_and_why_an_answer_is_empty(traces: warehouse.Warehouse) -> None:
    shown = traces.query("nic", server="GPU-1")._repr_html_()
    assert "TB</td>" in shown
    empty = traces.sql("FROM metrics.leaf_hour WHERE switch = 'Leaf-99'")._repr_html_()
    assert empty.startswith("<p>no rows: no switch Leaf-99; near: Leaf-")
    assert "<small>bytes that" in empty
    assert "<td>&lt;script&gt;</td>" in traces.sql("SELECT '<script>' AS x")._repr_html_()


def test_a_table_has_columns_checks_lineage_and_rows(traces: warehouse.Warehouse) -> None:
    table = traces.table("port_hour")
    assert table.name == "metrics.port_hour"
    assert table.grain == ("cluster", "switch", "port", "hour_utc")
    assert (table.columns["in_bytes"].type, table.columns["in_bytes"].unit) == ("BIGINT", "B")
    assert {check.status for check in table.checks} == {"passed"}
    assert "raw.port_counters" in table.lineage()
    assert "raw.port_counters" in table.lineage("in_bytes")
    assert table.relation().columns == list(table.columns)
    assert "<td>in_bytes</td><td>BIGINT</td><td>B</td>" in table._repr_html_()
    assert repr(table).startswith("metrics.port_hour  table, ")
    assert re.search(r"^in_bytes +BIGINT +B +sum ", repr(table), re.MULTILINE)
    assert max(map(len, repr(table).splitlines()[:-1])) <= 80


def test_a_citation_recomputes_also_with_values_that_are_no_text(
    traces: warehouse.Warehouse, target: Path, command: Command
) -> None:
    answers = (
        traces.sql("SELECT count(*) AS n FROM metrics.port_hour WHERE in_bytes > $least", least=10**9),
        traces.query("fullest-uplinks", limit=3),
        traces.table("leaf_hour").relation(),
    )
    for answer in answers:
        citation = traces.cite(answer)
        assert (citation.rows, citation.build) == (len(answer.fetchall()), traces.build_id)
        assert command("cite", citation.id, "-t", traces.settings.target).out.endswith("\nsame\n")
    with warehouse.Warehouse(target) as other:
        wrongs: tuple[Any, ...] = (answers[1].filter("in_bytes > 0"), other.sql("SELECT 1 AS a"))
        for wrong in wrongs:
            with pytest.raises(warehouse.WarehouseError, match="no answer of this Warehouse"):
                traces.cite(wrong)


def test_a_wrong_query_is_one_sentence(traces: warehouse.Warehouse) -> None:
    for sql, message in {
        "COPY (SELECT 1) TO 'x.csv'": "COPY is refused",
        "FROM read_text('/etc/hostname')": "outside the target",
        " ; SELECT\n  summ(in_bytes) FROM metrics.port_hour": "^no function summ, at 2:3\nnearest: sum$",
        "SELECT $least": r"^no value is given for \$least\n.*in Python least=VALUE$",
    }.items():
        with pytest.raises(warehouse.WarehouseError, match=message) as raised:
            traces.sql(sql)
        assert raised.value.__suppress_context__  # no traceback of the engine above it


def test_rows_that_cannot_be_computed_are_one_sentence(traces: warehouse.Warehouse) -> None:
    fetches: tuple[Callable[[Answer], object], ...] = (
        lambda one: one.df(), lambda one: one.to_arrow_table(), list, lambda one: one.x.union(one).pl()
    )  # fmt: skip
    for fetch in fetches:
        answer = traces.sql("SELECT (if(range < 600000, '1', 'leaf'))::INTEGER AS x FROM range(600001)")
        with pytest.raises(warehouse.WarehouseError, match=r"^Could not convert string 'leaf' to INT32$") as raised:
            fetch(answer)
        assert raised.value.__suppress_context__


def test_what_is_shown_says_an_error(traces: warehouse.Warehouse) -> None:
    answer = traces.sql("SELECT (switch || 'x')::INTEGER AS x FROM metrics.port_hour")
    said = "error: Could not convert string 'Leaf-1x' to INT32"
    assert (repr(answer), repr(answer.x)) == (said, said)
    assert answer._repr_html_() == f"<pre>{escape(said)}</pre>"
    with pytest.raises(warehouse.WarehouseError, match='"y" not found in FROM clause'):
        answer.filter("y > 1")


def test_answers_do_not_disturb_each_other(traces: warehouse.Warehouse) -> None:
    rows = iter(traces.sql("FROM range(10000)"))
    assert next(rows) == (0,)
    assert traces.tables("jobs")
    assert ("metrics.port_hour",) in traces.sql("SHOW TABLES").fetchall()
    assert len(traces.sql("DESCRIBE metrics.port_hour").fetchall()) == len(traces.table("port_hour").columns)
    assert len(list(rows)) == 9999


def test_an_unknown_name_says_the_nearest_and_a_wrong_place_is_refused(
    traces: warehouse.Warehouse, tmp_path: Path
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "nearest: metrics.leaf_hour": lambda: traces.table("leaf_hourz"),
        "nearest: leaf_hour": lambda: traces.tables("leaf_hourz"),
        "nearest: fullest-uplinks": lambda: traces.query("fulest-uplinks"),
        r"^the query has no \$leest\nnearest: least$": lambda: traces.sql("SELECT $least", leest=1, least=2),
        r"no table metrics\.leaf_hours": lambda: traces.export(tmp_path / "tables", "metrics.leaf_hours"),
        "lies in the target": lambda: traces.report(traces.settings.target / "report.html"),
        "no warehouse in nowhere": lambda: warehouse.Warehouse("nowhere"),
    }
    for message, ask in calls.items():
        with pytest.raises(warehouse.WarehouseError, match=message):
            ask()


def test_it_keeps_its_build(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    with warehouse.Warehouse(tiny.target, project=tiny.folder) as held:
        first, answer = held.build_id, held.sql("SELECT max(speed) AS speed FROM staging.ports")
        with pytest.raises(warehouse.WarehouseError, match="did not look for findings"):
            held.findings()
        model = (tiny.folder / "models/metrics/total.sql").read_text(encoding="utf-8")
        tiny.write("models/metrics/total.sql", model.replace("sum(speed)", "max(speed)"))
        assert tiny.build().status == 0
        assert (held.build_id, answer.fetchall()) == (first, [(40,)])
        with pytest.raises(warehouse.WarehouseError, match="has another build now"):
            held.cite(answer)
    assert warehouse.Warehouse(tiny.target).build_id != first
