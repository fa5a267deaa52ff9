"""Iterations of a job: period, error, duty cycle and bytes, from the sum over its servers.

Counters read once a second show waves of f and of 1 - f per second alike: the second is an alias. Two signs tell which
one is true.

*Bytes*: a job moves the same bytes in each iteration. So when it moves fewer bytes a second, its iterations take
longer: their wave turns slower then, and the alias of a faster wave turns faster.

*Refreshes*: a switch refreshes its counters at k + φ, once a second. There the waves of f and of f - 1 per second
differ by a turn of φ alone. So where the φ of switches differ, their sums of a job agree either as they are, or turned
by φ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from warehouse.signals.period import (
    AGREE,
    SHORTEST_ALONE,
    Comb,
    Found,
    comb_of,
    date,
    depth_of_alias,
    depths,
    half_height,
    period_of,
    share_above,
)
from warehouse.signals.series import Floats, Ints, Mask, around, peaks

STARTS = 0.8
"""Part of the iterations whose start must be found, if the period is their mean distance."""
NEAR, ERRORS = 0.02, 3.0
"""This mean may differ from the period of the comb by `AGREE` and so many of its errors, but by at most this part."""
OF_SCATTER, OF_JACKKNIFE = 1.1, 0.8
"""Standard errors are these parts of scatter / iterations and of the jackknife's: 68 % of the true means of simulated
jobs are then within one of them (`python -m bench.jobs_traffic`)."""
CERTAIN, CERTAIN_OF_TWO = math.log(100), math.log(400)
"""Weight of evidence that decides between a period and its alias: of the bytes or the refreshes alone, and of both
together. Chance reaches it in 1 % of jobs: exp(-w) for one, (1 + w/2) exp(-w) for the sum of two."""
IDLE_SECOND = 0.02
"""Part of the usual height of pulses below which a job is idle."""


@dataclass(frozen=True)
class Iterations:
    """What the sum over a job's servers tells of its iterations; fields are columns of metrics.job_periods."""

    period_seconds: float | None = None
    period_error_seconds: float | None = None
    alias_seconds: float | None = None
    coherence: float | None = None
    alias_coherence: float | None = None
    iterations: int | None = None
    duty_cycle: float | None = None
    bytes_per_iteration: int | None = None
    resolved_from: str | None = None
    unresolved: str | None = None


def iterations_of(
    moved: Ints, observed: Mask, window: tuple[int, int], alone: Sequence[float | None], leaves: Sequence[Leaf] = ()
) -> Iterations:
    """Return the iterations of a job.

    Parameters
    ----------
    moved
        Bytes of its servers together, by rail and second of the hour.
    observed
        Seconds in which nearly all of them were observed.
    window
        Seconds, end excluded, in which a comb is looked for.
    alone
        Period of each server where it shows one alone.
    leaves
        Bytes of its servers together, by switch whose refreshes are known.
    """
    total = moved.sum(axis=0)
    found = period_of(total, observed)
    if not total[observed].any():
        return Iterations(unresolved=found.unresolved or "idle")
    half = half_height(total[observed])
    in_window = moved[:, window[0] : window[1]]
    comb = None if found.period_seconds else comb_of(in_window[in_window.any(axis=1)])
    timed = _timed(total, observed, half, found, comb)
    if timed is None:
        return Iterations(unresolved=found.unresolved or "unsteady")
    period, error = timed
    coherence, of_alias, weight = coherence_of(leaves, window, period)
    alias = None if found.period_seconds else alias_of(total, observed, period)
    verdict = verdict_of(alias.weight if alias else 0.0, weight)
    if alias and verdict == -1:
        period, error = alias.seconds, error * alias.error_factor
        coherence, of_alias = of_alias, coherence
    known = [one for one in alone if one is not None and abs(one / period - 1) <= AGREE]
    seconds = _active(total, observed)
    count = max(round(seconds.sum() / period), 1)
    return Iterations(
        round(period, 4),
        # An error of 0 would claim an exact period; this is its last digit.
        round(max(error, 0.0001), 4),
        round(alias.seconds, 4) if alias and verdict == 0 else None,
        coherence and round(coherence, 3),
        of_alias and round(of_alias, 3),
        count,
        # Refreshes and polls smear a pulse over one to two seconds, so the length of a shorter one is unknown.
        round(share_above(total, seconds, half), 3) if period >= SHORTEST_ALONE else None,
        int(total[seconds].sum() * period / seconds.sum()),
        "server" if 2 * len(known) >= len(alone) else "group",
    )


