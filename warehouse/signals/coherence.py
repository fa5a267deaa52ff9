"""Coherence of traffic between servers, and groups of servers that are coherent.

Two servers of one job speed up and slow down together, beyond the regular rhythm of iterations. Their spectra then have
related phases at many frequencies. The phases of unrelated servers are independent and uniform, whatever the spectra
look like. So only the phases are compared, each frequency with the same weight: the cross-correlation "with phase
transform" of C. Knapp and G. Carter, *The Generalized Correlation Method for Estimation of Time Delay*, IEEE Trans.
ASSP 24 (1976). Its score for unrelated servers is normally distributed with variance 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Phases = NDArray[np.complex128]

SLOWEST, FASTEST = 120, 16
"""Longest and shortest wave that is compared, in seconds. Faster ones show the poller's rhythm: ports of one switch are
polled together."""
TAPER = 0.1
"""Part of the window over which its ends fade in and out, so that a cut does not look like an event."""
CLIP = 1.5
"""Values are clipped at this many times their root mean square."""
LEVELS = 1024
"""Phases are rounded to multiples of 1/LEVELS, so that sums of products are exact in any order."""


def drift_removed(wave: Ints, observed: NDArray[np.bool_]) -> Ints:
    """Return the series minus its mean over `SLOWEST` seconds around each second, in units of 1/(SLOWEST + 1).

    `wave` has a row for each series. Seconds that were not observed are 0. Values are clipped, so that a single event,
    as a pause for a checkpoint, does not outweigh all others.
    """
    half = SLOWEST // 2
    padded = np.pad(wave, [(0, 0), (half + 1, half)], mode="edge")
    sums = np.cumsum(padded, axis=1)
    around = sums[:, 2 * half + 1 :] - sums[:, : -2 * half - 1]
    found = np.where(observed, (2 * half + 1) * wave - around, 0)
    most = (CLIP * np.sqrt((found.astype(np.float64) ** 2).mean(axis=1, keepdims=True))).astype(np.int64)
    return np.clip(found, -most, most)


def phases(waves: Ints) -> Phases:
    """Return the phase of each wave between `SLOWEST` and `FASTEST`, as complex numbers of length `LEVELS`.

    A row of `waves` is a series; a series of zeros has phases 0.
    """
    count = waves.shape[-1]
    fade = np.ones(count)
    ends = int(TAPER * count / 2)
    ramp = (1 - np.cos(np.pi * (np.arange(ends) + 0.5) / max(ends, 1))) / 2
    fade[:ends], fade[count - ends :] = ramp, ramp[::-1]
    first, end = _band(count)
    return rounded(np.fft.rfft(waves * fade, axis=-1)[..., first:end])


def _band(seconds: int) -> tuple[int, int]:
    return -(-seconds // SLOWEST), -(-seconds // FASTEST)


def rounded(vectors: Phases) -> Phases:
    """Return complex numbers scaled to the length `LEVELS` and rounded; 0 stays 0."""
    length = np.abs(vectors)
    unit = np.where(length > 0, vectors / np.where(length > 0, length, 1), 0)
    found: Phases = np.rint(unit.real * LEVELS) + 1j * np.rint(unit.imag * LEVELS)
    return found


def scores(one: Phases, others: Phases) -> Floats:
    """Return how coherent series are: a standard normal number for unrelated series, large for coherent ones.

    `one` has the phases of one series, `others` a row for each other series. Phases that are 0 in either do not count.
    """
    products = (others.real @ one.real + others.imag @ one.imag) / LEVELS**2
    common = (others != 0).astype(np.float64) @ (one != 0).astype(np.float64)
    found: Floats = products * np.sqrt(2 / np.maximum(common, 1))
    return found


def all_scores(series: Phases, *, plain: bool = False) -> Floats:
    """Return `scores` of every two series; `plain` for the mean cosine of the differences of their phases."""
    products = (series.real @ series.real.T + series.imag @ series.imag.T) / LEVELS**2
    there = (series != 0).astype(np.float64)
    common = np.maximum(there @ there.T, 1)
    found: Floats = products / common if plain else products * np.sqrt(2 / common)
    return found


@dataclass(frozen=True)
class Lags:
    """Scores of two series at lags, for phases of windows of `seconds`."""

    seconds: int

    def correlation(self, one: Phases, other: Phases) -> Floats:
        """Return the score for each number of seconds, modulo the window, by which the other series may be later."""
        first, end = _band(self.seconds)
        spectrum = np.zeros(self.seconds // 2 + 1, complex)
        spectrum[first:end] = self._products(one, other)
        found: Floats = np.fft.irfft(spectrum, self.seconds) * self.seconds / 2
        return found

    def at(self, one: Phases, other: Phases, lags: Floats) -> Floats:
        """Return the score for each of these lags in seconds, which need not be whole."""
        first, end = _band(self.seconds)
        turns = np.exp(2j * np.pi * np.outer(lags, np.arange(first, end)) / self.seconds)
        found: Floats = (turns @ self._products(one, other)).real
        return found

    def _products(self, one: Phases, other: Phases) -> Phases:
        first, end = _band(self.seconds)
        common = max(int(((one != 0) & (other != 0)).sum()), 1)
        products = (one.conj() * other).reshape(-1, end - first).sum(axis=0)
        found: Phases = products / LEVELS**2 * np.sqrt(2 / common)
        return found
