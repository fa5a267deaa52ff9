"""---
about: Period of each server's traffic pulses, found by autocorrelation of its bytes per second, or the reason why no period is resolved. One iteration of a training job is one pulse.
partition: hour_utc
reads: [metrics.server_hour, metrics.busy_server_second]
grain: [cluster, server, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  period_seconds: DOUBLE [s] mean time from pulse to pulse; NULL where the period is not resolved
  strength: DOUBLE [1] autocorrelation at candidate_seconds, 1 for pulses that repeat exactly
  duty_cycle: DOUBLE [1] share of the time above half of the pulses' height; NULL where no period is resolved
  peak_over_mean: DOUBLE [1] 99th percentile of bytes per second over their mean
  pulses: INTEGER [1] pulses with a known start; NULL where no period is resolved
  scatter_seconds: DOUBLE [s] spread of the times from start to start, 1.4826 x the median absolute deviation
  candidate_seconds: DOUBLE [s] period at the autocorrelation's peak, accepted or rejected
  unresolved: VARCHAR why no period is resolved, idle, aperiodic, fast, few_cycles, shallow or unsteady; NULL where a period is resolved
  observed_seconds: INTEGER [s] seconds of the hour outside gaps
  starts_ms: INTEGER[] start of each pulse, milliseconds of the hour; NULL where no period is resolved
time: hour_utc
dimensions: [cluster, server, unresolved]
measures:
  period_seconds, candidate_seconds, scatter_seconds: none
  strength: none
  duty_cycle: mean, shown in %
  peak_over_mean: max
  pulses: sum except over server
  observed_seconds: sum except over server
checks:
  - (period_seconds is null) = (unresolved is not null)
  - period_seconds between 4 and 300 or period_seconds is null
  - unresolved in ('idle', 'aperiodic', 'fast', 'few_cycles', 'shallow', 'unsteady') or unresolved is null
  - duty_cycle between 0 and 1 or duty_cycle is null
  - len(starts_ms) = pulses or pulses is null
  - none: SELECT cluster, server FROM metrics.server_hour ANTI JOIN this USING (cluster, server, hour_utc)
sources: docs/metrics/periods.md
---"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HOUR = 3600
GAP_MS = 10_000
"""A second that a longer window overlaps counts as not observed."""
LEVELS = 1000
"""Number of levels that bytes are rounded to, so that the autocorrelation is over small integers."""
FINER = 4
"""Steps per second of the lags: 1/4 s, interpolated by the spectrum."""

SHORTEST, LEAST_CYCLES = 4.0, 12
"""Periods that can be resolved: from 4 s to a twelfth of the observed time."""
STRONG, RISE = 0.4, 0.2
"""A period needs a peak of the autocorrelation this high, and this far above the lowest value before it."""
NEARLY = 0.85
"""The first peak that is nearly as high as the highest is the period; those after it are its multiples."""
CLIMB, COHERENT = 3, 0.7
"""Search range for peaks in steps around a lag; multiples are followed while their peaks keep this part of the height."""
HARMONICS, TWICE = 12, 2
"""A period holds n pulses if the wave of its n-th part is this many times deeper than that of the whole."""
DEEP = 0.25
"""Minimum depth of pulses, which must also exceed the depth of an alias."""
ROUNDS = 8
"""Iterations to separate pulse height from quiet level."""
QUIET, APART = 0.6, 0.7
"""A pulse starts after at least this part of the usual quiet, and this part of a period after the last start."""
SEEN, AGREE = 0.8, 0.003
"""Starts of this part of the pulses must be found, and their period must agree this closely with the autocorrelation."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Found:
    """Result for one server; fields are the columns of the same name."""

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


COLUMNS = {
    "period_seconds": pa.float64(),
    "strength": pa.float64(),
    "duty_cycle": pa.float64(),
    "peak_over_mean": pa.float64(),
    "pulses": pa.int32(),
    "scatter_seconds": pa.float64(),
    "candidate_seconds": pa.float64(),
    "unresolved": pa.string(),
    "observed_seconds": pa.int32(),
    "starts_ms": pa.list_(pa.int32()),
}


