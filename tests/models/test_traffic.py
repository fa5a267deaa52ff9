"""Periods, pulses and groups of servers: the planted ones, simulated ones, and what must not be believed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import PATIENCE
from tests.models.conftest import Planted
from tests.models.pulses import HOUR, Job, server
from warehouse.base.shipped import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import read_model

WITHIN = 0.003
"""What the docs say of resolved periods."""
RAILS = 4
HOUR_TEXT = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"


@cache
def _module(name: str) -> ModuleType:
    function = function_of(read_model(shipped_root() / "models" / "metrics" / f"{name}.py", shipped_root()))
    return sys.modules[function.__module__]


def _look(jobs: list[Job], seed: int, *, ports: int = 4, gap: float = 250.0) -> tuple[Any, Any]:
    """What is found of a simulated server, and the starts of its iterations inside the observed time."""
    moved, observed, starts = server(jobs, np.random.default_rng(seed), ports=ports, gap=gap)
    after_gap = np.flatnonzero(observed & (np.arange(HOUR) > 1))
    inside = (starts > after_gap[0]) & (starts < after_gap[-1])
    return _module("traffic_periods").look_at(moved, observed), starts[inside]


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
    assert found.keys() == jobs.keys()
    assert {job["job"] for job in jobs.values()} == {"job-1", "job-2", "job-3", "job-4", "job-5"}
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
    periods = planted.rows("SELECT DISTINCT period_seconds IS NULL, correlation > 0.85 FROM metrics.traffic_groups")
    assert periods == [(False, True)]


def test_pulses_are_a_period_apart(planted: Planted) -> None:
    rows = planted.rows(
        "SELECT p.server, p.pulses = count(*), p.pulses > 0.9 * (epoch(max(q.start_utc)) - epoch(min(q.start_utc))) / "
        "p.period_seconds, abs(median(q.interval_seconds) / p.period_seconds - 1) < 0.02 "
        "FROM metrics.traffic_periods p JOIN metrics.traffic_pulses q USING (cluster, server, hour_utc) "
        "GROUP BY p.server, p.pulses, p.period_seconds"
    )
    assert rows
    assert {row[1:] for row in rows} == {(True, True, True)}


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


# simulated servers --------------------------------------------------------------------------------

_seeds = st.integers(0, 2**31)


@given(st.floats(6, 150), st.floats(0.15, 0.6), st.floats(0, 1), st.sampled_from([1, 4]), st.booleans(), _seeds)
@settings(deadline=None, max_examples=60)
def test_steady_pulses_are_resolved(period: float, duty: float, phase: float, ports: int, gap: bool, seed: int) -> None:
    found, _ = _look([Job(period, duty, phase * period)], seed, ports=ports, gap=250.0 if gap else 0.0)
    assert found.unresolved is None
    assert found.period_seconds == pytest.approx(period, rel=0.001)
    if min(duty, 1 - duty) * period > 3:  # pulses and quiet that last for several seconds
        assert found.duty_cycle == pytest.approx(duty, abs=0.15)


@given(
    st.floats(0.3, 280), st.floats(0.05, 0.95), st.sampled_from([0, 0.003, 0.01]), st.sampled_from([0.02, 0.1, 0.2]),
    st.sampled_from([0, 0.3, 1]), st.sampled_from([1, 2, 4]), _seeds,
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_what_is_resolved_is_right(
    period: float, duty: float, jitter: float, noise: float, level: float, ports: int, seed: int
) -> None:
    job = Job(period, duty, 0.3 * period, jitter, noise, level)
    found, starts = _look([job], seed, ports=ports)
    if found.period_seconds is not None:
        true = (starts[-1] - starts[0]) / (len(starts) - 1)
        # iterations that vary have a mean that depends on where one begins to count
        assert abs(found.period_seconds / true - 1) < WITHIN + 2 * jitter / np.sqrt(len(starts))


@given(st.floats(0.3, 3.6), st.floats(0.05, 0.95), st.sampled_from([1, 4]), _seeds)
@settings(deadline=None, max_examples=100)
def test_pulses_that_the_seconds_cannot_show_are_not_resolved(
    period: float, duty: float, ports: int, seed: int
) -> None:
    """Below two seconds an alias shows, as slow as anything; it must not be taken for a period."""
    found, _ = _look([Job(period, duty)], seed, ports=ports)
    assert found.unresolved is not None
    assert found.period_seconds is None
    assert found.starts_ms is None


@given(_seeds)
@settings(deadline=None, max_examples=25)
def test_noise_has_no_period(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed = np.ones(HOUR, bool)
    for moved in (rng.integers(0, 10**10, HOUR), (rng.random(HOUR) < 0.05) * 10**10, np.full(HOUR, 10**9)):
        assert _module("traffic_periods").look_at(moved.astype(np.int64), observed).unresolved == "aperiodic"


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (Job(3.0, 0.4), "fast"),
        (Job(300.0, 0.4), "few_cycles"),
        (Job(20.0, 0.4, level=3.0), "shallow"),
    ],
)
def test_the_reason_is_said(job: Job, why: str) -> None:
    found, _ = _look([job], 1)
    assert (found.unresolved, found.period_seconds) == (why, None)


def test_a_period_that_changes_is_unsteady() -> None:
    rng = np.random.default_rng(1)
    moved, observed, _ = server([Job(20.0, 0.4)], rng)
    moved[1800:] = server([Job(21.0, 0.4)], rng)[0][1800:]
    found = _module("traffic_periods").look_at(moved, observed)
    assert (found.unresolved, found.period_seconds) == ("unsteady", None)


@pytest.mark.parametrize(("ports", "scatter"), [(1, 0.6), (4, 0.3)])
def test_pulses_are_dated_to_a_second(ports: int, scatter: float) -> None:
    found, starts = _look([Job(45.8, 0.4, 11.0)], 3, ports=ports)
    dated = np.array(found.starts_ms) / 1000
    late = dated - starts[np.abs(dated[:, None] - starts[None, :]).argmin(axis=1)]
    assert len(dated) == found.pulses >= len(starts) - 1
    assert 0.1 < late.mean() < 0.7  # a refresh comes up to a second after the bytes
    assert np.abs(late - late.mean()).max() < 1.5
    assert 0.05 < found.scatter_seconds < scatter


def test_two_pulses_an_iteration_are_one_iteration() -> None:
    """Forward and backward of different length: the period is from one to the same of the next iteration."""
    found, _ = _look([Job(30.0, 0.35), Job(30.0, 0.12, phase=16.0, height=0.6e10)], 2)
    assert found.period_seconds == pytest.approx(30.0, rel=0.001)
    assert found.pulses == pytest.approx(3350 / 30, abs=2)


def test_an_hour_without_servers_is_empty() -> None:
    periods, groups = _module("traffic_periods"), _module("traffic_groups")
    names = [("cluster", pa.string()), ("server", pa.string())]
    hour = pa.schema([*names, ("hour_utc", pa.timestamp("us"))])
    seconds = pa.schema([*names, ("second", pa.int32()), ("bytes", pa.int64()), ("longest_ms", pa.int32())])
    none = periods.model(hour.empty_table(), seconds.empty_table())
    assert none.num_rows == 0
    assert groups.model(none, seconds.empty_table()).num_rows == 0


# groups -------------------------------------------------------------------------------------------


def _grouped(servers: dict[str, Any]) -> list[list[str]]:
    """Groups of simulated servers, by name."""
    groups = _module("traffic_groups")
    waves, observed = zip(
        *(groups.wave(moved, seen.astype(np.int64)) for moved, seen, _ in servers.values()), strict=True
    )
    alike = groups.correlations(np.stack(waves), np.stack(observed))
    names = list(servers)
    return [[names[one] for one in members] for members in groups.connected(alike >= groups.TOGETHER)]


@given(_seeds, st.floats(5, 60), st.floats(0.15, 0.6))
@settings(deadline=None, max_examples=20)
def test_servers_of_one_job_are_a_group(seed: int, period: float, duty: float) -> None:
    rng = np.random.default_rng(seed)
    one, late, other = Job(period, duty), Job(period, duty, period / 2), Job(period * 1.07, duty)
    servers = {
        f"{name}{number}": server([job], rng, ports=4, gap=gap)
        for name, job in (("a", one), ("b", late), ("c", other))
        for number, gap in ((1, 248.6), (2, 254.3))
    }
    servers["alone"] = server([Job(period * 1.13, duty)], rng)
    assert _grouped(servers) == [["a1", "a2"], ["b1", "b2"], ["c1", "c2"]]


def test_a_group_is_what_is_connected() -> None:
    groups = _module("traffic_groups")
    near = np.zeros((7, 7), bool)
    for one, other in ((6, 4), (4, 2), (2, 0), (1, 5)):
        near[one, other] = near[other, one] = True
    assert groups.connected(near) == [[0, 2, 4, 6], [1, 5]]


def test_correlations_are_those_of_numpy() -> None:
    groups = _module("traffic_groups")
    rng = np.random.default_rng(4)
    waves = rng.integers(-9000, 9000, (4, HOUR))
    waves -= waves.mean(axis=1, keepdims=True).astype(np.int64)
    found = groups.correlations(waves, np.ones_like(waves))
    assert np.allclose(found, np.corrcoef(waves), atol=1e-6)


# the same bits ------------------------------------------------------------------------------------

HASH = """
import hashlib, sys
sys.path[:0] = {path!r}
from tests.models.test_traffic import digest
print(digest())
"""


def digest() -> str:
    """A hash of what both models make of two simulated servers."""
    rng = np.random.default_rng(9)
    made = [server([Job(12.3, 0.4)], rng) for _ in range(6)]
    groups = _module("traffic_groups")
    waves, observed = zip(*(groups.wave(moved, seen.astype(np.int64)) for moved, seen, _ in made), strict=True)
    alike = groups.correlations(np.stack(waves), np.stack(observed))
    periods = [_module("traffic_periods").look_at(moved, seen) for moved, seen, _ in made]
    return hashlib.sha256(alike.tobytes() + repr(periods).encode()).hexdigest()


def test_threads_of_numpy_change_no_bit() -> None:
    said = set()
    for threads in ("1", "4"):
        done = subprocess.run(
            [sys.executable, "-c", HASH.format(path=sys.path)],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        said.add(done.stdout)
    assert said == {digest() + "\n"}


# the real hour ------------------------------------------------------------------------------------


def _raw_deltas(real: Path, connection: Any, servers: list[str]) -> dict[str, Any]:
    """(seconds of the hour, bytes) of each stored row after the opening gap of these servers' ports, off the CSV."""
    found = {}
    for name in servers:
        [(switch, port)] = connection.execute(
            f"SELECT switch, port FROM topology.hour_owners WHERE server = '{name}' AND evidence <> 'inferred:slot'"
        ).fetchall()
        stem = port.removeprefix("TwoHundredGigE1/0/").replace(":", "_")
        (path,) = (real / "zhejiang").rglob(f"trafficinfo/*/*/{switch}_{stem}.csv")
        rows = polars.read_csv(path).filter(polars.col("SaveTimeUTC") % 3_600_000 > 260_000)
        moments = (rows["SaveTimeUTC"] % 3_600_000).to_numpy() / 1000
        found[name] = moments, (rows["InOctets"] + rows["OutOctets"]).to_numpy().astype(float)
    return found


