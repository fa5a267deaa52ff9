"""Period of one series, or the reason why it has none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warehouse.signals.autocorrelation import (
    FINER,
    Ints,
    Mask,
    autocorrelation,
    first_period,
    follow,
    in_levels,
    percentile,
)
from warehouse.signals.pulses import date, depth_of_alias, depths, half_height, share_above

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
    peak = percentile(moved[observed], 99)
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
    half = half_height(np.minimum(moved[observed], peak))
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
