"""Periods, pulses and groups of servers: the planted ones, simulated ones, and what must not be believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from tests.models.conftest import Planted
from warehouse.base.settings import shipped_root

WITHIN = 0.003
"""What the docs say of resolved periods."""
RAILS = 4
HOUR_TEXT = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"


# the sample ---------------------------------------------------------------------------------------


def _planted_jobs(planted: Planted) -> dict[tuple[str, str], dict[str, Any]]:
    """The job of each owner of ports and hour: of the server itself, or of who owns its ports that no sheet names."""
    unlisted: dict[str, list[str]] = {}
    for port in planted.truth["unlisted_ports"]:
        unlisted.setdefault(port["server"], []).append(port["owner"])
    return {
        (owner, hour): job
        for job in planted.truth["jobs"]
        for server in job["servers"]
        for owner in {*unlisted.get(server, ()), *([server] if len(unlisted.get(server, ())) < RAILS else [])}
        for hour in job["hours"]
    }


def test_periods_are_the_planted_ones(planted: Planted) -> None:
    jobs = _planted_jobs(planted)
    found = {
        (server, hour): (period, duty)
        for server, hour, period, duty in planted.rows(
            f"SELECT server, {HOUR_TEXT}, period_seconds, duty_cycle FROM metrics.traffic_periods "
            "WHERE unresolved IS DISTINCT FROM 'idle'"
        )
    }
    steady = {one["server"] for one in planted.traps("steady_server")}
    assert {key for key in found if key[0] not in steady} == jobs.keys()
    assert [period for (server, _), (period, _) in found.items() if server in steady] == [None] * 8
    assert {job["job"] for job in jobs.values()} == {"job-1", "job-2", "job-3", "job-4", "job-5", "job-6"}
    for key, job in jobs.items():
        period, duty = found[key]
        assert period == pytest.approx(job["period_seconds"], rel=WITHIN), key
        # the pulses of a pair of servers are not quite in step, which makes their sum's longer
        assert duty == pytest.approx(job["duty_cycle"], abs=0.06 if "/" in key[0] else 0.05), key


def test_groups_are_the_planted_jobs(planted: Planted) -> None:
    members: dict[tuple[str, str], set[str]] = {}
    for (server_name, hour), job in _planted_jobs(planted).items():
        members.setdefault((job["job"], hour), set()).add(server_name)
    expected = sorted((hour, " ".join(sorted(group))) for (_, hour), group in members.items() if len(group) > 1)
    found = planted.rows(
        f"SELECT {HOUR_TEXT} AS hour, string_agg(server, ' ' ORDER BY server) FROM metrics.traffic_groups "
        "GROUP BY hour, group_id"
    )
    assert found == expected
    said = planted.rows(
        "SELECT DISTINCT period_seconds IS NULL, correlation > 0.1, abs(lag_seconds) < 2, p_value < 0.002 "
        "FROM metrics.traffic_groups"
    )
    assert said == [(False, True, True, True)]


def test_the_period_by_hand_is_that_of_the_job(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    """The ten lines of docs/metrics/periods.md."""
    page = (shipped_root() / "docs" / "metrics" / "periods.md").read_text(encoding="utf-8")
    (code,) = (block.partition("```")[0] for block in page.split("```python\n")[1:])
    exec(code.replace("build/warehouse", str(planted.target)))
    [(period,)] = planted.rows(
        "SELECT period_seconds FROM metrics.traffic_jobs WHERE group_id = 1 AND hour_utc = '2024-05-23 16:00'"
    )
    assert float(capsys.readouterr().out) == pytest.approx(period, rel=0.02)


def test_traffic_tells_the_iterations_of_the_log(planted: Planted) -> None:
    """Of the tasks that moved the bytes of a planted job while counters were read."""
    periods = {task["task"]: task["period_seconds"] for task in planted.truth["tasks"] if task["job"]}
    quiet = {task["task"] for task in planted.truth["tasks"]} - periods.keys()
    rows = planted.rows(
        "SELECT task, iteration_p50_seconds, period_seconds, pulses_per_iteration, abs(difference_ratio), "
        "dated_iterations / iterations, scatter_seconds, status FROM metrics.task_periods"
    )
    assert {row[0] for row in rows} >= periods.keys()
    assert {row[-1] for row in rows} == {"ok", "shared"}
    for task, log, traffic, parts, difference, dated, scatter, status in rows:
        if task in quiet:  # it has no traffic of its own: the period is that of the other task on its servers
            assert status == "shared"
            continue
        assert traffic == pytest.approx(periods[task], rel=WITHIN)
        assert log == pytest.approx(periods[task], rel=WITHIN)
        assert (parts, difference < WITHIN, dated > 0.5, scatter < 0.5) == (1, True, True, True), task


# the real hour ------------------------------------------------------------------------------------

Deltas = dict[str, tuple[Any, Any]]


@pytest.fixture(scope="module")
def deltas(real: Path, real_built: Any) -> Deltas:
    """Return (seconds of the hour, bytes) of each stored row after the opening gap, off the CSV, for servers of jobs.

    Owners of two servers are left out.
    """
    found = {}
    for name, switch, port in real_built.execute(
        "SELECT DISTINCT server, switch, port FROM topology.hour_owners WHERE evidence <> 'inferred:slot' "
        "AND server IN (FROM metrics.traffic_groups SELECT server UNION FROM metrics.traffic_periods SELECT server "
        "WHERE period_seconds IS NOT NULL)"
    ).fetchall():
        stem = port.removeprefix("TwoHundredGigE1/0/").replace(":", "_")
        (path,) = (real / "zhejiang").rglob(f"trafficinfo/*/*/{switch}_{stem}.csv")
        rows = polars.read_csv(path).filter(polars.col("SaveTimeUTC") % 3_600_000 > 260_000)
        moments = (rows["SaveTimeUTC"] % 3_600_000).to_numpy() / 1000
        found[name] = moments, (rows["InOctets"] + rows["OutOctets"]).to_numpy().astype(float)
    return found


@pytest.mark.real
def test_real_periods_are_those_of_a_periodogram_of_the_raw_rows(real_built: Any, deltas: Deltas) -> None:
    """No seconds, no windows, no autocorrelation: the waves of the stored deltas at the times of their rows."""
    periods = dict(
        real_built.execute(
            "SELECT server, period_seconds FROM metrics.traffic_periods WHERE period_seconds IS NOT NULL"
        ).fetchall()
    )
    assert len(periods) == 21
    for name, expected in periods.items():
        moments, moved = deltas[name]
        tried = expected * np.linspace(0.99, 1.01, 101)
        power = []
        for period in tried:
            wave = np.exp(-2j * np.pi * moments / period)
            power.append(sum(abs((moved * wave**harmonic).sum()) ** 2 for harmonic in (1, 2, 3)))
        assert tried[np.argmax(power)] == pytest.approx(expected, rel=0.0005), name