def verdict_of(*weights: float) -> int:
    """Return 1 if the evidence refutes the alias, -1 if it refutes the period that is seen, 0 if neither."""
    total, limit = sum(weights), CERTAIN if 0 in weights else CERTAIN_OF_TWO
    return (total > limit) - (total < -limit)


def _timed(total: Ints, observed: Mask, half: int, found: Found, comb: Comb | None) -> tuple[float, float] | None:
    """Return the period and its error, from the comb or the starts of iterations, whichever error is smaller."""
    near = found.period_seconds or (comb.period if comb else None)
    if near is None:
        return None
    timed = [(comb.period, OF_JACKKNIFE * comb.error)] if comb else []
    if near >= SHORTEST_ALONE:
        starts = date(total, observed, near, half)
        between = np.diff(starts) / 1000
        cycles = np.maximum(np.rint(between / near), 1)
        each = between[cycles == 1]  # a longer time may hold a pause
        mean = float(each.sum() / max(len(each), 1))
        most = min(AGREE + ERRORS * comb.error / near, NEAR) if comb else NEAR
        if len(starts) > STARTS * cycles.sum() > 0 and abs(mean / near - 1) <= most:
            # This factor makes the median absolute deviation of a normal distribution its standard deviation.
            scatter = 1.4826 * median(np.abs(each - np.median(each)).tolist())
            # Times from start to start add up to last minus first, so only the ends of a stretch without a pause have
            # errors.
            pieces = 1 + len(between) - len(each)
            timed.append((mean, OF_SCATTER * scatter * math.sqrt(pieces) / len(each)))
    return min(timed, key=lambda one: one[1], default=None)


def _active(total: Ints, observed: Mask) -> Mask:
    """Return the observed seconds from the first to the last pulse."""
    busy = np.flatnonzero(observed & (total > IDLE_SECOND * peaks(total[observed])))
    seconds = np.zeros(len(total), bool)
    seconds[busy[0] : busy[-1] + 1] = True
    return seconds & observed


# Aliases, by the bytes.

STEP = 60
"""Seconds over which a wave is averaged, and between two of its phases that are compared."""
STEADY = 0.5
"""Part of an iteration that is gained or lost in a step of a steady stretch at most. After a stall, as after a pause,
nobody knows how many cycles were lost, so it is no evidence."""
LEAST_STEPS = 4
"""Steps of the shortest stretch that counts."""
AROUND = 240
"""Seconds whose mean is subtracted. Two unrelated series that drift slowly look related, as their errors of many steps
are one."""
SLOWEST_TURN = 30.0
"""Period of a wave in seconds above which a step is too short for its phase."""
LEAST_CYCLES = 0.002
"""Part of a cycle below which phases and bytes say nothing: exactly regular series show the grid of seconds there."""


class Alias(NamedTuple):
    """Faster iterations that look like a period."""

    seconds: float
    """Their period."""
    error_factor: float
    """Standard error of their period, for each second of error of the period that is seen."""
    evidence: float
    """How the rate of bytes and the pace of the wave go together, in standard deviations of chance: above 0 the period
    that is seen is true, below 0 the alias."""

    @property
    def weight(self) -> float:
        """Return the chance of such evidence as a logarithm without its sign, with the sign of the evidence."""
        # erfc underflows to 0 beyond 38 deviations, and 0 has no logarithm.
        return math.copysign(-math.log(max(math.erfc(abs(self.evidence) / math.sqrt(2)), 1e-300)), self.evidence)


def alias_of(total: Ints, observed: Mask, period: float) -> Alias | None:
    """Return the alias of a period; None if the wave is deeper than an alias can be.

    `total` has the bytes of each second, summed over the job; `observed` marks the seconds that count.
    """
    deep = depths(total, observed, period)
    if deep.max() > depth_of_alias(period, int(deep.argmax()) + 1):
        return None
    wave = 1 / period
    seconds = 1 / (1 - wave)
    evidence = _evidence(total, observed, wave) if wave * SLOWEST_TURN >= 1 else 0.0
    # The derivative of P / (P - 1) by P, without its sign.
    return Alias(seconds, (seconds * wave) ** 2, evidence)


