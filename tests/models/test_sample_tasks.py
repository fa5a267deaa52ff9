"""Bytes of the planted tasks by NIC and iteration, with their times; tasks of tasks.csv against the raw files."""

from __future__ import annotations

import csv
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import warehouse
from bench.acceptance_files import seconds
from tests.models.conftest import Planted

HOUR_MS = 3_600_000
SEEN = "quality = 'fine' AND observed_share = 1"


def _jobs(planted: Planted) -> dict[str, Any]:
    """Return the planted job of each task with traffic of its own."""
    return {task["task"]: task["job"] for task in planted.truth["tasks"] if task["job"]}


def test_iterations_have_the_planted_times(planted: Planted) -> None:
    """Megatron-LM writes whole seconds. The median iteration is the period of the traffic."""
    tasks = {task["task"]: task for task in planted.truth["tasks"]}
    assert {task["trainer"] for task in tasks.values()} == {"deepspeed", "megatron", "hf_trainer"}
    stamp = "strftime({}(end_utc), '%Y-%m-%d %H:%M:%S.%g')"
    rows = planted.rows(
        f"SELECT task, {stamp.format('min')}, {stamp.format('max')}, median(seconds) FROM metrics.task_iterations "
        "GROUP BY task"
    )
    for name, first, last, usual in rows:
        task = tasks[name]
        if task["trainer"] == "deepspeed":
            assert (first, last) == (task["first_iteration_utc"], task["last_iteration_utc"])
        if task["job"]:
            assert usual == pytest.approx(task["period_seconds"], rel=0.003)


def test_checkpoints_cost_what_they_do(planted: Planted) -> None:
    expected = {
        (task["task"], one["iteration"]): one["extra_seconds"]
        for task in planted.truth["tasks"]
        for one in task["checkpoints"]
    }
    rows = planted.rows("SELECT task, iteration, extra_seconds FROM metrics.task_checkpoints")
    assert {row[:2]: row[2] for row in rows} == pytest.approx(expected, abs=0.06)


def test_each_iteration_and_nic_has_the_planted_status_and_bytes(planted: Planted) -> None:
    """Bytes outside the opening gap. On job-1, reads from storage and bursts do not stop between iterations."""
    truth = planted.root / "truth" / "task_iteration.parquet"
    joined = f"metrics.task_iteration_traffic AS m JOIN '{truth}' AS t USING (task, iteration, pod, hca)"
    assert planted.rows("SELECT count(*), list_sort(list(DISTINCT status)) FROM metrics.task_iteration_traffic") == [
        (planted.truth["task_iteration_rows"], ["no_overlap", "ok", "shared"])
    ]
    assert planted.rows(f"SELECT count(*) FROM {joined} WHERE m.status <> t.status") == [(0,)]
    off = "greatest(abs(m.rx_bytes - t.rx_bytes) / t.rx_bytes, abs(m.tx_bytes - t.tx_bytes) / t.tx_bytes)"
    jobs = _jobs(planted)
    by_job = {
        jobs.get(name): row
        for name, *row in planted.rows(
            f"SELECT task, count(*), max({off}), quantile_cont({off}, 0.9) FROM {joined} WHERE {SEEN} GROUP BY task"
        )
    }
    for job in ("job-4", "job-5"):
        assert by_job[job][0] > 100
        assert by_job[job][1] < 0.001
    assert by_job["job-1"][0] > 1000
    assert by_job["job-1"][2] < 0.005


def test_bytes_of_a_task_are_what_its_framework_should_send(planted: Planted) -> None:
    """The planted pulses have the size of DeepSpeed's and Megatron's real exchange, not of the books'."""
    jobs = _jobs(planted)
    found = planted.rows(
        "SELECT task, sum(tx_bytes) / sum(expected_implemented_bytes), sum(tx_bytes) / sum(expected_nominal_bytes) "
        f"FROM metrics.task_iteration_traffic WHERE {SEEN} GROUP BY task"
    )
    ratios = [row for row in found if row[0] in jobs]
    assert ratios
    for _, implemented, nominal in ratios:
        assert implemented == pytest.approx(1, abs=0.05)
        assert nominal > 1.4
    whole = planted.rows(
        "SELECT task, sum(tx_bytes) / sum(expected_implemented_bytes) FROM metrics.task_traffic "
        "WHERE source = 'log' GROUP BY task"
    )
    assert all(0.85 < ratio < 1.1 for name, ratio in whole if name in jobs)  # with the opening gap


def moved(sample: Path, switch: str, port: str, start: datetime, end: datetime) -> tuple[int, int]:
    """Return the bytes that a port sent and received in whole seconds of the first hour, from its CSV file."""
    number = "_".join(re.findall(r"\d+", port.partition("1/0/")[2]))
    [path] = sample.glob(f"zhejiang/cluster_sample/trafficinfo/2024052400/*-{switch}_GPU_*/{switch}_{number}.csv")
    with path.open(encoding="utf-8") as stream:
        polls = [
            (int(row["SaveTimeUTC"]) % HOUR_MS, int(row["InOctets"]), int(row["OutOctets"]))
            for row in csv.DictReader(stream)
        ]
    found = seconds(polls)
    chosen = range(start.minute * 60 + start.second, end.minute * 60 + end.second)
    return sum(found[at][1] for at in chosen if at in found), sum(found[at][0] for at in chosen if at in found)


def test_a_listed_task_has_the_bytes_of_its_ports_in_its_time(planted: Planted) -> None:
    [truth] = planted.truth["listed_tasks"]
    start, end = (datetime.fromisoformat(truth[name]) for name in ("start_utc", "end_utc"))
    found = planted.rows(
        "SELECT server, switch, port, rx_bytes, tx_bytes, status, observed_seconds, start_utc, end_utc "
        f"FROM metrics.task_traffic WHERE task = '{truth['task']}'",
    )
    assert {row[0] for row in found} == set(truth["servers"])
    assert len(found) >= len(truth["servers"])
    assert {row[5:] for row in found} == {("ok", (end - start).total_seconds(), start, end)}
    for _, switch, port, rx_bytes, tx_bytes, *_ in found:
        assert (rx_bytes, tx_bytes) == moved(planted.root, switch, port, start, end), (switch, port)
    assert sum(row[3] for row in found) > 1e12


def test_neighbors_share_a_leaf_and_its_minutes(planted: Planted) -> None:
    """On a leaf where the task sends in each of its three minutes, all bytes are its own or those of neighbors."""
    relation = warehouse.query("task-neighbors", target=planted.target, task="48213", limit=500)
    found = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    sums = (
        "SELECT m.switch, sum(m.in_bytes)::BIGINT FROM metrics.port_minute AS m JOIN {} WHERE {} "
        "AND m.minute_utc >= '2024-05-23 16:01:00' AND m.minute_utc < '2024-05-23 16:04:00' GROUP BY ALL"
    )
    task = "metrics.task_traffic AS t USING (cluster, switch, port)", "t.task = '48213'"
    ports = "staging.port_files AS f USING (cluster, switch, port, hour_utc)", "f.port_class = 'access'"
    own: dict[str, int] = dict(planted.rows(sums.format(*task)))
    everything: dict[str, int] = dict(planted.rows(sums.format(*ports)))
    for row in found:
        assert row["own_bytes"] == own[row["leaf"]]
        assert row["minutes"] <= 3
        assert row["neighbor"] != "48213"
    busy = {row["leaf"] for row in found if row["minutes"] == 3}
    assert busy
    for leaf in busy:
        assert own[leaf] + sum(row["bytes"] for row in found if row["leaf"] == leaf) == everything[leaf], leaf
