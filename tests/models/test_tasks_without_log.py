"""Tasks of tasks.csv and jobs found in the traffic, against plain Python over the raw files."""

from __future__ import annotations

import csv
import json
import re
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
