"""Servers that train together: groups of coherent servers in an hour, or in a part of it, and groups on one clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from warehouse.signals.groups import (
    DOUBT,
    LATEST,
    NEVER,
    PACE_FASTEST,
    PACE_SLOWEST,
    Group,
    Phases,
    at_lags,
    coherent_groups,
    correlation,
    cosines,
    drift_removed,
    lag_of,
    least_score,
    pace,
    phases,
    rounded,
    with_members_elsewhere,
)
from warehouse.signals.series import Floats, Ints, Mask, Rails, peaks

LEAST_SECONDS = 120
"""Shortest window in which servers are compared."""
MOST = 0.9
"""Part of the servers that must be observed in the first and the last second of the window."""
EDGE = 3
"""Seconds after an opening gap that belong to it on some ports."""
STEPS = 1000
"""Number of levels that bytes are rounded to."""
DEVIATION = 4.4
"""Paces are clipped at this many times the median of their amounts, three standard deviations."""
RAIL_USED = 100_000_000
"""Bytes of a rail in the window from which on it is compared."""
RAIL_SHARE = 0.1
"""Part of the bytes of its busiest rail from which on a server uses a rail."""
ALIKE = 0.001
"""Bytes of two servers match if they differ by at most this part on each rail."""
IDLE_MINUTE = 0.02
"""Part of its busiest minute below which a server is idle."""
MINUTE = 60
IN_BLOCK = 9.0
"""Least score in a block, in which few iterations vary little: regular pulses look coherent more easily."""
ALL_HOUR = 0.05
"""Servers whose rates differ by less in the hour are of one job in the hour or of none. In a block they are not
compared: few iterations of one regular rhythm are in step by chance."""
IN_GAP = 0.1
"""Part of the window that two servers may miss together, and still be compared."""
PARTS = 3
"""Servers without a group in the whole window are compared in blocks of a third of it, which overlap by half."""


def together(rails: Rails) -> list[Group]:
    """Return the groups of servers that are coherent in the hour, then those of single blocks of time."""
    low, high = window(rails.observed)
    match = matching(rails)
    found = _in_window(rails, np.arange(len(rails.servers)), (low, high), match)
    length = (high - low) // PARTS
    for start in range(low, high - length + 1, max(length // 2, 1)):
        taken = {member for one in found for member in one.members}
        left = np.array([one for one in range(len(rails.servers)) if one not in taken])
        found += _in_window(rails, left, (start, start + length), match, block=True)
    return sorted(found, key=lambda one: min(one.members))


def window(observed: Mask) -> tuple[int, int]:
    """Return the range of seconds, end excluded, in which nearly all servers were observed."""
    seen = np.flatnonzero(observed.sum(axis=0) >= MOST * len(observed))
    if not len(seen):
        return 0, 0
    first = int(seen[0])
    # Only an hour that begins with a gap has an edge.
    return first + (EDGE if first else 0), int(seen[-1])


def _in_window(
    rails: Rails, servers: Ints, window: tuple[int, int], match: Mask, *, block: bool = False
) -> list[Group]:
    """Return the groups of some servers in a part of the hour."""
    low, high = window
    if high - low < LEAST_SECONDS or len(servers) < 2:
        return []
    moved, observed = rails.moved[servers, :, low:high], rails.observed[servers, low:high]
    series = series_phases(moved, observed)
    if not series.any():
        return []
    if not block:
        series = np.concatenate([series, pace_phases(moved, observed)], axis=1)
    missed = (~observed).astype(np.float64)
    blind = missed @ missed.T > IN_GAP * (high - low)
    pairs = np.array(["/" in rails.servers[one] for one in servers])
    sets, apart = match[np.ix_(servers, servers)], rates_apart(moved, pairs)
    used = rails_used(moved)
    # Servers on other rails can still be compared by the mean of the rails that each uses.
    mean = moved.sum(axis=1, keepdims=True) // np.maximum(used.sum(axis=1), 1)[:, np.newaxis, np.newaxis]
    of_rail = rates_apart(mean, pairs)
    apart = np.where(np.isnan(apart), of_rail, apart)
    if block:
        in_hour = np.abs(rates_apart(rails.moved[servers], pairs)) <= ALL_HOUR
        sets, apart = np.zeros_like(sets), np.where(sets | in_hour, NEVER, apart)
    groups = coherent_groups(series, sets, apart, blind, high - low, IN_BLOCK if block else 0)
    alike = cosines(series, series)
    elsewhere = ~(used[:, np.newaxis] & used).any(axis=2) & ~np.isnan(of_rail)
    if groups and elsewhere.any() and not block:  # what rails cannot compare, their sums can
        sums = np.concatenate([series_phases(mean, observed), series[:, -1:]], axis=1)
        groups = with_members_elsewhere(sums, groups, np.where(elsewhere, of_rail, NEVER), high - low)
        alike = np.where(elsewhere, cosines(sums, sums), alike)
    found = []
    for group in groups:
        members = list(group.members)
        named = [int(servers[one]) for one in members]
        coherence = _mean_of_others(alike[np.ix_(members, members)])
        matches = [bool(match[one, named].any()) for one in named]
        found.append(
            replace(group, members=tuple(named), seconds=high - low, coherence=tuple(coherence), matches=tuple(matches))
        )
    return found


def _mean_of_others(alike: Floats) -> list[float]:
    """Return the mean of each row without its own place; phases are rounded, so equal ones may come out above 1."""
    means = (alike.sum(axis=1) - alike.diagonal()) / (len(alike) - 1)
    return [min(mean, 1.0) for mean in means.tolist()]


def series_phases(moved: Ints, observed: Mask) -> Phases:
    """Return the phases of servers x rails x waves; those of unused rails are 0."""
    rails = []
    for rail in range(moved.shape[1]):
        wave = moved[:, rail]
        used = wave.sum(axis=1) >= RAIL_USED
        if used.any():
            peak = peaks(wave)
            levels = np.minimum(wave, peak) * STEPS // peak
            rails.append(phases(np.where(used[:, np.newaxis], drift_removed(levels, observed), 0), observed))
    return np.stack(rails, axis=1) if rails else np.zeros((len(moved), 1, 1), complex)


def pace_phases(moved: Ints, observed: Mask) -> Phases:
    """Return the phases of the pace of servers, as of one more rail."""
    gained = pace(moved, observed)
    usual = DEVIATION * np.median(np.abs(gained), axis=1, keepdims=True)
    clipped = np.clip(gained / np.where(usual > 0, usual, 1), -1, 1)
    levels = np.rint(STEPS * (clipped - clipped.mean(axis=1, keepdims=True))).astype(np.int64)
    return phases(levels, observed, PACE_SLOWEST, PACE_FASTEST)[:, np.newaxis]


def rails_used(moved: Ints) -> Mask:
    """Return which rails each server uses, servers x rails."""
    total = moved.sum(axis=2)
    return np.asarray((total >= RAIL_USED) & (total >= RAIL_SHARE * total.max(axis=1, keepdims=True)))


def matching(rails: Rails) -> Mask:
    """Return which two servers moved the same number of bytes on each rail, but for a thousandth.

    An owner of ports that stands for two servers matches none.
    """
    total = rails.moved.sum(axis=2).astype(np.float64)
    used = total >= RAIL_USED
    larger = np.maximum(total[:, np.newaxis], total)
    equal = np.abs(total[:, np.newaxis] - total) <= ALIKE * larger
    both = used[:, np.newaxis] & used
    neither = ~(used[:, np.newaxis] | used)
    single = np.array(["/" not in name for name in rails.servers])
    found: Mask = (neither | (equal & both)).all(axis=2) & both.any(axis=2) & np.outer(single, single)
    np.fill_diagonal(found, False)
    return found


def rates_apart(moved: Ints, pairs: Mask) -> Floats:
    """Return the logarithm of the ratio of the rates of each two servers, on rails and in minutes that both use.

    It is NaN where there are none.
    `pairs` marks owners that stand for two servers, one or both of which may be of a job.
    """
    whole = moved[:, :, : moved.shape[2] // MINUTE * MINUTE]
    minutes = whole.reshape(*moved.shape[:2], -1, MINUTE).sum(axis=3).astype(np.float64)
    active = minutes > np.maximum(IDLE_MINUTE * minutes.max(axis=2, keepdims=True), RAIL_USED / len(minutes[0, 0]) / 2)
    rates, used = (minutes * active).reshape(len(moved), -1), active.reshape(len(moved), -1).astype(np.float64)
    in_common = rates @ used.T
    # No common minutes: 0 / 0, which becomes NaN below.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(in_common / in_common.T)
    # Of an owner of two servers, both may be in the job: then it moves twice the bytes of one.
    half = found - (pairs[:, np.newaxis].astype(float) - pairs) * math.log(2)
    found = np.where(np.abs(half) < np.abs(found), half, found)
    return np.where(np.isfinite(found), found, np.nan)


# Jobs on one clock: stages of a pipeline, or jobs that wait for each other or for one storage.

RAILS_AGREE = 1.0
"""Seconds by which the lags of rails may differ if they are one lag."""
BETWEEN = 0.9
"""Part of the highest score that lags of whole seconds reach at least: the shortest waves have 16 s."""


@dataclass(frozen=True)
class Clock:
    """The group that another one follows, and how many seconds later; None where its rails do not agree in that."""

    of: int
    lag_seconds: float | None


def clocks(rails: Rails, groups: Sequence[Sequence[int]], window: tuple[int, int]) -> list[Clock | None]:
    """Return for each group the largest group that it follows; None if it follows none.

    A group follows one with more bytes if their sums are coherent at some lag. They are two groups because their bytes
    differ or one lags.
    """
    if len(groups) < 2:
        return [None] * len(groups)
    low, high = window
    phases = series_phases(rails.moved[:, :, low:high], rails.observed[:, low:high])
    sums = [rounded(phases[list(members)].sum(axis=0)) for members in groups]
    moved = [int(rails.moved[list(members)].sum()) for members in groups]
    order = sorted(range(len(groups)), key=lambda one: (-moved[one], one))
    tests = len(groups) * (len(groups) - 1) / 2
    found: list[Clock | None] = [None] * len(groups)
    for place, one in enumerate(order):
        for larger in order[:place]:
            # All groups on one clock name the largest one: a follower is never a clock.
            if found[larger] is None:
                by_rail = lags_of(sums[larger], sums[one], tests, high - low)
                if by_rail:
                    found[one] = Clock(larger, _agreed(by_rail))
                    break
    return found


def lags_of(larger: Phases, one: Phases, tests: float, seconds: int) -> list[float | None]:
    """Return the lag of one sum behind another on each rail; None where it is not certain; empty if no lag is.

    The rails of two stages may pulse in another order. So each rail is compared alone, and all rails together.
    """
    both = np.flatnonzero((larger != 0).any(axis=1) & (one != 0).any(axis=1)).tolist()
    # Bonferroni: each lag, on each rail and on all together, is a chance of a false link.
    enough = least_score(tests * (2 * LATEST + 1) * (len(both) + 1))

    def certain(part: list[int]) -> float | None:
        pair = larger[part], one[part]
        # Whole seconds first: the search for tenths and the correlation at all lags cost more.
        if at_lags(*pair, np.arange(-LATEST, LATEST + 1.0), seconds).max() < BETWEEN * enough:
            return None
        lag, score = lag_of(*pair, LATEST, seconds)
        highest = float(correlation(*pair, seconds).max())
        # A maximum at the end of the range may be the slope of one beyond it.
        return lag if score >= enough and abs(lag) < LATEST and score**2 + DOUBT >= highest**2 else None

    found = [certain([rail]) for rail in both]
    return found if any(lag is not None for lag in [*found, certain(both)]) else []


def _agreed(lags: list[float | None]) -> float | None:
    """Return the lag that two rails or more agree in, or that of the only rail."""
    known = [lag for lag in lags if lag is not None]
    if len(known) < min(len(lags), 2) or max(known) - min(known) > RAILS_AGREE:
        return None
    return float(np.median(known))
