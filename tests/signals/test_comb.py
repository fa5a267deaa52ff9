"""Periods of sums: combs that are there, and series without one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.signals.waves import job, rails_of, starts
from warehouse.signals.autocorrelation import Ints
from warehouse.signals.comb import comb_of, gumbel_quantile
from warehouse.signals.job import iterations_of
from warehouse.signals.rails import HOUR, Rails

WINDOW = (255, HOUR - 1)


def _sum(rails: Rails) -> Ints:
    found: Ints = rails.moved.sum(axis=0)[:, slice(*WINDOW)]
    return found


@pytest.mark.parametrize(("period", "jitter"), [(2.6, 0.0), (3.6, 0.05), (11.4, 0.03), (125.0, 0.03)])
def test_a_period_that_single_servers_hide_is_found_in_the_sum(period: float, jitter: float) -> None:
    random = np.random.default_rng(3)
    clock = starts(period, jitter, random)
    found = comb_of(_sum(rails_of(job("a", 30, period, random, own=clock, part=1.5))))
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    assert found is not None
    assert found.height > found.chance
    assert found.period == pytest.approx(np.diff(inside).mean(), rel=0.01)


@pytest.mark.parametrize("seed", range(0, 5, 2))
def test_noise_of_any_color_has_no_comb(seed: int) -> None:
    random = np.random.default_rng(seed)
    wave, red = random.standard_normal(3340), 0.98 * seed / 12
    for second in range(1, len(wave)):
        wave[second] += red * wave[second - 1]
    assert comb_of(np.rint(1e6 * (wave + 100))[np.newaxis].astype(np.int64)) is None


@pytest.mark.parametrize(("period", "second"), [(3.8, 0.4), (3.85, 0.7), (3.9, 0.4), (4.0, 0.7)])
def test_a_second_pulse_faster_than_counters_hides_no_period(period: float, second: float) -> None:
    """The wave of both pulses is shorter than two seconds, or nearly: its alias is no wave of the iteration."""
    moved, mean = _two_pulses(period, second, 0)
    found = comb_of(moved[:, slice(*WINDOW)])
    assert found is not None
    assert found.period == pytest.approx(mean, rel=0.003)


def _two_pulses(period: float, second: float, seed: int) -> tuple[Ints, float]:
    """Bytes per second, on one rail, of two unequal pulses in each iteration, and the mean iteration."""
    random = np.random.default_rng(seed)
    clock = starts(period, 0.01, random)
    edges = (clock[:-1, np.newaxis] + np.outer(np.diff(clock), [0.0, 0.225, 0.45, 0.675])).ravel()
    moved = np.cumsum(np.tile([0.0, 1.0, 0.0, second], len(clock) - 1))
    read = np.diff(np.interp(np.arange(HOUR + 1) - 0.6 * random.random(HOUR + 1), edges, moved))
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    return np.rint(1e9 * read).astype(np.int64)[np.newaxis], float(np.diff(inside).mean())


@pytest.mark.parametrize("period", [4.2, 4.4, 4.7])
def test_starts_of_wrong_pulses_are_not_taken_for_the_period(period: float) -> None:
    moved, mean = _two_pulses(period, 0.7, 1)
    found = iterations_of(moved, np.arange(HOUR) >= WINDOW[0], WINDOW, [None] * 20)
    assert found.period_seconds == pytest.approx(mean, rel=0.004)


def test_what_a_job_is() -> None:
    random = np.random.default_rng(5)
    clock = starts(15, 0.02, random)
    rails = rails_of(job("a", 6, 15, random, own=clock, duty=0.4, rails=2, rate=1e9))
    found = iterations_of(rails.moved.sum(axis=0), np.asarray(rails.observed.all(axis=0)), WINDOW, [15.0] * 6)
    inside = clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]
    assert found.period_seconds == pytest.approx(np.diff(inside).mean(), rel=0.002)
    assert found.period_error_seconds is not None
    assert 0 < found.period_error_seconds < 0.05
    assert found.iterations == pytest.approx(len(inside), abs=2)
    assert found.duty_cycle == pytest.approx(0.4, abs=0.2)
    assert found.bytes_per_iteration == pytest.approx(6 * 2 * 15e9, rel=0.02)
    assert (found.resolved_from, found.unresolved) == ("server", None)


def test_pauses_do_not_change_the_period() -> None:
    """Five pauses, which are no whole number of iterations, as for checkpoints."""
    random = np.random.default_rng(0)
    clock = starts(8.3, 0.01, random)
    mean = np.diff(clock[(clock > WINDOW[0]) & (clock < WINDOW[1])]).mean()
    for begin in (600, 1100, 1700, 2300, 2900):
        clock[clock > begin] += random.uniform(15, 25)
    rails = rails_of(job("a", 6, 8.3, random, own=clock, duty=0.4, rails=1))
    found = iterations_of(rails.moved.sum(axis=0), np.asarray(rails.observed.all(axis=0)), WINDOW, [None] * 6)
    assert found.period_seconds is not None
    assert found.period_error_seconds is not None
    assert abs(found.period_seconds - mean) < 3 * found.period_error_seconds
    assert found.period_error_seconds < 0.001 * mean


def test_the_quantile_of_maxima_is_that_of_a_gumbel_distribution() -> None:
    values = np.random.default_rng(1).gumbel(2, 0.5, 200_000)
    assert gumbel_quantile(values, 0.999) == pytest.approx(2 - 0.5 * np.log(-np.log(0.999)), rel=0.01)