def model(servers: pa.Table, seconds: pa.Table) -> pa.Table:
    """Analyze every server of the hour; servers without a series are idle."""
    series = dict(per_server(seconds))
    idle = (np.zeros(HOUR, np.int64), np.zeros(HOUR, bool))
    names = zip(servers["cluster"].to_pylist(), servers["server"].to_pylist(), strict=True)
    found = [look_at(*series.get(name, idle)) for name in names]
    table = servers.select(["cluster", "server", "hour_utc"])
    for name, kind in COLUMNS.items():
        table = table.append_column(name, pa.array([getattr(one, name) for one in found], kind))
    return table


def per_server(seconds: pa.Table) -> Iterator[tuple[tuple[str, str], tuple[Ints, Mask]]]:
    """Yield for each server the bytes of each second of the hour, and which seconds were observed."""
    cluster, server = (seconds[name].combine_chunks().dictionary_encode() for name in ("cluster", "server"))
    new = [np.diff(one.indices.to_numpy(), prepend=-1) != 0 for one in (cluster, server)]
    edges = [*np.flatnonzero(new[0] | new[1]).tolist(), len(seconds)]
    second, moved, longest = (seconds[name].to_numpy() for name in ("second", "bytes", "longest_ms"))
    for low, high in pairwise(edges):
        rows = slice(low, high)
        at = second[rows]
        total = np.zeros(HOUR, np.int64)
        total[at] = moved[rows]
        observed = np.zeros(HOUR, bool)
        observed[at.min() : at.max() + 1] = True
        observed[at[longest[rows] > GAP_MS]] = False
        yield (cluster[low].as_py(), server[low].as_py()), (total, observed)


