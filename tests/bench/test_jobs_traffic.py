"""Scores of jobs in the traffic, and hours without jobs."""

from __future__ import annotations

import numpy as np

from bench.jobs_traffic import Job, score, shifted, surrogate
from tests.models.planted_hours import dense, table


def test_scores_count_what_is_right_and_what_is_wrong() -> None:
    jobs = (("a", "stages", "1234"), ("b", "stages", "567"), ("c", "plain", "89"), ("d", "single", "0"))
    truth = [
        {"job_id": job, "server": server, "kind": kind, "rails": [1], "period_seconds": 20.0}
        for job, kind, servers in jobs
        for server in servers
    ]
    said = {"period_seconds": 20.05, "period_error_seconds": 0.1}
    right = score(truth, {1: list("1234"), 2: list("567"), 3: list("89")}, {1: said})
    assert right.jobs[0] == Job("stages", 4, 6, 4, 4, 0, 0, 20.0, 20.05, 0.1)
    assert (right.bad, right.false["all"]) == (0, 0)
    wrong = score(truth, {1: list("1235"), 2: list("890x")}, {2: said})
    assert [(job.servers, job.best, job.whole, job.is_held) for job in wrong.jobs] == [
        (4, 3, 4, True), (3, 1, 4, False), (2, 2, 4, False),
    ]  # fmt: skip
    assert (wrong.bad, wrong.false) == (2, {"all": 8, "stages": 3, "plain": 4, "single": 3, "no job": 3})


def test_null_hours_keep_the_bytes_of_each_rail_and_part_the_servers() -> None:
    rng = np.random.default_rng(1)
    wave = np.convolve(rng.integers(0, 10**9, 3600), np.ones(9), "same").astype(np.int64)
    rails = table(
        [(server, rail, "Leaf-1") for server in "ab" for rail in (1, 2)], np.stack([wave] * 4), np.full((4, 3600), 900)
    )
    for make in (shifted, surrogate):
        moved, longest = dense(make(rails, np.random.default_rng(2)))
        assert (longest > 0).all()
        assert (np.sort(moved) == np.sort(wave)).all()
        assert (moved[0] == moved[1]).all()  # rails of one server stay together
        alike = [np.corrcoef(moved[0, 300:3500], np.roll(moved[2], lag)[300:3500])[0, 1] for lag in range(-15, 16)]
        assert max(alike) < 0.35
