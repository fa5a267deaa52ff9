"""A NIC that several tasks have at a time: its bytes are those of all, and every place says so."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import call
from warehouse.project.project import Project
from warehouse.reader.named_queries import load_queries

if TYPE_CHECKING:
    from tests.models.conftest import Planted


def _tasks_at(planted: Planted) -> dict[str, int]:
    """How many planted tasks a pod's server has at the same time as each task, from the truth."""
    spans = {
        row[0]: (set(row[1]), row[2], row[3])
        for row in planted.rows(
            "SELECT s.task, list(DISTINCT p.server), s.start_utc, s.end_utc FROM metrics.task_summary AS s "
            "JOIN topology.task_pods AS p USING (cluster, task) WHERE s.source = 'log' GROUP BY ALL"
        )
    }
    return {
        name: sum(bool(servers & other) and begin < end and start < finish for other, begin, finish in spans.values())
        for name, (servers, start, end) in spans.items()
    }


def test_a_shared_nic_says_of_how_many_tasks_its_bytes_are(planted: Planted) -> None:
    at_a_time = _tasks_at(planted)
    found = planted.rows("SELECT DISTINCT task, status, tasks_on_nic FROM metrics.task_traffic WHERE source = 'log'")
    assert {status for _, status, _ in found} == {"ok", "shared", "no_overlap"}
    for task, _, tasks_on_nic in found:
        assert tasks_on_nic == at_a_time[task]


@pytest.mark.parametrize(("query", "shared"), [("20240523-1556-2", 2), ("20240523-1554-4", 1)])
def test_bytes_of_a_task_say_how_many_tasks_they_are_of(planted: Planted, query: str, shared: int) -> None:
    sql = load_queries(Project.open().query_folders)["task-bytes"].sql.replace("$task", f"'{query}'")
    assert set(planted.rows(f"SELECT tasks_on_nic FROM ({sql}) WHERE tx_bytes > 0")) == {(shared,)}


def test_a_task_that_ended_before_the_counters_has_its_expected_bytes_and_the_reason(planted: Planted) -> None:
    (task,) = planted.rows(
        "SELECT task FROM metrics.task_traffic GROUP BY task "
        "HAVING bool_and(status = 'no_overlap') AND max(expected_nominal_bytes) IS NOT NULL ORDER BY task"
    )[0]
    asked = ("sql", "-q", "task-bytes", "--task", task, "-t", planted.target, "--format")
    said = call(*asked, "table", cwd=planted.target.parent).out
    assert re.search(r"^mlx5_2 +no_overlap +NULL +[\d.]+ [MG]B +[\d.]+ [MG]B +NULL$", said, re.MULTILINE), said
    [reason] = {row["reason"] for row in json.loads(call(*asked, "json", cwd=planted.target.parent).out)}
    assert re.fullmatch(r"the log ended \d+ days before the counters", reason)


def test_the_figure_says_that_bytes_are_of_all_tasks_of_a_nic(planted: Planted) -> None:
    sql = load_queries(Project.open().report_folders)["task-traffic"].sql
    rows = planted.rows(f"SELECT place, task, tx_bytes, tasks_on_nic, conclusion FROM ({sql})")
    [conclusion] = {row[-1] for row in rows}
    observed = sum(tx_bytes is not None for _, _, tx_bytes, _, _ in rows)
    assert conclusion.startswith(f"{observed} of {len(rows)} tasks ran on observed NICs")
    shared = {task: tasks for _, task, _, tasks, _ in sorted(rows) if (tasks or 0) > 1}
    assert shared
    assert conclusion.endswith(
        f" * NICs of {', '.join(shared)} had up to {max(shared.values())} tasks at a time: "
        "their bytes are those of all tasks together."
    )


def test_an_uplink_stands_beside_the_intake_of_its_whole_leaf(planted: Planted) -> None:
    sql = load_queries(Project.open().query_folders)["uplink-tasks"].sql.replace("$hour", "NULL").replace("$limit", "9")
    rows = planted.rows(
        "SELECT u.leaf_port, sum(u.leaf_in_bytes) / any_value(l.access_in_bytes), sum(u.share_of_leaf) "
        f"FROM ({sql}) AS u "
        "JOIN metrics.leaf_hour AS l ON l.cluster = u.cluster AND l.switch = u.leaf AND l.hour_utc = u.hour_utc "
        "GROUP BY u.leaf, u.leaf_port"
    )
    assert len(rows) == 9
    for _, part, shares in rows:  # all but ports that moved next to nothing
        assert part == pytest.approx(1, abs=1e-4)
        assert shares == pytest.approx(1, abs=0.01)
