"""Periods of any series of an hour: none stops a build, and a series without a period says why."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.models.pulses import HOUR
from warehouse.signals.job import iterations_of
from warehouse.signals.pace import pace
from warehouse.signals.period import period_of

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SERIES = 200
HEIGHTS = (1, 1_000, 10**9, 2 * 10**11, 2**50)
"""Bytes a second: from one to far beyond what all ports of a server can move."""
REASONS = {None, "idle", "aperiodic", "fast", "few_cycles", "shallow", "unsteady"}


def _moved(rng: np.random.Generator) -> Ints:
    """A constant, single seconds, noise, levels of a minute each, spikes, or several intervals."""
    height = int(rng.choice(HEIGHTS))
    moved = np.zeros(HOUR, np.int64)
    match int(rng.integers(6)):
        case 0:
            moved += rng.integers(0, height + 1)
        case 1:
            moved[rng.integers(0, HOUR, rng.integers(1, 6))] = height
        case 2:
            moved += rng.integers(0, height + 1, HOUR)
        case 3:
            moved += np.repeat(rng.integers(0, height + 1, 60), 60)
        case 4:
            moved[:: rng.integers(1, 400)] = height
        case _:
            for _ in range(rng.integers(1, 9)):
                low, high = np.sort(rng.integers(0, HOUR + 1, 2))
                moved[low:high] += rng.integers(0, height + 1)
    return moved


def _observed(rng: np.random.Generator) -> Mask:
    """Part of the hour, or all but the opening gap, with up to three gaps."""
    low, high = sorted(rng.integers(0, HOUR + 1, 2).tolist())
    observed = np.zeros(HOUR, bool)
    observed[slice(low, high) if rng.random() < 0.5 else slice(low % 300, HOUR)] = True
    for start in rng.integers(0, HOUR, rng.integers(4)):
        observed[start : start + rng.integers(1, 800)] = False
    return observed


def test_any_series_has_a_period_or_a_reason() -> None:
    """A server's series, and every twentieth as the sum over a job: sums over any number of servers are such series."""
    rng = np.random.default_rng(27)
    reasons = set()
    for number in range(SERIES):
        moved, observed = _moved(rng), _observed(rng)
        with np.errstate(all="raise"):
            found = period_of(moved, observed)
        assert (found.period_seconds is None) == (found.unresolved is not None)
        reasons.add(found.unresolved)
        if number % 20 == 0:
            seen = np.flatnonzero(observed)
            window = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 0)
            with np.errstate(all="raise", under="ignore"):
                job = iterations_of(np.stack([moved, _moved(rng)]), observed, window, [None])
                assert np.isfinite(pace(moved[np.newaxis, np.newaxis], observed[np.newaxis])).all()
            assert (job.period_seconds is None) == (job.unresolved is not None)
            assert job.unresolved in REASONS
            assert job.alias_seconds is None or 1 < job.alias_seconds <= 2
    assert {None, "idle", "aperiodic", "few_cycles"} <= reasons <= REASONS


def test_a_series_whose_peaks_are_all_negative_is_not_resolved() -> None:
    moved = np.zeros(HOUR, np.int64)
    moved[862:1140] = moved[1444:2834] = 10**9
    with np.errstate(all="raise"):
        assert period_of(moved, np.ones(HOUR, bool)).unresolved == "aperiodic"


def test_servers_that_were_never_observed_at_once_have_no_period() -> None:
    found = iterations_of(np.ones((1, HOUR), np.int64), np.zeros(HOUR, bool), (0, HOUR - 1), [None, None])
    assert (found.period_seconds, found.unresolved) == (None, "idle")
