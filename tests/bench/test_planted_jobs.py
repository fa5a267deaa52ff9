"""Planted traffic jobs: their bytes in counters are what the truth says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.planted_bytes import CHATTER, Hour, moved, simulate
from bench.planted_jobs import KINDS, TrafficJob, plan_traffic
from bench.planted_truth import SEEN, traffic_rows
from tests.models.planted_hours import dense, planted, rails
from warehouse.sample import SampleOptions
from warehouse.sample.fabric import build_fabric

Series = dict[tuple[str, int], NDArray[np.int64]]
START, STOP = 256, 3598
"""Seconds of the hour that every switch saw."""


@cache
def _hour(seed: int) -> Hour:
    return simulate(seed)


@cache
def _series(seed: int) -> Series:
    """Bytes of each second by owner and rail (from 1)."""
    table = rails(_hour(seed))
    names = zip(table["server"].to_pylist(), table["rail"].to_pylist(), strict=True)
    return dict(zip(names, dense(table)[0], strict=True))


def _find(wanted: Callable[[TrafficJob], bool]) -> tuple[int, TrafficJob]:
    """Return the first seed and job that meet a condition."""
    for seed in range(1, 60):
        for job in _plan(seed):
            if wanted(job):
                return seed, job
    raise AssertionError("no such job in 60 hours")


@cache
def _plan(seed: int) -> tuple[TrafficJob, ...]:
    return plan_traffic(
        build_fabric(SampleOptions(seed=seed, hours=1, leaves=20, servers_per_group=24, spines=5, planted=False))
    ).jobs


def _truth(seed: int) -> list[dict[str, Any]]:
    hour = _hour(seed)
    return traffic_rows(hour.fabric, hour.plan)


def _delay(one: NDArray[np.int64], other: NDArray[np.int64], most: int) -> int:
    """Return the seconds by which `other` follows `one` best."""
    inner = slice(most, -most)
    alike = [
        np.corrcoef(one[START:STOP][inner], np.roll(other[START:STOP], -lag)[inner])[0, 1]
        for lag in range(-most, most + 1)
    ]
    return int(np.argmax(alike)) - most


def test_an_hour_follows_from_its_seed() -> None:
    again, other = simulate(1), simulate(2)
    assert np.array_equal(_hour(1).moved, again.moved)
    assert np.array_equal(_hour(1).offset_ms, again.offset_ms)
    assert _truth(1) == traffic_rows(again.fabric, again.plan) != traffic_rows(other.fabric, other.plan)


def test_an_hour_has_jobs_of_all_kinds_and_sizes() -> None:
    jobs = [job for seed in range(1, 20) for job in _plan(seed)]
    kinds = {job.kind for job in _plan(1)}
    assert kinds == {*KINDS, "single"} - {"more"}
    assert max(len(job.servers) for job in jobs) > 40
    hosts = {(job.starts[0], job.rails) for job in jobs if len(job.servers) > 1}
    elsewhere = [job for job in jobs if job.kind != "single" and len(job.servers) == 1]
    assert all((job.starts[0], tuple({0, 1, 2, 3} - set(job.rails))) in hosts for job in elsewhere)
    periods = np.array([np.diff(job.starts).mean() for job in jobs])
    assert periods.min() < 1
    assert periods.max() > 200
    assert {len(job.rails) for job in jobs} == {2, 4}
    for seed in range(1, 5):
        servers = [server for job in _plan(seed) for server in job.servers]
        assert len(servers) == len(set(servers))


def test_no_byte_is_lost_between_rows_and_seconds() -> None:
    hour = _hour(1)
    per_port = np.bincount(hour.port, hour.moved, len(hour.ports))
    expected: dict[tuple[str, int], int] = {}
    for port, total in zip(hour.ports, per_port.tolist(), strict=True):
        key = port.owner, port.rail + 1
        expected[key] = expected.get(key, 0) + int(total)
    assert {key: int(series.sum()) for key, series in _series(1).items()} == expected
    assert any("/" in owner for owner, _ in expected)


def test_bytes_are_those_of_the_iterations() -> None:
    """By the mean iteration: at most one iteration, and the noise of some seconds, at each end of the time seen."""
    for row in _truth(1):
        if row["period_seconds"] is None or row["iterations"] < 20:
            continue
        begin, end = max(START, int(row["start_second"])), min(STOP, int(row["end_second"]))
        seen = sum(int(_series(1)[row["server"], rail][begin:end].sum()) for rail in row["rails"])
        iterations = (end - begin) / row["period_seconds"]
        assert seen / row["bytes_per_iteration"] == pytest.approx(iterations, rel=0.02, abs=1.5), row
        idle = sum(int(_series(1)[row["server"], rail].sum()) for rail in {1, 2, 3, 4} - set(row["rails"]))
        assert idle <= 4 * 3600 * CHATTER * row["members"]


def test_members_move_the_same_bytes_in_the_hour() -> None:
    for seed in (1, 2):
        for job in _hour(seed).plan.jobs:
            if job.kind in ("plain", "stages", "in_step") and len(job.servers) > 1:
                nics = [(server, job.rails[0]) for server in job.servers]
                plan = replace(_hour(seed).plan, jobs=(replace(job, rails=job.rails[:1]),), others=())
                total = moved(plan, nics, np.tile(np.arange(3600.0), (len(nics), 1)))[:, -1]
                assert total.max() / total.min() < 1.002, job.job_id


def test_the_truth_has_the_period_of_the_bytes() -> None:
    """By the strongest wave of the job's sum near it, which knows nothing of starts."""
    seed, job = _find(lambda job: job.kind == "plain" and len(job.servers) > 5 and 8 < np.diff(job.starts).mean() < 30)
    row = next(row for row in _truth(seed) if row["job_id"] == job.job_id)
    names = [one["server"] for one in _truth(seed) if one["job_id"] == job.job_id]
    total = sum(_series(seed)[name, row["rails"][0]] for name in names)[START:STOP].astype(float)  # type: ignore[index]
    tried = row["period_seconds"] * np.linspace(0.8, 1.25, 2001)
    waves = np.exp(-2j * np.pi * np.outer(1 / tried, np.arange(len(total))))
    best = tried[np.argmax(np.abs(waves @ (total - total.mean())))]
    assert best == pytest.approx(row["period_seconds"], rel=0.01)
    starts = job.starts[(job.starts >= SEEN) & (job.starts <= 3600)]
    assert row["period_seconds"] == pytest.approx((starts[-1] - starts[0]) / row["iterations"], abs=1e-5)