@pytest.mark.real
def test_real_periods_are_those_of_a_periodogram_of_the_raw_rows(real: Path, real_built: Any) -> None:
    """No seconds, no windows, no autocorrelation: the waves of the stored deltas at the times of their rows."""
    periods = dict(
        real_built.execute(
            "SELECT server, period_seconds FROM metrics.traffic_periods WHERE period_seconds IS NOT NULL"
        ).fetchall()
    )
    assert len(periods) == 21
    for name, (moments, moved) in _raw_deltas(real, real_built, list(periods)).items():
        tried = periods[name] * np.linspace(0.99, 1.01, 401)
        power = []
        for period in tried:
            wave = np.exp(-2j * np.pi * moments / period)
            power.append(sum(abs((moved * wave**harmonic).sum()) ** 2 for harmonic in (1, 2, 3)))
        assert tried[np.argmax(power)] == pytest.approx(periods[name], rel=0.0005), name


@pytest.mark.real
def test_servers_of_a_real_group_moved_the_same_bytes(real: Path, real_built: Any) -> None:
    """What a ring of equal members does; correlations know nothing of sums. A pair's owner is two servers in one."""
    groups: dict[int, list[str]] = {}
    for group, name in real_built.execute("SELECT group_id, server FROM metrics.traffic_groups").fetchall():
        groups.setdefault(group, []).append(name)
    assert sorted(map(len, groups.values())) == [2, 3, 4, 4, 10, 13, 24, 33]
    for members in groups.values():
        named = [name for name in members if "/" not in name]
        sums = [moved.sum() for _, moved in _raw_deltas(real, real_built, named).values()]
        assert max(sums) / min(sums) < 1.1, members
