"""Coherence of traffic between servers, and groups of servers that are coherent.

Two servers of one job speed up and slow down together, beyond the regular rhythm of iterations. Their spectra then have
related phases at many frequencies. The phases of unrelated servers are independent and uniform, whatever the spectra
look like. So only the phases are compared, each frequency with the same weight: the cross-correlation "with phase
transform" of C. Knapp and G. Carter, *The Generalized Correlation Method for Estimation of Time Delay*, IEEE Trans.
ASSP 24 (1976). Its score for unrelated servers is normally distributed with variance 1.

Iterations of a few seconds make waves too fast to be compared, since ports of one switch share the rhythm of the poller
there. But the phase of such a wave, followed through the hour, shows how the iterations speed up and slow down:
frequency demodulation, as of a radio signal. This pace of a server is compared like one more rail.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from warehouse.signals.series import Floats, Ints, Mask, peaks

Phases = NDArray[np.complex128]

SLOWEST, FASTEST = 90, 16
"""Longest and shortest wave of bytes that is compared, in seconds. Slower ones show what servers wait for, such as one
storage; faster ones the poller's rhythm: ports of one switch are polled together."""
PACE_SLOWEST, PACE_FASTEST = 200, 30
"""Longest and shortest wave of the pace of iterations that is compared."""
TAPER = 0.2
"""Part of the window over which its ends fade in and out. A cut is like an event at the same second in all servers: it
gives the waves between those of a regular rhythm the phase of this rhythm."""
CLIP = 1.5
"""Values are clipped at this many times their root mean square."""
UNIT = 1024
"""Phases are rounded to multiples of 1/UNIT, so that sums of products are exact in any order."""


def drift_removed(wave: Ints, observed: Mask) -> Ints:
    """Return the series minus its mean over `SLOWEST` seconds around each second, in units of 1/(SLOWEST + 1).

    `wave` has a row for each series. Seconds that were not observed are 0. Values are clipped, so that a single event,
    as a pause for a checkpoint, does not outweigh all others.
    """
    half = SLOWEST // 2
    # Zeros beyond the ends would look like a pause there.
    padded = np.pad(wave, [(0, 0), (half + 1, half)], mode="edge")
    sums = np.cumsum(padded, axis=1)
    around = sums[:, 2 * half + 1 :] - sums[:, : -2 * half - 1]
    found = np.where(observed, (2 * half + 1) * wave - around, 0)
    most = (CLIP * np.sqrt((found.astype(np.float64) ** 2).mean(axis=1, keepdims=True))).astype(np.int64)
    return np.clip(found, -most, most)


def phases(waves: Ints, observed: Mask, slowest: int = SLOWEST, fastest: int = FASTEST) -> Phases:
    """Return the phases of waves of so many seconds, as complex numbers of length `UNIT`; those of others are 0.

    A row of `waves` is a series, and one of `observed` marks its seconds; a series of zeros has phases 0.
    """
    count = waves.shape[-1]
    first, end = _band(count)
    number = np.arange(first, end)
    inside = (number * slowest >= count) & (number * fastest < count)
    return rounded(np.where(inside, np.fft.rfft(waves * _fade(observed), axis=-1)[..., first:end], 0))


def _fade(observed: Mask) -> Floats:
    """Return a weight for each second: 1, but for the ends of the window and the seconds in and around a gap."""
    count = observed.shape[-1]
    ends = max(int(TAPER * count / 2), 1)
    second = np.arange(count)
    before = second - np.maximum.accumulate(np.where(observed, -1, second), axis=-1)
    after = np.minimum.accumulate(np.where(observed, count, second)[..., ::-1], axis=-1)[..., ::-1] - second
    place = np.clip((np.minimum(before, after) - 0.5) / ends, 0, 1)
    return (1 - np.cos(np.pi * place)) / 2