def test_rails_of_a_server_pulse_apart_and_those_of_members_together() -> None:
    apart, together = [], []
    for seed in (1, 2, 3, 4):
        for job in _plan(seed):
            if job.kind in ("plain", "stages", "in_step") and len(job.rails) == 4 and np.diff(job.starts).mean() > 10:
                owners = [_hour(seed).plan.owners[server] for server in job.servers[:2]]
                waves = np.stack([_series(seed)[owner, rail][START:STOP] for owner in owners for rail in (1, 2, 3, 4)])
                alike = np.asarray(np.corrcoef(waves))
                apart += [alike[one, other] for one in range(4) for other in range(one)]
                together += [alike[rail, 4 + rail] for rail in range(4)]
    assert np.mean(apart) == pytest.approx(0.2, abs=0.15)
    assert np.mean(together) == pytest.approx(0.9, abs=0.1)


def test_a_lagging_member_and_a_stage_are_late() -> None:
    seed, job = _find(lambda job: job.kind == "lagging" and np.diff(job.starts).mean() > 40)
    rail = job.rails[0] + 1
    late, other = (_series(seed)[_hour(seed).plan.owners[server], rail] for server in (job.servers[0], job.servers[-1]))
    assert 5 <= job.lags[0] <= 15
    assert _delay(other, late, 19) == pytest.approx(job.lags[0], abs=1.5)

    seed, stage = _find(lambda job: job.kind == "stages" and job.lag > 3 and np.diff(job.starts).mean() > 40)
    first = next(job for job in _plan(seed) if job.job_id == stage.clock_of)
    assert not set(first.servers) & set(stage.servers)
    assert np.array_equal(first.starts, stage.starts)
    assert not np.isclose(first.bytes_per_iteration[0], stage.bytes_per_iteration[0], rtol=0.1)
    clocks = [job.starts + job.lag for job in (first, stage)]
    assert (clocks[1] - clocks[0]).mean() == pytest.approx(stage.lag)