def look_at(moved: Ints, observed: Mask) -> Found:
    """Find the period of one server, or the reason why there is none.

    `moved` has the bytes of each second of the hour; `observed` marks the seconds that count.
    """
    count, total = int(observed.sum()), int(moved[observed].sum())
    if not total:
        return Found(count, unresolved="idle")
    peak = percentile(moved[observed], 99)
    found = Found(count, round(peak * count / total, 3))
    if count < LEAST_CYCLES * SHORTEST:
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
    if deep.max() > TWICE * deep[0] and rho[round(period / (deep.argmax() + 1) * FINER)] > strength / 2:
        period, strength = follow(rho, period / (deep.argmax() + 1)) or (period, strength)
        deep = depths(moved, observed, period)
    found = replace(found, candidate_seconds=round(period, 4), strength=round(strength, 3))
    if period < SHORTEST:
        return replace(found, unresolved="fast")
    if count < LEAST_CYCLES * period:
        return replace(found, unresolved="few_cycles")
    half = half_height(np.minimum(moved[observed], peak))
    starts = date(moved, observed, period, half)
    between = np.diff(starts)
    cycles = np.maximum(np.rint(between / (period * 1000)), 1)
    if cycles.sum() < LEAST_CYCLES:
        return replace(found, unresolved="few_cycles")
    if len(starts) <= SEEN * cycles.sum() or abs(between.sum() / cycles.sum() / 1000 / period - 1) > AGREE:
        return replace(found, unresolved="unsteady")
    if deep[0] < max(DEEP, depth_of_alias(period)):
        return replace(found, unresolved="shallow")
    active = slice(starts[0] // 1000, starts[-1] // 1000)
    scatter = 1.4826 * float(np.median(np.abs(between - np.median(between)))) / 1000
    return replace(
        found,
        period_seconds=found.candidate_seconds,
        duty_cycle=round(share_above(moved[active], observed[active], half), 3),
        pulses=len(starts),
        scatter_seconds=round(scatter, 3),
        starts_ms=starts.tolist(),
    )


# the autocorrelation ------------------------------------------------------------------------


def percentile(values: Ints, share: int) -> int:
    """Return the value at this percentile, rounded down; the largest value where the percentile is zero."""
    ascending = np.sort(values)
    return int(ascending[share * (len(ascending) - 1) // 100]) or int(ascending[-1])


def in_levels(moved: Ints, observed: Mask, peak: int) -> Ints:
    """Return the series as integers up to `LEVELS`, cut at the peak, minus its mean; 0 where not observed."""
    levels = np.minimum(moved, peak) * LEVELS // peak
    return np.where(observed, levels - round(int(levels[observed].sum()) / int(observed.sum())), 0)


def autocorrelation(levels: Ints, observed: Mask) -> Floats:
    """Return the autocorrelation of the series at lags of 0, 1/FINER, ... s up to half of the observed time.

    Mean product of pairs of observed seconds. The power spectrum gives sums and numbers of pairs; padded with zeros, it
    also gives values between whole seconds.
    """
    length = 1 << (2 * len(levels) - 1).bit_length()
    power, pairs = (np.abs(np.fft.rfft(series, length)) ** 2 for series in (levels, observed.astype(np.int64)))
    products = np.fft.irfft(power, length * FINER) * FINER
    numbers = np.rint(np.fft.irfft(pairs, length)[: len(levels)])
    where = np.flatnonzero(observed)
    half = int(where[-1] - where[0] + 1) // 2 * FINER
    lags = np.arange(half) / FINER
    mean = products[:half] / np.maximum(np.interp(lags, np.arange(len(numbers)), numbers), 1)
    rho: Floats = mean / mean[0]
    return rho


def first_period(rho: Floats) -> float | None:
    """Return the lag of the first positive peak that is nearly as high as the highest one."""
    inner = rho[1:-1]
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

    None where no peak is next to this period. A peak at m periods gives the period m times as precisely as the first. The
    multiple is doubled while the next peak is at its expected place; then a line through the origin is fitted to
    all peaks up to there.
    """
    (lag,), (strength,) = (one.tolist() for one in summits(rho, np.array([period * FINER])))
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


# how deep the pulses are --------------------------------------------------------------------


def depths(moved: Ints, observed: Mask, period: float) -> Floats:
    """Return amplitude over mean of the waves of a period, its half, third ...: up to 2 for short pulses, 0 for none."""
    at = np.flatnonzero(observed)
    values = moved[at]
    turn = np.exp(2j * np.pi / period * at)
    wave, found = np.ones_like(turn), []
    for _ in range(max(1, min(HARMONICS, int(period / 2)))):
        wave *= turn
        found.append(2 * abs((values * wave).sum()) / values.sum())
    return np.array(found)


def depth_of_alias(period: float) -> float:
    """Return the largest depth of pulses with a period under 2 s that appear as this period by aliasing.

    Sampled once a second, a frequency of 1 - 1/period cycles per second appears as 1/period, weakened by the mean over
    a second; the shortest pulses have twice their mean as amplitude.
    """
    return 2 * abs(float(np.sinc(1 - 1 / period)))


# single pulses ------------------------------------------------------------------------------


def half_height(values: Ints) -> int:
    """Return the level halfway between pulses and quiet, from the means of the seconds above and below it."""
    half = (int(values.max()) + int(values.min())) // 2
    for _ in range(ROUNDS):
        above = values[values > half]
        below = values[values <= half]
        if len(above):
            half = (int(above.sum()) // len(above) + int(below.sum()) // len(below)) // 2
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
    longest = np.sort(quiet)[::-1][: int(observed.sum() / period)]
    starts: list[int] = []
    for rise in rises[quiet >= QUIET * (np.median(longest) if len(longest) else 0)].tolist():
        if not starts or rise - starts[-1] >= APART * period * 1000:
            starts.append(rise)
    return np.array(starts, np.int64)