def _band(seconds: int) -> tuple[int, int]:
    return -(-seconds // PACE_SLOWEST), -(-seconds // FASTEST)


def rounded(vectors: Phases) -> Phases:
    """Return complex numbers scaled to the length `UNIT` and rounded; 0 stays 0."""
    length = np.abs(vectors)
    unit = np.where(length > 0, vectors / np.where(length > 0, length, 1), 0)
    found: Phases = np.rint(unit.real * UNIT) + 1j * np.rint(unit.imag * UNIT)
    return found


def scores(some: Phases, others: Phases, alike: tuple[Phases, Phases] | None = None) -> Floats:
    """Return how coherent servers are: a standard normal number for unrelated ones, large for coherent ones.

    Both are servers x rails x waves. Phases that are 0 in either do not count. The result has a row for each of `some`.
    `alike` is what `rails_alike` returns for both, where that is known.
    """
    alike = alike or (rails_alike(some), rails_alike(others))
    # The cosine of a uniform phase has variance 1/2.
    return cosines(some, others) * np.sqrt(2 * _common(some, others) / _spread(some, others, alike))


def cosines(some: Phases, others: Phases) -> Floats:
    """Return the mean cosine of the differences of phases of servers."""
    one, other = (series.reshape(len(series), -1) for series in (some, others))
    found: Floats = (one.real @ other.real.T + one.imag @ other.imag.T) / UNIT**2
    return found / np.maximum(_common(some, others), 1)


def _common(some: Phases, others: Phases) -> Floats:
    # Floats, since NumPy multiplies matrices of integers without BLAS; such counts are exact.
    one, other = ((series != 0).reshape(len(series), -1).astype(np.float64) for series in (some, others))
    found: Floats = one @ other.T
    return found


def _spread(some: Phases, others: Phases, alike: tuple[Phases, Phases]) -> Floats:
    """Return the variance of a sum of cosines over that of as many independent ones, 1 or more.

    If the rails of a server have equal phases, and those of the other, too, then the differences on all rails are one.
    """
    used = [np.asarray(series.any(axis=2)).astype(np.float64) for series in (some, others)]
    rails = np.maximum(used[0] @ used[1].T, 1)
    found = (alike[0].real @ alike[1].real.T + alike[0].imag @ alike[1].imag.T) / UNIT**2 / rails
    return np.maximum(found, 1)


def rails_alike(series: Phases) -> Phases:
    """Return for each server the mean turn from each rail to each, times `UNIT` and rounded."""
    used = (series != 0).astype(np.float64)
    common = np.maximum(np.einsum("nrk,nsk->nrs", used, used), 1)
    turns = np.einsum("nrk,nsk->nrs", series, series.conj()) / UNIT / common
    found: Phases = np.rint(turns).reshape(len(series), -1)
    return found


@dataclass(frozen=True)
class Lags:
    """Scores of two servers at lags, for phases of windows of `seconds`."""

    seconds: int

    def correlation(self, one: Phases, other: Phases) -> Floats:
        """Return the score for each number of seconds, modulo the window, by which the other series may be later."""
        first, end = _band(self.seconds)
        spectrum = np.zeros(self.seconds // 2 + 1, complex)
        spectrum[first:end] = self._products(one, other)
        # irfft divides by the window, and adds each wave twice: itself and its conjugate.
        return np.fft.irfft(spectrum, self.seconds) * self.seconds / 2

    def at(self, one: Phases, other: Phases, lags: Floats) -> Floats:
        """Return the score for each of these lags in seconds, which need not be whole."""
        return (_turns(self.seconds, tuple(lags.tolist())) @ self._products(one, other)).real

    def _products(self, one: Phases, other: Phases) -> Phases:
        common = max(int(((one != 0) & (other != 0)).sum()), 1)
        spread = 1.0
        if len(one) > 1:
            both = one[np.newaxis], other[np.newaxis]
            spread = float(_spread(*both, (rails_alike(both[0]), rails_alike(both[1])))[0, 0])
        found: Phases = (one.conj() * other).sum(axis=0) / UNIT**2 * np.sqrt(2 / common / spread)
        return found


@lru_cache(maxsize=128)
def _turns(seconds: int, lags: tuple[float, ...]) -> Phases:
    """Return by how much each lag turns each wave: lags x waves."""
    found: Phases = np.exp(2j * np.pi * np.outer(lags, np.arange(*_band(seconds))) / seconds)
    return found


# The time that a server gains or loses each second against its mean pace.

WAVE_FASTEST, WAVE_SLOWEST = 2.04, 16.0
"""Periods in seconds of the waves that are followed."""
HALF = 4
"""A wave has the frequencies up to so many steps around its middle: its power spreads as the iterations vary."""
PIECES = 12
"""Pieces of the spectrum, of equal ratio, whose median power is that of noise."""
CLEAR = 8.0
"""Power of a wave over that of noise from which on it is followed."""
WINDOW, PERIODS = 20, 2.5
"""Least seconds and least periods over which a phase is averaged."""


def pace(moved: Ints, observed: Mask) -> Floats:
    """Return the seconds gained in each second, servers x seconds; zeros for a server without a clear wave.

    `moved` has the bytes of servers x rails x seconds, `observed` marks servers x seconds.
    """
    return np.stack([_of_server(*one) for one in zip(moved, observed, strict=True)])


def _of_server(moved: Ints, observed: Mask) -> Floats:
    gained = np.zeros(moved.shape[1])
    used = moved[moved.any(axis=1)]
    if not len(used) or not observed.any():
        return gained
    clipped = np.minimum(used, peaks(used)).astype(np.float64)
    mean = clipped[:, observed].mean(axis=1, keepdims=True)
    waves = np.where(observed, clipped / np.maximum(mean, 1) - 1, 0)
    frequency = _clear_wave(waves)
    if frequency:
        turning = waves * np.exp(-2j * np.pi * frequency * np.arange(waves.shape[1]))
        # The ends of the window are 0 and would carry no second.
        weights = np.hanning(max(WINDOW, int(PERIODS / frequency)) + 2)[1:-1]
        smooth = np.stack([np.convolve(one, weights, "same") for one in turning])
        gained[1:] = np.angle((smooth[:, 1:] * smooth[:, :-1].conj()).sum(axis=0)) / (2 * np.pi * frequency)
    return gained


def _clear_wave(waves: Floats) -> float | None:
    """Return the frequency of the strongest wave that stands out of the noise, in 1/s."""
    count = waves.shape[1]
    power = (np.abs(np.fft.rfft(waves * np.hanning(count + 2)[1:-1], axis=1)) ** 2).sum(axis=0)
    low, high = max(int(count / WAVE_SLOWEST), HALF), min(int(count / WAVE_FASTEST), len(power) - HALF - 1)
    edges = np.unique(np.geomspace(low, max(high, low + 1), PIECES + 1).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(power)])
    middle = np.arange(low, edges[-1])
    around = sums[middle + HALF + 1] - sums[middle - HALF]
    noise = np.concatenate([np.full(end - first, np.median(power[first:end])) for first, end in pairwise(edges)])
    # Noise has exponentially distributed power, whose median is ln 2 times its mean.
    clear = around * np.log(2) > CLEAR * (2 * HALF + 1) * noise
    if not clear.any():
        return None
    best = int(middle[np.argmax(np.where(clear, around, 0))])
    number = np.arange(best - HALF, best + HALF + 1)
    return float((power[number] * number).sum() / power[number].sum() / count)