def test_a_member_uses_the_other_rails_and_one_like_it_has_iterations_of_its_own() -> None:
    seed, member = _find(lambda job: job.kind == "plain" and len(job.servers) == 1)
    [host] = [job for job in _plan(seed) if job.job_id == member.job_id and job is not member]
    near = next(
        job for job in _plan(seed) if job.kind == "single" and job.bytes_per_iteration == member.bytes_per_iteration
    )
    assert {*host.rails, *member.rails} == {0, 1, 2, 3}
    assert (len(host.rails), len(member.rails), near.rails) == (2, 2, member.rails)
    assert len(host.servers) > 2
    rows = [row for row in _truth(seed) if row["job_id"] == member.job_id]
    assert [row["server"] for row in rows][-1] == _hour(seed).plan.owners[member.servers[0]]
    assert len({row["bytes_per_iteration"] for row in rows if row["members"] == 1}) == 1
    assert np.array_equal(member.starts, host.starts)
    assert np.diff(near.starts).mean() == pytest.approx(np.diff(member.starts).mean(), rel=1e-6)
    assert np.corrcoef(np.diff(near.starts), np.diff(member.starts))[0, 1] < 0.2


def test_jobs_in_step_are_on_other_leaves() -> None:
    for seed in (1, 2, 3):
        rows = [row for row in _truth(seed) if row["kind"] == "in_step"]
        jobs = {row["job_id"]: row["clock_of"] for row in rows}
        first, second = jobs
        assert jobs == {first: None, second: first}
        leaves = [{leaf for row in rows if row["job_id"] == job for leaf in row["leaves"]} for job in jobs]
        assert not leaves[0] & leaves[1]
        assert len({row["bytes_per_iteration"] for row in rows}) == 2
        assert {row["lag_seconds"] for row in rows} == {0}


def test_late_joiners_and_early_ends_are_seen() -> None:
    rows = [row for seed in (1, 2) for row in ({**one, "seed": seed} for one in _truth(seed))]
    late = [row for row in rows if row["start_second"] > 0]
    early = [row for row in rows if row["end_second"] < 3600]
    assert {row["kind"] for row in late} == {"late"}
    assert {row["kind"] for row in early} == {"early"}
    for row in [*late, *early]:
        series = _series(row["seed"])[row["server"], row["rails"][0]]
        begin, end = int(row["start_second"]), int(row["end_second"])
        chatter = 4 * CHATTER
        assert series[START : max(begin - 4, START)].max(initial=0) <= chatter
        assert series[end + 20 : STOP].max(initial=0) <= chatter
        assert series[max(begin, START) : end].max() > 1000 * chatter


def test_servers_of_a_storage_share_slow_drift_alone() -> None:
    hour = _hour(2)
    nics = {(hour.plan.owners[one.server], one.rail + 1) for one in hour.plan.others if one.kind == "storage"}
    rates = np.stack([_series(2)[nic][START : START + 3340].reshape(-1, 10).sum(axis=1) for nic in sorted(nics)])
    slow, fast = np.corrcoef(rates), np.corrcoef(np.diff(rates, axis=1))
    together = np.triu(slow > 0.5, 1)
    assert together.sum() >= len(nics)
    assert np.mean(fast[together]) < 0.35


def test_an_hour_without_jobs_has_servers_of_their_own_clocks() -> None:
    table, truth = planted(3, plan=partial(plan_traffic, jobs=False))
    assert {row["kind"] for row in truth} == {"single"}
    assert len(truth) == len({row["job_id"] for row in truth}) == len({row["server"] for row in truth})
    assert len(set(table["server"].to_pylist())) > 2 * len(truth)
