"""Refreshes of switches tell a period from its alias, where enough switches see a job at different times."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.pulses import HOUR, Job, server
from warehouse.signals.job import Iterations, iterations_of, verdict_of
from warehouse.signals.refreshes import Leaf, coherence_of, log_chance

WINDOW = (260, HOUR - 2)
FAST, SLOW = 1.3825, 3.6144
"""Two periods that look alike, once a second: 1 / 1.3825 + 1 / 3.6144 = 1."""


def _leaves(period: float, phases: list[float]) -> list[Leaf]:
    """Regular pulses of one job through the polls of some switches, which refresh at these times in a second."""
    random = np.random.default_rng(7)
    job = Job(period, 0.4)
    return [Leaf(phase, server([job], random, ports=1, refresh=phase)[0]) for phase in phases]


def _phases(count: int) -> list[float]:
    return [float(one) for one in np.random.default_rng(count).uniform(0, 1, count)]


@pytest.mark.parametrize(("period", "verdict"), [(SLOW, 1), (FAST, -1)])
def test_twenty_switches_tell_a_period_from_its_alias(period: float, verdict: int) -> None:
    found = coherence_of(_leaves(period, _phases(20)), WINDOW, SLOW)
    assert found is not None
    true, other = (found.period, found.alias)[::verdict]
    assert true > 0.95
    assert other < 0.2
    assert verdict_of(found.weight, 0) == verdict


@pytest.mark.parametrize("phases", [_phases(3), [0.3] * 20, [0.2, 0.25, 0.3, 0.35]], ids=["few", "equal", "near"])
def test_few_switches_and_those_that_refresh_together_do_not_tell(phases: list[float]) -> None:
    found = coherence_of(_leaves(FAST, phases), WINDOW, SLOW)
    assert found is not None
    assert verdict_of(found.weight, 0) == 0


def test_both_periods_are_told_where_switches_are_too_few() -> None:
    leaves = _leaves(FAST, [0.2, 0.25, 0.3, 0.35])
    told = _iterations(leaves, leaves)
    assert told.period_seconds == pytest.approx(SLOW, rel=0.001)
    assert told.alias_seconds == pytest.approx(FAST, rel=0.001)


def test_switches_that_pulse_apart_are_rarely_taken_for_evidence() -> None:
    """Pulses of a phase of their own on each switch, as rails may have: 1 % of jobs, and 2 % with luck of the draw."""
    count = 8
    random = np.random.default_rng(count)
    seconds = np.arange(HOUR) / SLOW
    verdicts = []
    for _ in range(300):
        waves = 1e9 * (1 + np.sin(2 * np.pi * (seconds + random.uniform(0, 1, (count, 1)))))
        leaves = [Leaf(*one) for one in zip(random.uniform(0, 1, count), waves.astype(np.int64), strict=True)]
        found = coherence_of(leaves, WINDOW, SLOW)
        assert found is not None
        verdicts.append(verdict_of(found.weight, 0))
    assert np.count_nonzero(verdicts) <= 6


def test_chances_are_at_most_a_little_above_those_of_random_phases() -> None:
    count, random = 8, np.random.default_rng(1)
    turns = np.exp(2j * np.pi * random.uniform(0, 1, (40_000, count)))
    coherences = np.abs(turns.mean(axis=1)) ** 2
    for share in (0.5, 0.1, 0.01):
        limit = float(np.quantile(coherences, 1 - share))
        assert 0.9 * share < np.exp(log_chance(limit, count)) < 1.8 * share


def test_the_weights_of_bytes_and_refreshes_add_up() -> None:
    assert verdict_of(0, 4.7) == verdict_of(4.7, 0) == 1
    assert verdict_of(-4.7, 0) == -1
    assert verdict_of(4.7, 1) == 0, "two say it: chance has more ways"
    assert verdict_of(4.7, 1.4) == 1
    assert verdict_of(-6.1, 3.5) == verdict_of(-9.0, 15.0 - 1) == 0, "they contradict each other"
    assert verdict_of(-9.0, 15.1) == 1


def _iterations(leaves: list[Leaf], known: list[Leaf]) -> Iterations:
    moved = np.sum([one.moved for one in leaves], axis=0)[np.newaxis]
    return iterations_of(moved, np.arange(HOUR) >= WINDOW[0], WINDOW, [None] * 20, known)


@pytest.mark.parametrize("period", [SLOW, FAST])
def test_the_period_of_a_job_is_that_at_which_switches_agree(period: float) -> None:
    """Iterations that never vary: their bytes tell nothing. With the refreshes of some switches, only one is left."""
    leaves = _leaves(period, _phases(16))
    found = _iterations(leaves, leaves)
    assert found.period_seconds == pytest.approx(period, rel=0.001)
    assert found.alias_seconds is None
    assert found.coherence is not None
    assert found.alias_coherence is not None
    assert found.coherence > 0.95 > 0.2 > found.alias_coherence
