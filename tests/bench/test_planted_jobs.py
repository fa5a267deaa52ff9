"""Planted traffic jobs: their bytes in counters are what the truth says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.planted_bytes import CHATTER, Hour, simulate
from bench.planted_jobs import TrafficJob, plan_traffic
from bench.planted_truth import SEEN, traffic_rows
from tests.models.planted_hours import dense, rails
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
