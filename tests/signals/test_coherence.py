"""Scores of unrelated series are standard normal; those of coherent ones are high, at the right lag."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.signals.waves import alone, job, rails_of
from warehouse.signals.coherence import UNIT, Lags, cosines, drift_removed, phases, scores
from warehouse.signals.rails import HOUR
from warehouse.signals.together import series_phases

SECONDS = slice(255, HOUR - 1)


def test_unrelated_servers_have_standard_normal_scores() -> None:
    rails = rails_of(alone("a", 60, np.random.default_rng(4)))
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    found = scores(series, series)[np.triu_indices(60, 1)]
    assert abs(found.mean()) < 0.1
    assert 0.85 < found.std() < 1.15
    assert np.abs(found).max() < 5


def spread(one: Any, other: Any) -> float:
    """Variance of the sum of cosines over rails that are alike, by the angles alone."""
    rails = range(len(one))
    turns = [
        np.exp(1j * (one[a] - one[b])).mean() * np.exp(1j * (other[b] - other[a])).mean() for a in rails for b in rails
    ]
    return max(float(sum(turns).real) / len(rails), 1.0)


def test_servers_whose_rails_are_alike_have_standard_normal_scores() -> None:
    """Four equal rails say no more than one."""
    rails = rails_of({name: one[:1] * 4 for name, one in alone("a", 60, np.random.default_rng(5)).items()})
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    found = scores(series, series)[np.triu_indices(60, 1)]
    assert 0.85 < found.std() < 1.15
    assert np.abs(found).max() < 5


def test_scores_are_the_sum_of_cosines_of_phase_differences() -> None:
    rails = rails_of(job("a", 3, 20, np.random.default_rng(1)))
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    angles = np.angle(series[:, :, series.any(axis=(0, 1))])
    for one in range(3):
        for other in range(3):
            mean = np.cos(angles[one] - angles[other]).mean()
            assert abs(cosines(series, series)[one, other] - mean) < 0.005
            expected = mean * np.sqrt(2 * angles[0].size / spread(angles[one], angles[other]))
            assert abs(scores(series, series)[one, other] - expected) < 0.1


def test_phases_that_are_missing_do_not_count() -> None:
    series = np.full((2, 1, 10), UNIT, complex)
    series[1, 0, 5:] = 0
    assert scores(series, series)[0, 1] == np.sqrt(2 * 5)
    assert cosines(series, series)[0, 1] == 1


def test_a_lag_is_where_the_score_is_highest() -> None:
    random = np.random.default_rng(2)
    rails = rails_of(job("a", 2, 25, random, jitter=0.05, part=0.05, lags=(0, 7)))
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    lags = Lags(SECONDS.stop - SECONDS.start)
    assert int(np.argmax(lags.correlation(series[0], series[1]))) == 7
    assert np.allclose(
        lags.at(series[0], series[1], np.array([0.0, 7.0])), lags.correlation(series[0], series[1])[[0, 7]]
    )


def test_drift_leaves_nothing() -> None:
    slow = np.rint(1000 + 1000 * np.sin(np.arange(HOUR) / 2000)).astype(np.int64)
    seen = np.ones((1, HOUR), bool)
    assert np.abs(drift_removed(slow[np.newaxis], seen)[:, 200:-200]).max() / 121 < 1


def test_series_of_zeros_have_no_phases() -> None:
    assert not phases(np.zeros((1, 3000), np.int64), np.ones((1, 3000), bool)).any()


def test_a_regular_rhythm_says_nothing_of_the_waves_beside_it() -> None:
    """Two waves of equal phase with little noise of their own: the cut of the window must not spread them."""
    random = np.random.default_rng(3)
    wave = np.sin(2 * np.pi * np.arange(3300) / 61.7)
    noise = 0.05 * random.standard_normal((20, 3300))
    series = phases(np.rint(1e6 * (wave + noise)).astype(np.int64), np.ones(wave.shape, bool))[:, np.newaxis]
    assert scores(series, series)[np.triu_indices(20, 1)].mean() < 3.5
