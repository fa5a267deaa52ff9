"""Autocorrelation of bytes per second, and the period that its peaks show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def percentile(values: Ints, share: int) -> int:
    """Return the value at this percentile, rounded down; the largest value where the percentile is zero."""
    ascending = np.sort(values)
    return int(ascending[share * (len(ascending) - 1) // 100]) or int(ascending[-1])


def peaks(series: Ints, share: int = 99) -> Ints:
    """Return the value of each row at this percentile, rounded down, or its largest where that is zero; 1 for zeros."""
    ascending = np.sort(series, axis=1)
    found: Ints = ascending[:, share * (series.shape[1] - 1) // 100]
    # Callers divide by it.
    return np.maximum(np.where(found > 0, found, ascending[:, -1]), 1)[:, np.newaxis]


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
    rho: Floats = mean / mean[0]
    return rho


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
    aside = np.where(bend < 0, (before - after) / np.where(bend < 0, 2 * bend, 1), 0)
    heights: Floats = here - (before - after) * aside / 4
    return at.astype(np.float64) + aside, heights


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
        expected, aside = 2 * multiple * lag, lag / 4
        low, high = int(expected - aside), int(expected + aside) + 2
        if high >= len(rho):
            break
        (place,), (height,) = (one.tolist() for one in summits(rho, low + np.argmax(rho[low:high], keepdims=True)))
        if height < COHERENT * strength or abs(place - expected) > aside:
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
