"""Refreshes of counters: switches that see a job agree in phase at its period, and not at an alias of it.

A switch refreshes its counters at k + φ, once a second. There the waves of f and of f - 1 per second differ by a turn
of φ alone. So where the φ of switches differ, their sums of a job agree either as they are, or turned by φ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warehouse.signals.autocorrelation import Ints, peaks

AROUND = 0.01
"""Part by which the waves of a period may differ from it, as iterations vary."""


class Leaf(NamedTuple):
    """What one switch shows of a job."""

    phase: float
    """Time of its refreshes in a second."""
    moved: Ints
    """Bytes of each second."""


class Coherence(NamedTuple):
    """Power of the summed waves of n switches, as a part of that of n equal ones: 1 if in phase, 1/n by chance."""

    period: float
    alias: float
    weight: float
    """How much less often chance reaches the one coherence than the other, as a logarithm: above 0 the period is true,
    below 0 the alias."""


def coherence_of(leaves: Sequence[Leaf], window: tuple[int, int], period: float) -> Coherence | None:
    """Return the coherence of switches at a period and its alias; None for fewer than two that show its waves."""
    low, high = window
    if not leaves or high - low < period:
        return None
    moved = np.stack([one.moved[low:high] for one in leaves])
    clipped = np.minimum(moved, peaks(moved))
    number = (high - low) / period
    near = int(AROUND * number)
    band = slice(round(number) - near, round(number) + near + 1)
    waves = np.fft.rfft((clipped - clipped.mean(axis=1, keepdims=True)) * np.hanning(high - low), axis=1)[:, band]
    power = np.sqrt((np.abs(waves) ** 2).sum(axis=1))
    shown = np.flatnonzero(power)
    if len(shown) < 2:
        return None
    # Each switch has the same weight, however much of the job it carries.
    vectors = waves[shown] / power[shown, np.newaxis]
    turns = np.exp(2j * np.pi * np.array([leaves[one].phase for one in shown.tolist()]))[:, np.newaxis]
    found, turned = (
        float((np.abs(one.sum(axis=0)) ** 2).sum()) / len(shown) ** 2 for one in (vectors, vectors * turns)
    )
    return Coherence(found, turned, log_chance(turned, len(shown)) - log_chance(found, len(shown)))


def log_chance(coherence: float, count: int) -> float:
    """Return the logarithm of the chance that so many random phases are as coherent: Rayleigh's test, by Wilkie."""
    # Rounding may bring a coherence slightly above 1.
    return min(0.0, math.sqrt(1 + 4 * count + 4 * count**2 * (1 - min(coherence, 1))) - (1 + 2 * count))
