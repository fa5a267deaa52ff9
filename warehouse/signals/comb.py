"""Period of the sum over a group: a comb of teeth in its autocorrelation, where single servers show none.

The noise of single servers averages out in their sum. Iterations that vary, or that are shorter than a few seconds,
leave low and blurred teeth. So five teeth at once decide, against series of the same smooth spectrum without a rhythm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from warehouse.signals.period import FINER
from warehouse.signals.series import Floats, Ints, around

TEETH = 5
COMB_SHORTEST, COMB_LONGEST = 2.04, 300.0
"""Periods in seconds that a comb is tried for."""
RATIO = 0.004
"""Step from one tried period to the next, as a part of it."""
HIGHEST = (0.4, 0.5)
"""Highest frequencies, in 1/s: with those above 0.4, which are mostly aliases of faster waves, or without."""
WIDE = 0.2
"""The smooth spectrum is a mean over frequencies that differ by up to this part: wider than a tooth of any comb."""
NARROWEST = 6
"""Least number of frequencies on each side of that mean."""
SURROGATES = 60
CERTAIN = 0.999
"""Quantile of the highest comb of series without a rhythm that a comb must exceed."""
FINE = 40
"""Steps on each side when a period is fitted to more teeth."""
STILL_HIGH = 0.5
"""Teeth count while they keep this part of the height."""
JACKKNIFE = 10
"""Blocks of time for the error of a period."""
FIRST = 0.7
WHOLE = 0.02
"""The first comb that is nearly as high as the highest, a multiple of it up to a small part, is the period."""
HIGHER = 0.05
"""Every second tooth is higher by this much if two pulses make an iteration."""


@dataclass(frozen=True)
class Comb:
    """Period in seconds with its standard error, height of its comb, and the height that chance reaches."""

    period: float
    error: float
    height: float
    chance: float


def comb_of(sums: Ints) -> Comb | None:
    """Return the period of the sums over a group, a row for each rail; None where no comb is above chance."""
    waves = sums - sums.mean(axis=1, keepdims=True)
    found = [(one, highest) for highest in HIGHEST if (one := _of_band(_power(waves), waves.shape[1], highest))]
    if not found:
        return None
    best, highest = max(found, key=lambda one: one[0].height / one[0].chance)
    if best.period * HIGHEST[0] > 1:  # its own wave is below, so those above are not needed
        best, highest = found[0]
    return replace(best, error=_error(waves, best.period, highest))


def _power(waves: Floats) -> Floats:
    """Return the power spectrum of the rails together. The ends fade, so that a cut is no event."""
    count = waves.shape[1]
    ends = count // 20
    fade = np.ones(count)
    fade[:ends] = (1 - np.cos(np.pi * (np.arange(ends) + 0.5) / ends)) / 2
    fade[count - ends :] = fade[:ends][::-1]
    found: Floats = (np.abs(np.fft.rfft(waves * fade, axis=1)) ** 2).sum(axis=0)
    return found


def _inside(power: Floats, count: int, highest: float) -> Floats:
    """Return the power between the slowest wave and the highest frequency, else 0."""
    number = np.arange(len(power))
    return np.where((number * COMB_LONGEST >= count) & (number < highest * count), power, 0)


def _of_band(power: Floats, count: int, highest: float) -> Comb | None:
    """Return the comb of the frequencies up to the highest."""
    used = _inside(power, count, highest)
    periods = np.exp(
        # 12 periods must fit, as for the period of one server; a band has no period below that of its highest
        # frequency.
        np.arange(math.log(max(COMB_SHORTEST, 1 / highest)), math.log(min(COMB_LONGEST, count / 12)), RATIO)
    )
    if not used.any() or not len(periods):
        return None
    rho = _correlation(used, count)
    heights = combs(rho, periods)
    half = np.maximum((np.arange(len(used)) * WIDE).astype(int), NARROWEST)
    smooth = np.where(used > 0, around(used, half), 0)
    random = np.random.default_rng(0)  # fixed: equal rows must give equal bytes
    chance = np.array(
        [
            # The power of noise at one frequency is distributed exponentially around its mean.
            combs(_correlation(smooth * random.exponential(1, len(smooth)), count), periods).max()
            for _ in range(SURROGATES)
        ]
    )
    # 60 surrogates have no 99.9 % quantile of their own, so a distribution of maxima is fitted to them.
    limit = gumbel_quantile(chance, CERTAIN)
    tops = np.flatnonzero((heights[1:-1] >= heights[:-2]) & (heights[1:-1] > heights[2:])) + 1
    tops = tops[(heights[tops] >= FIRST * heights.max()) & (heights[tops] > limit)]
    if not len(tops):
        return None
    multiples = periods[int(heights.argmax())] / periods[tops]
    first = int(tops[np.abs(multiples - np.rint(multiples)) <= WHOLE * multiples][0])
    period = float(periods[first])
    # Waves above HIGHEST[0] are mostly aliases, and these would show a second pulse that is none.
    clear = rho if period * HIGHEST[0] < 1 else _correlation(_inside(power, count, HIGHEST[0]), count)
    found = _followed(rho, period)
    while _two_pulses(clear, period):
        period *= 2
        if period > periods[-1]:
            return None
        doubled = _followed(rho, period)
        if abs(doubled / found - 2) > 2 * WHOLE:  # its further teeth are elsewhere
            break
        found = doubled
    return Comb(found, 0.0, float(heights[first]), limit)


def _two_pulses(rho: Floats, period: float) -> bool:
    """Return True if every second tooth is higher: the comb counts two pulses of an iteration, no alias of a wave."""
    tooth = rho[np.minimum(np.rint(np.arange(1, TEETH + 1) * period * FINER).astype(int), len(rho) - 1)]
    return bool(tooth[1::2].mean() > tooth[::2].mean() + HIGHER)


def _correlation(power: Floats, count: int) -> Floats:
    """Return the autocorrelation at lags of 0, 1/FINER, ... s."""
    found = np.fft.irfft(power, count * FINER)[: count * FINER // 2]
    found /= found[0]
    return found


def combs(rho: Floats, periods: Floats) -> Floats:
    """Return the mean of the autocorrelation at the first multiples of each period, minus that halfway between."""
    teeth = np.outer(np.arange(1, TEETH + 1), periods) * FINER
    between = np.outer(np.arange(1, TEETH + 1) - 0.5, periods) * FINER
    found: Floats = rho[np.rint(teeth).astype(int)].mean(axis=0) - rho[np.rint(between).astype(int)].mean(axis=0)
    return found


def gumbel_quantile(values: Floats, share: float) -> float:
    """Return a quantile of the Gumbel distribution with the mean and deviation of these maxima."""
    scale = float(values.std()) * math.sqrt(6) / math.pi
    return float(values.mean()) - scale * (np.euler_gamma + math.log(-math.log(share)))


def _followed(rho: Floats, period: float) -> float:
    """Return the period at which more and more teeth are highest, as long as the later half of them stands out."""
    teeth, height = TEETH, 0.0
    while True:
        # The last tooth moves by a third of a period at most, so it cannot reach its neighbor's place.
        tried = period * (1 + np.linspace(-1, 1, 2 * FINE + 1) / (3 * teeth))
        if teeth * tried[-1] * FINER >= len(rho) - 1:
            return period
        heights = _late_teeth(rho, tried, teeth)
        best = int(np.argmax(heights))
        if heights[best] < STILL_HIGH * height:
            return period
        period, height = float(tried[best]), max(height, float(heights[best]))
        teeth *= 2


def _late_teeth(rho: Floats, periods: Floats, teeth: int) -> Floats:
    """Return the mean of the autocorrelation at the later half of so many multiples, minus that halfway between."""
    multiples = np.arange(teeth // 2 + 1, teeth + 1)
    lags = np.arange(len(rho))

    def mean(shift: float) -> Floats:
        at = np.outer(multiples - shift, periods) * FINER
        found: Floats = np.interp(at, lags, rho).mean(axis=0)
        return found

    return mean(0.0) - mean(0.5)


def _error(waves: Floats, period: float, highest: float) -> float:
    """Return the standard error of a period by the jackknife: each of some blocks of time is left out once."""
    count = waves.shape[1]
    edges = [count * one // JACKKNIFE for one in range(JACKKNIFE + 1)]
    periods = []
    for low, high in pairwise(edges):
        rest = waves.copy()
        rest[:, low:high] = 0  # the mean, so the block has no power
        rho = _correlation(_inside(_power(rest), count, highest), count)
        periods.append(_followed(rho, period))
    around = np.array(periods)
    # Two estimates share most of the hour and differ too little: the factor of the jackknife corrects for it.
    return float(np.sqrt((JACKKNIFE - 1) * around.var()))
