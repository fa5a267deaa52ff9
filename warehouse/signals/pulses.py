"""Depth of pulses, and the start of each."""

from __future__ import annotations

import numpy as np

from warehouse.signals.autocorrelation import Floats, Ints, Mask

HARMONICS = 12
"""Number of waves of a period that are compared."""
ROUNDS = 8
"""Iterations to separate pulse height from quiet level."""
QUIET, APART = 0.6, 0.7
"""A pulse starts after at least this part of the usual quiet, and this part of a period after the last start."""


def depths(moved: Ints, observed: Mask, period: float) -> Floats:
    """Return amplitude over mean of the waves of a period, its half, third ...: up to 2 for short pulses, else 0."""
    at = np.flatnonzero(observed)
    values = moved[at]
    turn = np.exp(2j * np.pi / period * at)
    wave, found = np.ones_like(turn), []
    # A wave shorter than 2 s cannot be told from its alias in one sample a second.
    for _ in range(max(1, min(HARMONICS, int(period / 2)))):
        wave *= turn
        found.append(2 * abs((values * wave).sum()) / values.sum())
    return np.array(found)


def depth_of_alias(period: float, number: int = 1) -> float:
    """Return the largest depth of pulses with a period under 2 s that appear as this period by aliasing.

    Sampled once a second, a frequency of 1 - 1/period cycles per second appears as 1/period, weakened by the mean over
    a second; the shortest pulses have twice their mean as amplitude. Multiples of both frequencies, by a `number`, are
    aliases, too.
    """
    return 2 * abs(float(np.sinc(number * (1 - 1 / period))))


def half_height(values: Ints) -> int:
    """Return the level halfway between pulses and quiet, from the means of the seconds above and below it."""
    half = (int(values.max()) + int(values.min())) // 2
    for _ in range(ROUNDS):
        above = values[values > half]
        below = values[values <= half]
        if len(above):
            half = (int(above.sum()) // len(above) + int(below.sum()) // len(below)) // 2
    # At a height of 0, idle seconds would count as pulses.
    return max(half, 1)


def share_above(moved: Ints, observed: Mask, half: int) -> float:
    """Return the share of the time above a height, interpolated linearly between the middles of seconds."""
    low, high = np.minimum(moved[1:], moved[:-1]), np.maximum(moved[1:], moved[:-1])
    share = np.clip((high - half) / np.maximum(high - low, 1), 0, 1)
    return float(share[observed[1:] & observed[:-1]].mean())


def date(moved: Ints, observed: Mask, period: float, half: int) -> Ints:
    """Return the starts of the pulses, in milliseconds of the hour.

    A pulse starts where the series rises through half of its height, between the middles of two seconds. A rise after
    a short quiet time is inside a pulse.
    """
    above = moved >= half
    both = observed[1:] & observed[:-1]

    def crossings(there: Mask) -> Ints:
        second = np.flatnonzero(both & there) + 1
        before, after = moved[second - 1], moved[second]
        return 1000 * second - 500 + 1000 * (half - before) // (after - before)

    rises, falls = crossings(above[1:] & ~above[:-1]), crossings(above[:-1] & ~above[1:])
    last_fall = np.searchsorted(falls, rises) - 1
    quiet = np.where(last_fall >= 0, rises - falls[last_fall], 0) if len(falls) else np.zeros_like(rises)
    # As many as there are iterations: the shorter ones are dips inside pulses.
    longest = np.sort(quiet)[::-1][: int(observed.sum() / period)]
    starts: list[int] = []
    for rise in rises[quiet >= QUIET * (np.median(longest) if len(longest) else 0)].tolist():
        if not starts or rise - starts[-1] >= APART * period * 1000:
            starts.append(rise)
    return np.array(starts, np.int64)
