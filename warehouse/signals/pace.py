"""Pace of iterations: the time that a server gains or loses each second against its mean pace.

Iterations of a few seconds make waves too fast to be compared between servers, since ports of one switch share the
rhythm of the poller there. But the phase of such a wave, followed through the hour, shows how the iterations speed up
and slow down: frequency demodulation, as of a radio signal.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from warehouse.signals.autocorrelation import Floats, Ints, Mask, peaks

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
