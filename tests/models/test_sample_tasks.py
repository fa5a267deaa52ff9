"""The planted tasks are found: ranks, ports, paths, iterations, and the bytes of each NIC and iteration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.models.conftest import Planted

QUIET = "metrics.task_iteration_traffic JOIN '{truth}' AS t USING (task, iteration, pod, hca)"


def _tasks(planted: Planted) -> list[dict[str, Any]]:
    found = planted.truth["tasks"]
    assert {task["trainer"] for task in found} == {"deepspeed", "megatron", "hf_trainer"}
    return list(found)


def _expected(planted: Planted, part: str, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted(
        ((task["task"], *(row[name] for name in names)) for task in _tasks(planted) for row in task[part]), key=str
    )


LOGGED = "evidence IN ('log', 'inferred:nic_sheet_order')"


def test_pods_with_their_servers_and_ranks(planted: Planted) -> None:
    names = ("pod", "server", "start_utc", "first_rank", "ranks")
    found = planted.rows(
        "SELECT task, pod, server, strftime(start_utc, '%Y-%m-%d %H:%M:%S'), first_rank, ranks "
        "FROM topology.task_pods WHERE source = 'log'"
    )
    assert found == _expected(planted, "pods", names)
    assert any(pod.endswith("worker-2") and first == 24 for _, pod, _, _, first, _ in found)


def test_every_nic_of_a_task_with_its_port(planted: Planted) -> None:
    names = ("pod", "hca", "hca_index", "nic", "switch", "port", "evidence")
    assert planted.rows(f"SELECT task, {', '.join(names)} FROM topology.task_ports WHERE {LOGGED}") == _expected(
        planted, "ports", names
    )


def test_every_path_with_how_it_is_known(planted: Planted) -> None:
    ends = ("server", "hca", "port", "evidence")
    names: tuple[str, ...] = ("communicator", "channel", "kind", "src_rank", "dst_rank", "evidence")
    names += tuple(f"{side}_{name}" for side in ("src", "dst") for name in ends)
    found = planted.rows(f"SELECT task, {', '.join(names)} FROM topology.rank_paths")
    assert found == _expected(planted, "paths", names)
    assert {row[6] for row in found} == {"log", "listed", "inferred:ring_pattern"}


def test_the_path_of_a_rank_has_its_communicator(command: Command, built: Path) -> None:
    said = command("sql", "-q", "rank-path", "--format", "table", "-t", built).out
    assert re.search(r"^world-1 +0 +ring +9 +0 +mlx5_3 +Leaf-1 1/0/2:2 +GPU-63$", said, re.MULTILINE), said


def test_what_the_logs_say_of_each_task(planted: Planted) -> None:
    names: tuple[str, ...] = ("task", "trainer", "iterations", "params", "tokens_per_iteration")
    expected = sorted((tuple(task[name] for name in names) for task in _tasks(planted)), key=str)
    assert planted.rows(f"SELECT {', '.join(names)} FROM metrics.task_summary WHERE source = 'log'") == expected
    names = ("task", "expected_nominal_bytes", "expected_implemented_bytes")
    expected = sorted((tuple(task[name] for name in names) for task in _tasks(planted)), key=str)
    assert planted.rows(f"SELECT {', '.join(names)} FROM metrics.task_expected_bytes") == expected


def test_iterations_begin_and_end_with_the_planted_ones(planted: Planted) -> None:
    for task in _tasks(planted):
        if task["trainer"] != "deepspeed":
            continue  # whole seconds only
        found = planted.rows(
            "SELECT strftime(min(end_utc), '%Y-%m-%d %H:%M:%S.%g'), strftime(max(end_utc), '%Y-%m-%d %H:%M:%S.%g'), "
            f"count(DISTINCT iteration), max(iteration) FROM metrics.task_iterations WHERE task = '{task['task']}'"
        )
        assert found == [
            (task["first_iteration_utc"], task["last_iteration_utc"], task["iterations"], task["iterations"])
        ]


def test_the_median_iteration_is_the_period_of_the_traffic(planted: Planted) -> None:
    periods = {task["task"]: task["period_seconds"] for task in _tasks(planted) if task["job"]}
    assert len(periods) == 3
    for name, seconds in planted.rows(
        "SELECT task, iteration_p50_seconds FROM metrics.task_summary WHERE source = 'log'"
    ):
        if name in periods:
            assert seconds == pytest.approx(periods[name], rel=0.003)


def test_checkpoints_cost_what_they_do(planted: Planted) -> None:
    expected = _expected(planted, "checkpoints", ("iteration", "extra_seconds"))
    found = planted.rows("SELECT task, iteration, extra_seconds FROM metrics.task_checkpoints")
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], abs=0.06)


def test_a_restart_with_what_it_cost(planted: Planted) -> None:
    names = ("after_iteration", "lost_iterations", "down_seconds", "reason")
    expected = _expected(planted, "restarts", names)
    assert [row[1:3] for row in expected] == [(10, 2)]
    assert planted.rows(f"SELECT task, {', '.join(names)} FROM metrics.task_restarts") == expected
    totals = planted.rows("SELECT task, restarts, down_seconds FROM metrics.task_summary WHERE restarts > 0")
    assert totals == [(task, 1, seconds) for task, _, _, seconds, _ in expected]


def test_time_of_a_restart_is_time_of_no_iteration_and_of_no_checkpoint(planted: Planted) -> None:
    restart = "metrics.task_restarts AS r JOIN metrics.{} AS t USING (cluster, task)"
    within = "t.start_utc < r.end_utc AND t.end_utc > r.start_utc"
    for table in ("task_iterations", "task_checkpoints"):
        found = f"SELECT count(*), count(*) FILTER (WHERE {within}) FROM {restart.format(table)}"
        ((rows, inside),) = planted.rows(found)
        assert rows > 0
        assert inside == 0
    ((longest, usual),) = planted.rows(
        "SELECT max(t.seconds), median(t.seconds) FROM " + restart.format("task_iterations")
    )
    assert longest < 1.01 * usual


def _compared(planted: Planted, columns: str, where: str) -> list[tuple[Any, ...]]:
    truth = planted.root / "truth" / "task_iteration.parquet"
    return planted.rows(f"SELECT {columns} FROM {QUIET.format(truth=truth)} WHERE {where} GROUP BY ALL")


def test_each_iteration_and_nic_has_its_status(planted: Planted) -> None:
    count = planted.rows("SELECT count(*) FROM metrics.task_iteration_traffic")
    assert count == [(planted.truth["task_iteration_rows"],)]
    assert _compared(planted, "count(*)", "task_iteration_traffic.status <> t.status") == [(0,)]
    statuses = {status for (status,) in planted.rows("SELECT DISTINCT status FROM metrics.task_iteration_traffic")}
    assert statuses == {"ok", "shared", "no_overlap"}


def test_bytes_of_each_iteration_are_the_planted_ones(planted: Planted) -> None:
    """Outside the opening gap. On job-1, reads from storage and bursts do not stop between iterations."""
    off = "greatest(abs(rx_bytes - t.rx_bytes) / t.rx_bytes, abs(tx_bytes - t.tx_bytes) / t.tx_bytes)"
    off = off.replace("(rx", "(task_iteration_traffic.rx").replace("(tx", "(task_iteration_traffic.tx")
    seen = "quality = 'fine' AND observed_share = 1"
    jobs = {task["task"]: task["job"] for task in _tasks(planted)}
    found = _compared(planted, f"task, count(*), max({off}), quantile_cont({off}, 0.9)", seen)
    by_job = {jobs[name]: (count, most, usual) for name, count, most, usual in found}
    for job in ("job-4", "job-5"):
        count, most, _ = by_job[job]
        assert count > 100
        assert most < 0.001
    count, _, usual = by_job["job-1"]
    assert count > 1000
    assert usual < 0.005


def test_bytes_of_a_task_are_what_its_framework_should_send(planted: Planted) -> None:
    """The planted pulses have the size of DeepSpeed's and Megatron's real exchange, not of the books'."""
    found = planted.rows(
        "SELECT task, sum(tx_bytes) / sum(expected_implemented_bytes), sum(tx_bytes) / sum(expected_nominal_bytes) "
        "FROM metrics.task_iteration_traffic WHERE quality = 'fine' AND observed_share = 1 GROUP BY task"
    )
    jobs = {task["task"]: task["job"] for task in _tasks(planted)}
    for name, implemented, nominal in found:
        if jobs[name]:
            assert implemented == pytest.approx(1, abs=0.05)
            assert nominal > 1.4
    whole = planted.rows(
        "SELECT task, sum(tx_bytes) / sum(expected_implemented_bytes) FROM metrics.task_traffic "
        "WHERE source = 'log' GROUP BY task"
    )
    assert all(0.85 < ratio < 1.1 for name, ratio in whole if jobs[name])  # with the opening gap


def test_a_task_of_another_week_has_no_bytes_but_a_gap(planted: Planted) -> None:
    earlier = [task for task in _tasks(planted) if task["first_iteration_utc"] < "2024-05-20"]
    (only,) = [task for task in earlier if not task["restarts"]]
    found = planted.rows(
        "SELECT status, min(gap_seconds), count(*), count(rx_bytes) FROM metrics.task_traffic "
        f"WHERE task = '{only['task']}' GROUP BY 1"
    )
    assert found[0][0::2] == ("no_overlap", 8)
    assert found[0][3] == 0
    assert found[0][1] == pytest.approx(604_283, abs=60)


def test_cut_logs_lose_one_line_a_pod(planted: Planted) -> None:
    (cut,) = [task for task in _tasks(planted) if task["is_cut"]]
    found = planted.rows("SELECT file, reason FROM staging.rejected_rows WHERE file LIKE '%taskinfo%'")
    assert len(found) == len(cut["pods"])
    assert all(cut["task"] in file and reason.startswith("torn") for file, reason in found)
