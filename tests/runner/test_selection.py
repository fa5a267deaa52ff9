"""Builds of selected models."""

from __future__ import annotations

from tests.runner.conftest import COLUMNS
from tests.tiny import Tiny


def test_a_selection_builds_its_models_and_marks_the_rest_stale(tiny: Tiny) -> None:
    tiny.model(
        "metrics.count",
        "SELECT 'all' AS name, count(*) AS ports FROM staging.ports",
        {"name": "VARCHAR", "ports": "BIGINT"},
    )
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.count")
    assert said.status == 0
    assert "stale metrics.total was not selected and keeps its last rows" in said.err_text
    assert tiny.ask("SELECT ports FROM metrics.count") == [(1,)]
    assert tiny.ask("SELECT speed FROM metrics.total") == [(50,)]
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == [("metrics.total",)]
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("SELECT model FROM meta.models WHERE stale") == []


def test_a_check_of_a_stale_part_is_skipped_and_reported(tiny: Tiny) -> None:
    tiny.model(
        "metrics.count",
        "SELECT 'all' AS name, sum(speed) AS speed FROM staging.ports",
        {"name": "VARCHAR", "speed": "BIGINT"},
        "checks: ['total(speed) = total(metrics.total.speed)', 'speed > 0']",
    )
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "+metrics.count")
    assert said.status == 0, said.err
    why = "metrics.count: total(speed) = total(metrics.total.speed): not checked: metrics.total is stale"
    assert why in said.err_text
    assert "1 not checked" in said.err_text
    asked = "SELECT check_text, status FROM meta.checks WHERE model = 'metrics.count' ORDER BY ALL"
    assert tiny.ask(asked) == [
        ("grain(name)", "passed"),
        ("speed > 0", "passed"),
        ("total(speed) = total(metrics.total.speed)", "not checked: metrics.total is stale"),
    ]
    assert tiny.ask("SELECT speed FROM metrics.count") == [(1,)]
    tiny.made()
    assert {status for _, status in tiny.ask(asked)} == {"passed"}


def test_a_check_of_a_part_with_stale_inputs_is_skipped_too(tiny: Tiny) -> None:
    total = {"name": "VARCHAR", "speed": "BIGINT"}
    tiny.model("metrics.fresh", "SELECT 'all' AS name, sum(speed) AS speed FROM reference.speeds", total)
    check = "checks: ['total(speed) = total(metrics.fresh.speed)']"
    tiny.model("metrics.again", "SELECT name, speed FROM metrics.total", total, check)
    tiny.model(
        "metrics.seen", "SELECT name, speed FROM metrics.total", total, "materialize: view",
        "checks: ['total(speed) = total(metrics.fresh.speed)']",
    )  # fmt: skip
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,1")
    said = tiny.build("-s", "metrics.fresh")
    assert said.status == 0, said.err
    assert tiny.ask("SELECT speed FROM metrics.again") == [(50,)]
    assert tiny.ask("SELECT status FROM meta.checks WHERE model = 'metrics.seen'") == [
        ("not checked: metrics.total is stale",)
    ]
    tiny.made()
    assert tiny.ask("SELECT speed FROM metrics.again") == [(1,)]
    assert tiny.ask("SELECT count(*) FROM meta.checks WHERE status <> 'passed'") == [(0,)]


def test_a_first_build_makes_all_models_despite_a_selection(tiny: Tiny) -> None:
    assert tiny.made("-s", "staging") == {"staging.ports", "metrics.total"}


def test_a_selection_of_nothing_is_a_usage_error(tiny: Tiny) -> None:
    said = tiny.build("-s", "metrics.totl")
    assert said.status == 2
    assert "error: --select metrics.totl: no model has this name\n       nearest: metrics.total" in said.err
