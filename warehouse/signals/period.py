"""Period of one series, or the reason why it has none: its autocorrelation, and depth and start of its pulses.

Then the period of the sum over a group: a comb of teeth in its autocorrelation, where single servers show none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from warehouse.signals.series import Floats, Ints, Mask, around, peaks

SHORTEST_ALONE, LEAST_CYCLES = 4.0, 12
"""Periods that can be resolved: from 4 s to a twelfth of the observed time."""
STRONG = 0.4
"""A period needs a peak of the autocorrelation this high."""
TWICE = 2
"""A period holds n pulses if the wave of its n-th part is this many times deeper than that of the whole."""
DEEP = 0.25
"""Minimum depth of pulses, which must also exceed the depth of an alias."""
SEEN, AGREE = 0.8, 0.003
"""Starts of this part of the pulses must be found, and their period must agree so closely with the autocorrelation."""


@dataclass(frozen=True)
class Found:
    """Period of a series and its pulses; fields are the columns of `traffic_periods` of the same name."""

    observed_seconds: int = 0
    peak_over_mean: float | None = None
    unresolved: str | None = None
    candidate_seconds: float | None = None
    strength: float | None = None
    period_seconds: float | None = None
    duty_cycle: float | None = None
    pulses: int | None = None
    scatter_seconds: float | None = None
    starts_ms: list[int] | None = None


def period_of(moved: Ints, observed: Mask) -> Found:
    """Find the period of one series, or the reason why there is none.

    `moved` has the bytes of each second of the hour; `observed` marks the seconds that count.
    """
    count, total = int(observed.sum()), int(moved[observed].sum())
    if not total:
        return Found(count, unresolved="idle")
    peak = int(peaks(moved[observed])[0])
    found = Found(count, round(peak * count / total, 3))
    # Not even the shortest period would fit often enough.
    if count < LEAST_CYCLES * SHORTEST_ALONE:
        return replace(found, unresolved="few_cycles")
    levels = in_levels(moved, observed, peak)
    if not levels.any():
        return replace(found, unresolved="aperiodic")
    rho = autocorrelation(levels, observed)
    first = first_period(rho)
    followed = first and follow(rho, first)
    if not followed:
        return replace(found, unresolved="aperiodic")
    period, strength = followed
    if strength < STRONG:
        return replace(found, unresolved="aperiodic", candidate_seconds=round(period, 4), strength=round(strength, 3))
    deep = depths(moved, observed, period)
    # A period of n pulses is also a period, but the iteration is one pulse.
    if deep.max() > TWICE * deep[0] and rho[round(period / (deep.argmax() + 1) * FINER)] > strength / 2:
        period, strength = follow(rho, period / (deep.argmax() + 1)) or (period, strength)
        deep = depths(moved, observed, period)
    found = replace(found, candidate_seconds=round(period, 4), strength=round(strength, 3))
    if period < SHORTEST_ALONE:
        return replace(found, unresolved="fast")
    if count < LEAST_CYCLES * period:
        return replace(found, unresolved="few_cycles")
    half = half_height(moved[observed])
    starts = date(moved, observed, period, half)
    between = np.diff(starts)
    cycles = np.maximum(np.rint(between / (period * 1000)), 1)
    # A second time: the server may have pulsed in only a part of the observed time.
    if cycles.sum() < LEAST_CYCLES:
        return replace(found, unresolved="few_cycles")
    if len(starts) <= SEEN * cycles.sum() or abs(between.sum() / cycles.sum() / 1000 / period - 1) > AGREE:
        return replace(found, unresolved="unsteady")
    if deep[0] < max(DEEP, depth_of_alias(period)):
        return replace(found, unresolved="shallow")
    active = slice(starts[0] // 1000, starts[-1] // 1000)
    # This factor makes the median absolute deviation of a normal distribution its standard deviation.
    scatter = 1.4826 * float(np.median(np.abs(between - np.median(between)))) / 1000
    return replace(
        found,
        period_seconds=found.candidate_seconds,
        duty_cycle=round(share_above(moved[active], observed[active], half), 3),
        pulses=len(starts),
        scatter_seconds=round(scatter, 3),
        starts_ms=starts.tolist(),
    )


# Autocorrelation of bytes per second, and the period that its peaks show.

LEVELS = 1000
"""Number of levels that bytes are rounded to, so that the autocorrelation is over small integers."""
FINER = 4
"""Steps per second of the lags: 1/4 s, interpolated by the spectrum."""
RISE = 0.2
"""A period needs a peak of the autocorrelation this far above the lowest value before it."""
NEARLY = 0.85
"""The first peak that is nearly as high as the highest is the period; those after it are its multiples."""
CLIMB, COHERENT = 3, 0.7
"""Search range for peaks in steps around a lag; multiples are followed while peaks keep this part of the height."""


def in_levels(moved: Ints, observed: Mask, peak: int) -> Ints:
    """Return the series as integers up to `LEVELS`, cut at the peak, minus its mean; 0 where not observed."""
    levels = np.minimum(moved, peak) * LEVELS // peak
    # A mean in whole levels keeps the series integer, and its sums exact in any order.
    return np.where(observed, levels - round(int(levels[observed].sum()) / int(observed.sum())), 0)


def autocorrelation(levels: Ints, observed: Mask) -> Floats:
    """Return the autocorrelation of the series at lags of 0, 1/FINER, ... s up to half of the observed time.

    Mean product of pairs of observed seconds. The power spectrum gives sums and numbers of pairs; padded with zeros, it
    also gives values between whole seconds.
    """
    # An FFT is circular: with less padding, the end of the hour would be compared with its beginning.
    length = 1 << (2 * len(levels) - 1).bit_length()
    power, pairs = (np.abs(np.fft.rfft(series, length)) ** 2 for series in (levels, observed.astype(np.int64)))
    products = np.fft.irfft(power, length * FINER) * FINER  # irfft divides by the longer length
    numbers = np.rint(np.fft.irfft(pairs, length)[: len(levels)])  # counts, but for the rounding of the FFT
    where = np.flatnonzero(observed)
    half = int(where[-1] - where[0] + 1) // 2 * FINER
    lags = np.arange(half) / FINER
    # Between gaps, a lag may have no pair of observed seconds; its product is 0, too.
    mean = products[:half] / np.maximum(np.interp(lags, np.arange(len(numbers)), numbers), 1)
    return np.asarray(mean / mean[0])


def first_period(rho: Floats) -> float | None:
    """Return the lag of the first positive peak that is nearly as high as the highest one."""
    inner = rho[1:-1]
    # Strict on one side only: two equal values at the top are one peak.
    peaks = np.flatnonzero((inner > rho[:-2]) & (inner >= rho[2:])) + 1
    peaks = peaks[(rho[peaks] > 0) & (rho[peaks] - np.minimum.accumulate(rho)[peaks] > RISE)]
    if not len(peaks):
        return None
    first = int(peaks[rho[peaks] >= NEARLY * rho[peaks].max()][0])
    near = first * 4 // 5  # take the top itself if a smaller peak is on its slope
    return (near + int(np.argmax(rho[near : first * 6 // 5 + 2]))) / FINER


def summits(rho: Floats, lags: Floats) -> tuple[Floats, Floats]:
    """Return place and height of the peaks next to these lags (in steps), by a parabola through three points."""
    last = len(rho) - 2
    at = np.clip(np.rint(lags).astype(np.int64), 1, last)
    for _ in range(CLIMB):
        at = np.clip(at - 1 + np.argmax(np.stack([rho[at - 1], rho[at], rho[at + 1]]), axis=0), 1, last)
    before, here, after = rho[at - 1], rho[at], rho[at + 1]
    bend = before - 2 * here + after
    offset = np.where(bend < 0, (before - after) / np.where(bend < 0, 2 * bend, 1), 0)
    return at.astype(np.float64) + offset, here - (before - after) * offset / 4


def follow(rho: Floats, period: float) -> tuple[float, float] | None:
    """Return the period (s) from the peaks at its multiples, as far as they cohere, and the height of the first peak.

    None where no peak is next to this period. A peak at m periods gives the period m times as precisely as the first.
    The multiple is doubled while the next peak is at its expected place; then a line through the origin is fitted to
    all peaks up to there.
    """
    (lag,), (strength,) = (one.tolist() for one in summits(rho, np.array([period * FINER])))
    # Climbing moves by CLIMB steps, rounding and the parabola by half a step each: farther is a slope, not a peak.
    if abs(lag - period * FINER) > CLIMB + 1:
        return None
    multiple = 1
    while True:
        expected, tolerance = 2 * multiple * lag, lag / 4
        low, high = int(expected - tolerance), int(expected + tolerance) + 2
        if high >= len(rho):
            break
        (place,), (height,) = (one.tolist() for one in summits(rho, low + np.argmax(rho[low:high], keepdims=True)))
        if height < COHERENT * strength or abs(place - expected) > tolerance:
            break
        multiple *= 2
        lag = place / multiple
    multiples = np.arange(1, int((len(rho) - 2) / lag) + 1)
    places, heights = summits(rho, multiples * lag)
    coheres = (np.abs(places - multiples * lag) < lag / 4) & (heights >= COHERENT * strength)
    reach = len(multiples) if coheres.all() else int(np.argmin(coheres))
    if reach:
        multiples, places = multiples[:reach], places[:reach]
        lag = float((multiples * places).sum() / (multiples * multiples).sum())
    return lag / FINER, strength


# Depth of pulses, and the start of each.

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
    # A wave shorter than 2 s cannot be told from its alias in one sample a second.
    numbers = np.arange(1, max(1, min(HARMONICS, int(period / 2))) + 1)
    waves = np.exp(2j * np.pi / period * np.outer(numbers, at))
    return np.asarray(2 * np.abs((values * waves).sum(axis=1)) / values.sum())


def depth_of_alias(period: float, number: int = 1) -> float:
    """Return the largest depth of pulses with a period under 2 s that appear as this period by aliasing.

    Sampled once a second, a frequency of 1 - 1/period cycles per second appears as 1/period, weakened by the mean over
    a second; the shortest pulses have twice their mean as amplitude. Multiples of both frequencies, by a `number`, are
    aliases, too.
    """
    return 2 * abs(float(np.sinc(number * (1 - 1 / period))))


def half_height(series: Ints) -> int:
    """Return the level halfway between pulses and quiet, from the means of the seconds above and below it."""
    values = np.minimum(series, peaks(series))
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


# Period of the sum over a group.
#
# The noise of single servers averages out in their sum. Iterations that vary, or that are shorter than a few seconds,
# leave low and blurred teeth. So five teeth at once decide, against series of the same smooth spectrum without a
# rhythm.

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
    ends = max(count // 20, 1)
    edge = np.minimum(np.arange(count), np.arange(count)[::-1]) + 0.5
    fade = (1 - np.cos(np.pi * np.minimum(edge, ends) / ends)) / 2
    return np.asarray((np.abs(np.fft.rfft(waves * fade, axis=1)) ** 2).sum(axis=0))


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
    teeth, between = (np.outer(np.arange(1, TEETH + 1) - shift, periods) * FINER for shift in (0, 0.5))
    return np.asarray(rho[np.rint(teeth).astype(int)].mean(axis=0) - rho[np.rint(between).astype(int)].mean(axis=0))


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
    late, between = (np.outer(np.arange(teeth // 2 + 1, teeth + 1) - shift, periods) * FINER for shift in (0, 0.5))
    lags = np.arange(len(rho))
    return np.asarray(np.interp(late, lags, rho).mean(axis=0) - np.interp(between, lags, rho).mean(axis=0))


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
    # Two estimates share most of the hour and differ too little: the factor of the jackknife corrects for it.
    return float(np.sqrt((JACKKNIFE - 1) * np.var(periods)))
