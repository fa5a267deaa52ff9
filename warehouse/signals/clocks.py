"""Jobs on one clock: stages of a pipeline, or jobs that wait for each other or for one storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warehouse.signals.coherence import Lags, Phases, rounded
from warehouse.signals.groups import DOUBT, LATEST, lag_of, least_score
from warehouse.signals.rails import Rails
from warehouse.signals.together import series_phases

RAILS_AGREE = 1.0
"""Seconds by which the lags of rails may differ if they are one lag."""
BETWEEN = 0.9
"""Part of the highest score that lags of whole seconds reach at least: the shortest waves have 16 s."""


@dataclass(frozen=True)
class Clock:
    """The group that another one follows, and how many seconds later; None where its rails do not agree in that."""

    of: int
    lag_seconds: float | None


def clocks(rails: Rails, groups: Sequence[Sequence[int]], window: tuple[int, int]) -> list[Clock | None]:
    """Return for each group the largest group that it follows; None if it follows none.

    A group follows one with more bytes if their sums are coherent at some lag. They are two groups because their bytes
    differ or one lags.
    """
    if len(groups) < 2:
        return [None] * len(groups)
    low, high = window
    phases = series_phases(rails.moved[:, :, low:high], rails.observed[:, low:high])
    sums = [rounded(phases[list(members)].sum(axis=0)) for members in groups]
    moved = [int(rails.moved[list(members)].sum()) for members in groups]
    order = sorted(range(len(groups)), key=lambda one: (-moved[one], one))
    tests = len(groups) * (len(groups) - 1) / 2
    found: list[Clock | None] = [None] * len(groups)
    for place, one in enumerate(order):
        for larger in order[:place]:
            # All groups on one clock name the largest one: a follower is never a clock.
            if found[larger] is None:
                by_rail = lags_of(sums[larger], sums[one], tests, Lags(high - low))
                if by_rail:
                    found[one] = Clock(larger, _agreed(by_rail))
                    break
    return found


def lags_of(larger: Phases, one: Phases, tests: float, lags: Lags) -> list[float | None]:
    """Return the lag of one sum behind another on each rail; None where it is not certain; empty if no lag is.

    The rails of two stages may pulse in another order. So each rail is compared alone, and all rails together.
    """
    both = np.flatnonzero((larger != 0).any(axis=1) & (one != 0).any(axis=1)).tolist()
    # Bonferroni: each lag, on each rail and on all together, is a chance of a false link.
    enough = least_score(tests * (2 * LATEST + 1) * (len(both) + 1))

    def certain(part: list[int]) -> float | None:
        pair = larger[part], one[part]
        # Whole seconds first: the search for tenths and the correlation at all lags cost more.
        if lags.at(*pair, np.arange(-LATEST, LATEST + 1.0)).max() < BETWEEN * enough:
            return None
        lag, score = lag_of(*pair, LATEST, lags)
        highest = float(lags.correlation(*pair).max())
        # A maximum at the end of the range may be the slope of one beyond it.
        return lag if score >= enough and abs(lag) < LATEST and score**2 + DOUBT >= highest**2 else None

    found = [certain([rail]) for rail in both]
    return found if any(lag is not None for lag in [*found, certain(both)]) else []


def _agreed(lags: list[float | None]) -> float | None:
    """Return the lag that two rails or more agree in, or that of the only rail."""
    known = [lag for lag in lags if lag is not None]
    if len(known) < min(len(lags), 2) or max(known) - min(known) > RAILS_AGREE:
        return None
    return float(np.median(known))
