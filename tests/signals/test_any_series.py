"""Periods of any series of an hour: none stops a build, and a series without a period says why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.models.pulses import HOUR
from warehouse.signals.job import iterations_of
from warehouse.signals.pace import pace
from warehouse.signals.period import period_of

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SERIES, JOBS = 200, 8
HEIGHTS = (1, 1_000, 10**9, 2 * 10**11, 2**50)
"""Bytes a second: from one to far beyond what all ports of a server can move."""
REASONS = {None, "idle", "aperiodic", "fast", "few_cycles", "shallow", "unsteady"}


def _seconds(*ranges: tuple[int, int]) -> Mask:
    """The seconds of the hour that lie in one of the ranges."""
    inside = np.zeros(HOUR, bool)
    for first, end in ranges:
        inside[first:end] = True
    return inside


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
    observed = _seconds((low, high) if rng.random() < 0.5 else (low % 300, HOUR))
    for start in rng.integers(0, HOUR, rng.integers(4)):
        observed[start : start + rng.integers(1, 800)] = False
    return observed


def _look(moved: Ints, observed: Mask) -> Any:
    with np.errstate(all="raise"):
        return period_of(moved, observed)


def test_any_series_has_a_period_or_a_reason() -> None:
    rng = np.random.default_rng(27)
    reasons = set()
    for _ in range(SERIES):
        found = _look(_moved(rng), _observed(rng))
        assert (found.period_seconds is None) == (found.unresolved is not None)
        reasons.add(found.unresolved)
    assert {None, "idle", "aperiodic", "few_cycles"} <= reasons <= REASONS


def test_any_series_is_a_job_with_a_period_or_a_reason_and_has_a_pace() -> None:
    """Series of one or two rails, as the sum over a job; sums over any number of servers are such series."""
    rng = np.random.default_rng(28)
    for _ in range(JOBS):
        observed = _observed(rng)
        seen = np.flatnonzero(observed)
        window = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 0)
        moved = np.stack([_moved(rng) for _ in range(rng.integers(1, 3))])
        with np.errstate(all="raise", under="ignore"):
            found = iterations_of(moved, observed, window, [None])
            assert np.isfinite(pace(moved[:1, np.newaxis], observed[np.newaxis])).all()
        assert (found.period_seconds is None) == (found.unresolved is not None)
        assert found.unresolved in REASONS
        assert found.alias_seconds is None or 1 < found.alias_seconds <= 2


def test_a_series_whose_peaks_are_all_negative_is_not_resolved() -> None:
    found = _look(_seconds((862, 1140), (1444, 2834)) * np.int64(10**9), _seconds((0, HOUR)))
    assert found.unresolved == "aperiodic"
