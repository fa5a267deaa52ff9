"""Jobs on one clock: stages of a pipeline, or jobs that wait for each other or for one storage."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.signals.coherence import Lags, rounded
from warehouse.signals.groups import LATEST, lag_of, least_score
from warehouse.signals.rails import Rails
from warehouse.signals.together import series_phases

NEAR = 0.5
"""A score between two seconds is higher than at both by at most this."""


def clocks(rails: Rails, groups: Sequence[Sequence[int]], window: tuple[int, int]) -> list[tuple[int, float] | None]:
    """Return for each group the largest group that it follows, and how many seconds later; None if it follows none.

    A group follows one with more bytes if their sums are coherent at some lag. They are two groups because their bytes
    differ or one lags.
    """
    low, high = window
    phases = series_phases(rails.moved[:, :, low:high], rails.observed[:, low:high])
    sums = [rounded(phases[list(members)].sum(axis=0)) for members in groups]
    moved = [int(rails.moved[list(members)].sum()) for members in groups]
    order = sorted(range(len(groups)), key=lambda one: (-moved[one], one))
    tests = max(len(groups) * (len(groups) - 1) / 2, 1) * (2 * LATEST + 1)
    enough = least_score(tests)
    found: list[tuple[int, float] | None] = [None] * len(groups)
    lags = Lags(high - low)
    for place, one in enumerate(order):
        for larger in order[:place]:
            if found[larger] is None:
                around = lags.correlation(sums[larger], sums[one])
                if max(around[: LATEST + 1].max(), around[-LATEST:].max()) < enough - NEAR:
                    continue
                lag, score = lag_of(sums[larger], sums[one], LATEST, lags)
                if abs(lag) < LATEST and score >= enough:
                    found[one] = larger, lag
                    break
    return found
