"""Scores of unrelated series are standard normal; those of coherent ones are high, at the right lag."""

from __future__ import annotations

import numpy as np

from tests.signals.waves import alone, job, rails_of
from warehouse.signals.coherence import Lags, phases, scores
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


def test_servers_whose_rails_are_alike_have_standard_normal_scores() -> None:
    """Four equal rails say no more than one."""
    rails = rails_of({name: one[:1] * 4 for name, one in alone("a", 60, np.random.default_rng(5)).items()})
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    found = scores(series, series)[np.triu_indices(60, 1)]
    assert 0.85 < found.std() < 1.15
    assert np.abs(found).max() < 5


def test_a_lag_is_where_the_score_is_highest() -> None:
    random = np.random.default_rng(2)
    rails = rails_of(job("a", 2, 25, random, jitter=0.05, part=0.05, lags=(0, 7)))
    series = series_phases(rails.moved[:, :, SECONDS], rails.observed[:, SECONDS])
    lags = Lags(SECONDS.stop - SECONDS.start)
    assert int(np.argmax(lags.correlation(series[0], series[1]))) == 7
    assert np.allclose(
        lags.at(series[0], series[1], np.array([0.0, 7.0])), lags.correlation(series[0], series[1])[[0, 7]]
    )


def test_a_regular_rhythm_says_nothing_of_the_waves_beside_it() -> None:
    """Two waves of equal phase with little noise of their own: the cut of the window must not spread them."""
    random = np.random.default_rng(3)
    wave = np.sin(2 * np.pi * np.arange(3300) / 61.7)
    noise = 0.05 * random.standard_normal((20, 3300))
    series = phases(np.rint(1e6 * (wave + noise)).astype(np.int64), np.ones(wave.shape, bool))[:, np.newaxis]
    assert scores(series, series)[np.triu_indices(20, 1)].mean() < 3.5