def _evidence(total: Ints, observed: Mask, wave: float) -> float:
    """Return the correlation of bytes and phase, both gained in a step, over its deviation for unrelated series."""
    products, steps = np.zeros(3), 0.0
    for low, high in _steady(total, observed, 1 / wave):
        work = total[low:high] / total[low:high].mean() - 1
        turning = _smooth(work * np.exp(-2j * np.pi * wave * np.arange(low, high)))
        ahead = _smooth(np.cumsum(work))
        before, after = turning[:-STEP], turning[STEP:]
        # Both without what drifts in some minutes, or in those of them that there are at the ends.
        cycles, gained = (
            one - around(one, AROUND // 2)
            for one in (np.angle(after * before.conj()) / (2 * np.pi), ahead[STEP:] - ahead[:-STEP])
        )
        # The phase of a weak wave is mostly noise, so the weaker end of a step sets its weight.
        weight = np.minimum(abs(before), abs(after)) ** 2
        squares = cycles**2 + LEAST_CYCLES**2, gained**2 + (LEAST_CYCLES / wave) ** 2
        products += [(weight * one).sum() for one in (cycles * gained, *squares)]
        # Phases less than a step apart are averages of the same seconds: only one in STEP is independent.
        steps += len(cycles) / STEP
    return float(products[0] / np.sqrt(products[1] * products[2]) * np.sqrt(steps)) if products.all() else 0.0


def _steady(total: Ints, observed: Mask, period: float) -> list[tuple[int, int]]:
    """Return the longest stretches, end excluded, in which the rate of a step is that of the step before."""
    rate = _smooth(total)
    before, after = rate[:-STEP], rate[STEP:]
    same = observed.copy()
    # Smoothing shortens a series by a step, so a pair of steps is dated at the second between them.
    same[STEP : len(total) - STEP + 1] &= np.abs(after - before) * STEP < STEADY * period * np.maximum(before, after)
    edges = np.flatnonzero(np.diff(same, prepend=False, append=False)).tolist()
    return [one for one in pairwise(edges) if same[one[0]] and one[1] - one[0] >= LEAST_STEPS * STEP]


def _smooth(series: Ints | Floats) -> Floats:
    # The ends of the window are 0 and would carry no second.
    weights = np.hanning(STEP + 2)[1:-1]
    return np.convolve(series, weights / weights.sum(), "valid")


# Aliases, by the refreshes.

OF_WAVES = 0.01
"""Part by which the waves of a period may differ from it, as iterations vary."""


class Leaf(NamedTuple):
    """What one switch shows of a job."""

    phase: float
    """Time of its refreshes in a second."""
    moved: Ints
    """Bytes of each second."""


def coherence_of(
    leaves: Sequence[Leaf], window: tuple[int, int], period: float
) -> tuple[float | None, float | None, float]:
    """Return the coherence of switches at a period and at its alias, and the weight of their difference.

    Coherence is the power of the summed waves of n switches as a part of that of n equal ones: 1 if in phase, 1/n by
    chance. It is None for fewer than two that show its waves. The weight says how much less often chance reaches the
    one coherence than the other, as a logarithm: above 0 the period is true, below 0 the alias.
    """
    low, high = window
    if not leaves or high - low < period:
        return None, None, 0.0
    moved = np.stack([one.moved[low:high] for one in leaves])
    clipped = np.minimum(moved, peaks(moved))
    number = (high - low) / period
    near = int(OF_WAVES * number)
    band = slice(round(number) - near, round(number) + near + 1)
    waves = np.fft.rfft((clipped - clipped.mean(axis=1, keepdims=True)) * np.hanning(high - low), axis=1)[:, band]
    power = np.sqrt((np.abs(waves) ** 2).sum(axis=1))
    shown = np.flatnonzero(power)
    if len(shown) < 2:
        return None, None, 0.0
    # Each switch has the same weight, however much of the job it carries.
    vectors = waves[shown] / power[shown, np.newaxis]
    turns = np.exp(2j * np.pi * np.array([leaves[one].phase for one in shown.tolist()]))[:, np.newaxis]
    found, turned = (
        float((np.abs(one.sum(axis=0)) ** 2).sum()) / len(shown) ** 2 for one in (vectors, vectors * turns)
    )
    return found, turned, log_chance(turned, len(shown)) - log_chance(found, len(shown))


def log_chance(coherence: float, count: int) -> float:
    """Return the logarithm of the chance that so many random phases are as coherent: Rayleigh's test, by Wilkie."""
    # Rounding may bring a coherence slightly above 1.
    return min(0.0, math.sqrt(1 + 4 * count + 4 * count**2 * (1 - min(coherence, 1))) - (1 + 2 * count))
