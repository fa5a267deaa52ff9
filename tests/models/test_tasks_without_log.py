"""Tasks of tasks.csv and jobs found in the traffic, against plain Python over the raw files."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import warehouse
from bench.acceptance_rules import Poll, seconds

HOUR_MS = 3_600_000


def rows_of(built: Path, sql: str) -> list[tuple[Any, ...]]:
    with warehouse.open(built) as connection:
        return connection.execute(sql).fetchall()


def moved(sample: Path, switch: str, port: str, start: datetime, end: datetime) -> tuple[int, int]:
    """Return the bytes that a port sent and received in whole seconds of the first hour, from its CSV file."""
    number = "_".join(re.findall(r"\d+", port.partition("1/0/")[2]))
    [path] = sample.glob(f"zhejiang/cluster_sample/trafficinfo/2024052400/*-{switch}_GPU_*/{switch}_{number}.csv")
    with path.open(encoding="utf-8") as stream:
        polls = [
            Poll(int(row["SaveTimeUTC"]) % HOUR_MS, int(row["InOctets"]), int(row["OutOctets"]))
            for row in csv.DictReader(stream)
        ]
    found = seconds(polls)
    chosen = range(start.minute * 60 + start.second, end.minute * 60 + end.second)
    return sum(found[at][1] for at in chosen if at in found), sum(found[at][0] for at in chosen if at in found)


def test_a_listed_task_has_the_bytes_of_its_ports_in_its_time(sample: Path, built: Path) -> None:
    [truth] = json.loads((sample / "truth.json").read_text())["listed_tasks"]
    start, end = (datetime.fromisoformat(truth[name]) for name in ("start_utc", "end_utc"))
    found = rows_of(
        built,
        "SELECT server, switch, port, rx_bytes, tx_bytes, status, observed_seconds, start_utc, end_utc "
        f"FROM metrics.task_traffic WHERE task = '{truth['task']}'",
    )
    assert {row[0] for row in found} == set(truth["servers"])
    assert len(found) >= len(truth["servers"])
    assert {row[5:] for row in found} == {("ok", (end - start).total_seconds(), start, end)}
    for _, switch, port, rx_bytes, tx_bytes, *_ in found:
        assert (rx_bytes, tx_bytes) == moved(sample, switch, port, start, end), (switch, port)
    assert sum(row[3] for row in found) > 1e12


def test_a_misspelled_server_is_named_with_servers_like_it_and_a_step_of_a_job_is_rejected(
    built: Path,
) -> None:
    [(pod, server, nearest)] = rows_of(
        built, "SELECT pod, server, nearest FROM topology.task_pods WHERE task = '48214'"
    )
    assert server is None
    assert "GPU-4" in nearest.split(", ")
    failures = rows_of(built, "SELECT sentence FROM meta.failures WHERE model = 'topology.task_pods'")
    assert [text for (text,) in failures] == [f"48214: no sheet has a server {pod}; names like it: {nearest}"]
    assert rows_of(built, "SELECT line, reason FROM staging.rejected_rows WHERE file LIKE '%tasks.csv'") == [
        (3, "a step of job 48213, whose own line counts")
    ]


def test_jobs_of_the_traffic_have_the_bytes_of_their_servers(built: Path) -> None:
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for hour, job, rx_bytes, tx_bytes in rows_of(
        built,
        "SELECT g.hour_utc, g.group_id, h.rx_bytes, h.tx_bytes FROM metrics.traffic_groups AS g "
        "JOIN metrics.server_hour AS h USING (cluster, server, hour_utc)",
    ):
        sums = expected[f"traffic-{hour:%Y-%m-%dT%H}-{job}"]
        sums[0] += rx_bytes
        sums[1] += tx_bytes
    found = rows_of(
        built,
        "SELECT task, sum(rx_bytes), sum(tx_bytes), min(rx_bytes) IS NOT NULL, any_value(status) "
        "FROM metrics.task_traffic WHERE source = 'inferred:traffic' GROUP BY task",
    )
    assert {task: [rx, tx] for task, rx, tx, *_ in found} == expected
    assert expected, "the sample has a job that shows in its traffic"
    assert {row[3:] for row in found} == {(True, "ok")}
    both = rows_of(
        built,
        "SELECT count(*) FROM metrics.task_traffic AS a JOIN metrics.task_traffic AS b "
        "USING (cluster, switch, port) WHERE a.source = 'log' AND b.source = 'inferred:traffic' AND a.tasks_on_nic > 2",
    )
    assert both == [(0,)], "a job of the traffic is not another task on a NIC"


def test_neighbors_share_a_leaf_and_its_minutes(built: Path) -> None:
    """On a leaf where the task sends in each of its three minutes, all bytes are its own or those of neighbors."""
    relation = warehouse.query("task-neighbors", target=built, task="48213", limit=500)
    found = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    sums = (
        "SELECT m.switch, sum(m.in_bytes)::BIGINT FROM metrics.port_minute AS m JOIN {} WHERE {} "
        "AND m.minute_utc >= '2024-05-23 16:01:00' AND m.minute_utc < '2024-05-23 16:04:00' GROUP BY ALL"
    )
    task = "metrics.task_traffic AS t USING (cluster, switch, port)", "t.task = '48213'"
    ports = "staging.port_files AS f USING (cluster, switch, port, hour_utc)", "f.port_class = 'access'"
    own, everything = dict(rows_of(built, sums.format(*task))), dict(rows_of(built, sums.format(*ports)))
    for row in found:
        assert row["own_bytes"] == own[row["leaf"]]
        assert row["minutes"] <= 3
        assert row["neighbor"] != "48213"
    busy = {row["leaf"] for row in found if row["minutes"] == 3}
    assert busy
    for leaf in busy:
        assert own[leaf] + sum(row["bytes"] for row in found if row["leaf"] == leaf) == everything[leaf], leaf
