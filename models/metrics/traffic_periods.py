"""---
about: The period with which each server's traffic pulses, found by autocorrelation of its bytes per second; one iteration of a training job is one pulse. Where no period can be resolved, why.
partition: hour_utc
reads: [metrics.server_hour, metrics.busy_server_second]
grain: [cluster, server, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  period_seconds: DOUBLE [s] mean time from pulse to pulse; NULL where it is not resolved
  strength: DOUBLE [1] autocorrelation at the candidate, 1 for pulses that repeat exactly
  duty_cycle: DOUBLE [1] share of the time above half of the pulses' height; NULL where no period is resolved
  peak_over_mean: DOUBLE [1] 99th percentile of bytes per second over their mean
  pulses: INTEGER [1] pulses whose start could be dated; NULL where no period is resolved
  scatter_seconds: DOUBLE [s] how far the times from start to start lie from their median, 1.4826 x the median deviation
  candidate_seconds: DOUBLE [s] the period that the autocorrelation shows, believed or not
  unresolved: VARCHAR why there is no period, idle, aperiodic, fast, few_cycles, shallow or unsteady; NULL where there is one
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
"""A second that a longer window touches is not observed."""
LEVELS = 1000
"""Steps that bytes are rounded to: the autocorrelation is one of small integers."""
FINER = 4
"""Lags are looked at every 1/4 s, between seconds by the spectrum."""

SHORTEST, LEAST_CYCLES = 4.0, 12
"""Periods that can be resolved: from four seconds to a twelfth of what was observed."""
STRONG, RISE = 0.4, 0.2
"""A period shows as a peak of the autocorrelation this high, and this far above the lowest value before it."""
NEARLY = 0.85
"""The first peak that is nearly as high as the highest is the period; those after it are its multiples."""
CLIMB, COHERENT = 3, 0.7
"""Peaks are looked for this many steps around a lag; multiples are followed while theirs keep this part of the height."""
HARMONICS, TWICE = 12, 2
"""Pulses come n times in a period where the wave of its n-th part is this much deeper than that of the whole."""
DEEP = 0.25
"""Pulses have at least this depth, and more than an alias can have."""
ROUNDS = 8
"""Height and quiet are told apart in this many rounds."""
QUIET, APART = 0.6, 0.7
"""A pulse starts after this part of the usual quiet, and this part of a period after the last one."""
SEEN, AGREE = 0.8, 0.003
"""The start of this part of the pulses must be found, and tell the same period as the autocorrelation."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Found:
    """What was found of one server; the columns of the same meaning."""

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
    """Look at every server of the hour; those without a series are idle."""
    series = dict(per_server(seconds))
    idle = (np.zeros(HOUR, np.int64), np.zeros(HOUR, bool))
    names = zip(servers["cluster"].to_pylist(), servers["server"].to_pylist(), strict=True)
    found = [look_at(*series.get(name, idle)) for name in names]
    table = servers.select(["cluster", "server", "hour_utc"])
    for name, kind in COLUMNS.items():
        table = table.append_column(name, pa.array([getattr(one, name) for one in found], kind))
    return table


def per_server(seconds: pa.Table) -> Iterator[tuple[tuple[str, str], tuple[Ints, Mask]]]:
    """Bytes of each second of the hour, and which seconds were observed, server by server."""
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

    `moved` has the bytes of each second of the hour; `observed` says which of the seconds count.
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
    """The value at this percent of the sorted ones, rounded down; the largest where that is zero."""
    ascending = np.sort(values)
    return int(ascending[share * (len(ascending) - 1) // 100]) or int(ascending[-1])


def in_levels(moved: Ints, observed: Mask, peak: int) -> Ints:
    """The series as integers up to `LEVELS`, cut at the peak, less its mean; 0 where nothing was observed."""
    levels = np.minimum(moved, peak) * LEVELS // peak
    return np.where(observed, levels - round(int(levels[observed].sum()) / int(observed.sum())), 0)


def autocorrelation(levels: Ints, observed: Mask) -> Floats:
    """The correlation of the series with itself, at lags of 0, 1/FINER, ... s up to half of the time observed.

    Products of pairs of observed seconds, over their number; both by the power spectrum, which padded with zeros also
    gives what lies between seconds.
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
    """The lag of the first positive peak that is nearly as high as the highest one."""
    inner = rho[1:-1]
    peaks = np.flatnonzero((inner > rho[:-2]) & (inner >= rho[2:])) + 1
    peaks = peaks[(rho[peaks] > 0) & (rho[peaks] - np.minimum.accumulate(rho)[peaks] > RISE)]
    if not len(peaks):
        return None
    first = int(peaks[rho[peaks] >= NEARLY * rho[peaks].max()][0])
    near = first * 4 // 5  # the top itself, where a smaller peak stands on its slope
    return (near + int(np.argmax(rho[near : first * 6 // 5 + 2]))) / FINER


def summits(rho: Floats, lags: Floats) -> tuple[Floats, Floats]:
    """Climb to the peaks next to these lags (in steps); place and height of the parabola through three points."""
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
    """The period (s) from the peaks at its multiples, as far as they cohere, and the height of the first one.

    None where no peak is next to this period. A peak at m periods tells the period m times as well as the first. Its
    multiple is doubled while the next peak is found where it must be; then a line through the origin is laid through
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
    """Amplitudes over the mean of the waves of a period, its half, third ...: up to 2 for short pulses, 0 without any."""
    at = np.flatnonzero(observed)
    values = moved[at]
    turn = np.exp(2j * np.pi / period * at)
    wave, found = np.ones_like(turn), []
    for _ in range(max(1, min(HARMONICS, int(period / 2)))):
        wave *= turn
        found.append(2 * abs((values * wave).sum()) / values.sum())
    return np.array(found)


def depth_of_alias(period: float) -> float:
    """The deepest that pulses of less than two seconds can look when they seem to have this period.

    Seconds that see a frequency of 1 - 1/period cycles a second show it as one of 1/period, weakened by the mean over
    a second; the shortest pulses have twice their mean as amplitude.
    """
    return 2 * abs(float(np.sinc(1 - 1 / period)))


# single pulses ------------------------------------------------------------------------------


def half_height(values: Ints) -> int:
    """Halfway between pulses and quiet: between the means of the seconds above and below it."""
    half = (int(values.max()) + int(values.min())) // 2
    for _ in range(ROUNDS):
        above = values[values > half]
        below = values[values <= half]
        if len(above):
            half = (int(above.sum()) // len(above) + int(below.sum()) // len(below)) // 2
    return max(half, 1)


def share_above(moved: Ints, observed: Mask, half: int) -> float:
    """The share of the time above a height, in a straight line from the middle of each second to that of the next."""
    low, high = np.minimum(moved[1:], moved[:-1]), np.maximum(moved[1:], moved[:-1])
    share = np.clip((high - half) / np.maximum(high - low, 1), 0, 1)
    return float(share[observed[1:] & observed[:-1]].mean())


def date(moved: Ints, observed: Mask, period: float, half: int) -> Ints:
    """The starts of the pulses, in milliseconds of the hour.

    A pulse starts where the series rises through half of its height, between the middles of two seconds. Rises after
    a short quiet are inside a pulse.
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
