"""Answers of named queries: against Python over polls and seconds, against findings, and of a release in part."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.conftest import Command, call


def ask(target: Path, sql: str) -> list[Any]:
    with warehouse.open(target) as connection:
        return connection.execute(sql).fetchall()


def test_lost_polls_stand_beside_the_traffic_at_that_time(built: Path) -> None:
    """Missing polls, and the utilization of the seconds that lost a poll beside that of the other seconds."""
    hour = "hour_utc = '2024-05-23 16:00:00'"
    found = warehouse.query("lost-polls", target=built, hour="2024-05-23 16:00:00", limit=1)
    first = dict(zip(found.columns, found.fetchall()[0], strict=True))
    assert [(first["missing_polls"],)] == ask(built, f"SELECT max(missing_polls) FROM metrics.port_hour WHERE {hour}")
    place = f"switch = '{first['switch']}' AND {hour}"
    [(key, rate)] = ask(
        built, f"SELECT file_key, line_rate_bps FROM staging.port_files WHERE {place} AND port = '{first['port']}'"
    )
    stored = set(ask(built, f"SELECT offset_ms FROM staging.port_readings WHERE file_key = {key} AND {hour}"))
    polls = ask(built, f"SELECT offset_ms FROM staging.switch_polls WHERE {place}")
    lost = {at // 1000 for (at,) in set(polls) - stored}
    by_loss: dict[bool, list[int]] = defaultdict(list)
    for second, moved in ask(
        built,
        "SELECT second, greatest(in_bytes, out_bytes) FROM staging.port_seconds "
        f"WHERE file_key = {key} AND {hour} AND longest_ms <= 10000",
    ):
        by_loss[second in lost].append(moved)
    for name, is_lost in (("at_lost", True), ("at_other", False)):
        values = by_loss[is_lost]
        assert first[name] == pytest.approx(sum(values) / len(values) * 8 / rate, abs=1e-4), name


def test_groups_have_the_bytes_and_the_share_of_the_finding(command: Command, built: Path) -> None:
    found = json.loads(command("findings", "--json", "-t", built).out)
    [job] = [one for one in found if one["kind"] == "job_trades_most"]
    rows = json.loads(command("sql", "-q", "traffic-jobs", "--hour", job["hour_utc"], "--json", "-t", built).out)
    assert rows[0]["bytes"] == job["number"]
    assert f", {100 * rows[0]['access_share']:.1f} % of the bytes of all servers" in job["sentence"]


def test_a_job_says_who_where_and_how_often(command: Command, built: Path) -> None:
    rows = json.loads(command("sql", "-q", "traffic-jobs", "--json", "-t", built).out)
    told = {row["group_id"]: row for row in rows}
    jobs = ask(
        built,
        "SELECT group_id, servers, leaves, period_seconds, period_error_seconds, resolved_from, clock_of, task "
        "FROM metrics.traffic_jobs WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.traffic_jobs)",
    )
    assert sorted(job[0] for job in jobs) == sorted(told)
    for job, servers, leaves, period, error, source, clock, task in jobs:
        row = told[job]
        assert (len(row["which"].split()), len(row["on_leaves"].split())) == (servers, leaves)
        assert (f"; in step with job {clock}, " in row["pulses"]) == (clock is not None)
        assert row["pulses"].endswith(f"; log of {task}") == (task is not None)
        if period is None:
            assert (row["period"], row["pulses"].startswith("not resolved: ")) == (None, True)
            continue
        digits = len(row["period"].split(" ± ")[1].removesuffix(" s").partition(".")[2])
        assert row["period"] == f"{period:.{digits}f} ± {error:.{digits}f} s"
        assert 10**-digits <= error < 10 ** (1 - digits) or error >= 1
        sums = " in the sum of the servers only" if source == "group" else " in single servers"
        assert sums in row["pulses"]


def test_the_bytes_of_a_group_are_those_at_loaded_leaves(two_leaves: Path, command: Command) -> None:
    """Two of the four leaves that the servers of a job are plugged into are loaded."""
    found = json.loads(command("findings", "--json", "-t", two_leaves).out)
    said = {one["kind"]: one["sentence"] for one in found}
    assert " at their NICs on loaded leaves (2 of 4 per server), " in said["job_trades_most"]
    assert said["fullest_link"].startswith("Of the links observed (2 of 9 leaves), the fullest is ")


@pytest.mark.real
def test_two_servers_whose_ports_no_sheet_tells_apart_have_a_name_together(
    real_output: tuple[Path, str], tmp_path: Path
) -> None:
    said = call("sql", "-q", "nic", "--server", "GPU-123/124", "-t", real_output[0], cwd=tmp_path)
    assert "TwoHundredGigE1/0/2:2" in said.out
