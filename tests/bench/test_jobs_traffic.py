"""Scores of jobs in the traffic, and hours without jobs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench import jobs_nulls
from bench.jobs_models import Found
from bench.jobs_scores import score
from tests.models.planted_hours import dense, table

TRUTH = [
    {"job_id": job, "server": server, "kind": kind, "clock_of": clock, "lag_seconds": lag, "period_seconds": 20.0}
    for job, kind, clock, lag, servers in (
        ("a", "stages", None, 0.0, "1234"),
        ("b", "stages", "a", 18.0, "567"),
        ("c", "plain", None, 0.0, "89"),
        ("d", "single", None, 0.0, "0"),
    )
    for server in servers
]


def _row(period: float) -> dict[str, Any]:
    return {"period_seconds": period, "period_error_seconds": 0.1}


def test_what_is_right_scores_full() -> None:
    groups = {1: list("1234"), 2: list("567"), 3: list("89")}
    made = score(TRUTH, Found(groups, {1: _row(20.05), 2: _row(20.0), 3: _row(20.0)}))
    assert made.counts["held", "stages"] == made.counts["pure", "stages"] == made.counts["jobs", "stages"] == 2
    assert made.counts["together", "stages"] == made.counts["pairs", "stages"] == 9
    assert not made.counts["false", "all"]
    assert [one.found for one in made.periods] == [20.05, 20.0, 20.0]


def test_what_is_wrong_is_counted_by_kind() -> None:
    made = score(TRUTH, Found({1: list("1235"), 2: list("890x")}, {2: _row(40.0)}))
    assert made.counts["held", "stages"] == 0
    assert made.counts["held", "plain"] == 1
    assert made.counts["pure", "plain"] == 0
    assert made.counts["together", "stages"] == 3
    assert made.counts["false", "all"] == 8
    assert made.counts["false", "no job"] == 3
    assert made.counts["false", "plain"] == 4
    assert made.counts["groups with a false pair", "all"] == 2


def test_null_hours_keep_the_bytes_of_each_rail_and_part_the_servers() -> None:
    rng = np.random.default_rng(1)
    wave = np.convolve(rng.integers(0, 10**9, 3600), np.ones(9), "same").astype(np.int64)
    rails = table(
        [(server, rail, "Leaf-1") for server in "ab" for rail in (1, 2)], np.stack([wave] * 4), np.full((4, 3600), 900)
    )
    for make in (jobs_nulls.shifted, jobs_nulls.surrogate):
        moved, longest = dense(make(rails, np.random.default_rng(2)))
        assert (longest > 0).all()
        assert (np.sort(moved) == np.sort(wave)).all()
        assert (moved[0] == moved[1]).all()  # rails of one server stay together
        alike = [np.corrcoef(moved[0, 300:3500], np.roll(moved[2], lag)[300:3500])[0, 1] for lag in range(-15, 16)]
        assert max(alike) < 0.35
