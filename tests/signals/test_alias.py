"""Aliases: the bytes of iterations, and the refreshes of switches, tell a period from that of faster ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.pulses import Job, server
from tests.signals.waves import Floats, starts
from warehouse.signals.job import Iterations, Leaf, alias_of, coherence_of, iterations_of, verdict_of
from warehouse.signals.series import HOUR, Ints

WINDOW = (255, HOUR - 1)
SEEN = np.arange(HOUR) >= WINDOW[0]
DUTY, LATE = 0.75, 0.6
CERTAIN = 2.576
"""Standard deviations of chance beyond which the bytes decide alone: 99 % of a normal distribution are within."""


def _moved(clock: Floats, seed: int = 0, latest: float = LATE) -> Ints:
    """Bytes per second, on one rail, of iterations that all move the same bytes, some of them later."""
    random = np.random.default_rng(seed)
    edges = np.stack([clock[:-1], clock[:-1] + DUTY * np.diff(clock)], axis=1).ravel()
    iterations = np.repeat(np.arange(len(clock)), 2)[1:-1]
    late = latest * random.random(HOUR + 1)
    moved = np.diff(np.interp(np.arange(HOUR + 1) - late, edges, iterations))
    return np.rint(1e9 * moved).astype(np.int64)[np.newaxis]


def _mean(clock: Floats) -> float:
    return float(np.diff(clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]).mean())


@pytest.mark.parametrize("period", [1.45, 1.576, 1.85, 2.3, 2.737, 3.6])
def test_iterations_that_vary_are_told_from_their_alias_by_their_bytes(period: float) -> None:
    clock = starts(period, 0.03, np.random.default_rng(0))
    moved = _moved(clock)
    found = iterations_of(moved, SEEN, WINDOW, [None] * 20)
    assert found.period_seconds is not None
    assert found.period_error_seconds is not None
    assert found.period_seconds == pytest.approx(_mean(clock), rel=0.003)
    assert abs(found.period_seconds - _mean(clock)) < 4 * found.period_error_seconds
    assert found.alias_seconds is None
    assert found.iterations == pytest.approx((WINDOW[1] - WINDOW[0]) / _mean(clock), rel=0.01)
    alias = alias_of(moved.sum(axis=0), SEEN, _mean(clock)) if period > 2 else None
    assert alias is None or alias.evidence > CERTAIN


@pytest.mark.parametrize("period", [1.576, 2.737])
def test_reads_that_are_late_together_decide_too(period: float) -> None:
    found = iterations_of(_moved(starts(period, 0.0, np.random.default_rng(0))), SEEN, WINDOW, [None] * 20)
    assert found.period_seconds == pytest.approx(period, abs=0.003)
    assert found.alias_seconds is None


@pytest.mark.parametrize("period", [1.576, 2.737])
def test_iterations_that_never_vary_may_be_either(period: float) -> None:
    clock = starts(period, 0.0, np.random.default_rng(0))
    found = iterations_of(_moved(clock, latest=0), SEEN, WINDOW, [None] * 20)
    assert found.period_seconds == pytest.approx(2.737, abs=0.003)
    assert found.alias_seconds == pytest.approx(1.576, abs=0.003)


@pytest.mark.parametrize("pause", [30.4, 31.8])
def test_a_pause_is_no_evidence(pause: float) -> None:
    clock = starts(2.737, 0.0, np.random.default_rng(0))
    clock[clock > 1500.3] += pause  # the wave that begins anew is turned by any angle
    alias = alias_of(_moved(clock, latest=0).sum(axis=0), SEEN, 2.737)
    assert alias is not None
    assert abs(alias.evidence) < CERTAIN


@pytest.mark.parametrize("period", [1.576, 2.737])
def test_stalls_of_some_seconds_do_not_turn_the_evidence(period: float) -> None:
    """An iteration in some hundred takes seconds longer: nobody knows how many cycles of the wave that were."""
    seen = 1 / (1 - 1 / period) if period < 2 else period
    found = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        lengths = np.diff(starts(period, 0.01, random))
        lengths += np.where(random.random(len(lengths)) < 10 * period / HOUR, random.exponential(6, len(lengths)), 0)
        clock = np.concatenate([[0.0], np.cumsum(lengths)])
        alias = alias_of(_moved(clock, seed).sum(axis=0), SEEN, seen)
        assert alias is not None
        found.append(alias.evidence if period > 2 else -alias.evidence)
    assert min(found) > -CERTAIN
    assert np.median(found) > CERTAIN


def test_the_alias_of_several_pulses_is_that_of_their_iteration() -> None:
    """Iterations of 1.49 s show a wave of 3.05 s, but no comb of 6.1 s. Those of 1.20 s show both, within limits."""
    turns = np.arange(HOUR) / 6.1
    for depth in (0.2, 0.5):
        wave = 1 + 0.1 * np.cos(2 * np.pi * turns) + depth * np.cos(4 * np.pi * turns)
        alias = alias_of(np.rint(1e9 * wave).astype(np.int64), SEEN, 6.1)
        assert (alias and alias.seconds) == (pytest.approx(1 / (1 - 1 / 6.1)) if depth == 0.2 else None)


def _drift(random: np.random.Generator, seconds: float) -> Floats:
    """Noise of deviation 1 that forgets in so many seconds."""
    noise = random.standard_normal(3 * HOUR)
    found = np.convolve(noise, np.exp(-np.arange(HOUR) / seconds), "valid")[:HOUR]
    return np.asarray(found * np.sqrt(2 / seconds))


@pytest.mark.parametrize("seconds", [30, 1000])
def test_drifts_that_have_nothing_to_do_with_each_other_are_no_evidence(seconds: float) -> None:
    """Iterations speed up and slow down, and so do the bytes of a background, each by itself."""
    found = []
    for seed in range(24):
        random = np.random.default_rng(seed)
        turns = np.cumsum((1 + 0.002 * _drift(random, seconds)) / 2.737)
        wave = 1 + 0.2 * np.cos(2 * np.pi * turns) + 0.03 * _drift(random, seconds) + 0.1 * random.standard_normal(HOUR)
        alias = alias_of(np.rint(1e9 * wave).astype(np.int64), SEEN, 2.737)
        assert alias is not None
        found.append(alias.evidence)
    assert np.std(found) < 1.2
    assert (np.abs(found) > CERTAIN).sum() <= 2


def test_deep_pulses_are_no_alias() -> None:
    clock = starts(8.0, 0.0, np.random.default_rng(0))
    assert alias_of(_moved(clock).sum(axis=0), SEEN, 8.0) is None


# refreshes of switches

FAST, SLOW = 1.3825, 3.6144
"""Two periods that look alike, once a second: 1 / 1.3825 + 1 / 3.6144 = 1."""


def _leaves(period: float, phases: list[float]) -> list[Leaf]:
    """Regular pulses of one job through the polls of some switches, which refresh at these times in a second."""
    random = np.random.default_rng(7)
    job = Job(period, 0.4)
    return [Leaf(phase, server([job], random, ports=1, refresh=phase)[0]) for phase in phases]


def _phases(count: int) -> list[float]:
    return [float(one) for one in np.random.default_rng(count).uniform(0, 1, count)]


@pytest.mark.parametrize("phases", [_phases(3), [0.3] * 20, [0.2, 0.25, 0.3, 0.35]], ids=["few", "equal", "near"])
def test_few_switches_and_those_that_refresh_together_do_not_tell(phases: list[float]) -> None:
    period, _, weight = coherence_of(_leaves(FAST, phases), WINDOW, SLOW)
    assert period is not None
    assert verdict_of(weight, 0) == 0


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
        period, _, weight = coherence_of(leaves, WINDOW, SLOW)
        assert period is not None
        verdicts.append(verdict_of(weight, 0))
    assert np.count_nonzero(verdicts) <= 6


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
