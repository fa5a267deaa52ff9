"""Groups of servers that are coherent: jobs, as the network sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from warehouse.signals.coherence import Floats, Lags, Phases, all_scores, rounded, scores

CHANCE = 0.002
"""Largest chance that one of the searches of an hour of unrelated servers gives a false link."""
ANOTHER = 1.2
"""Servers whose rates differ by more than this factor are not of one job."""
WITH_THE_REST = 2.0
"""Least score of a member with the rest of the servers whose bytes match."""
ASIDE = 0.1
"""Part of the servers whose bytes match that may be left out."""
AT_ONCE, AROUND = 1, 6
"""Members are at most AT_ONCE seconds apart. Regular pulses are also coherent a period later, but less."""
DOUBT = 9.0
"""Difference of squared scores at which the place of a maximum is certain (three deviations)."""
LATEST = 15
"""Largest lag of a member behind its group, in seconds."""
FEW, NEARLY = 4, 0.01
"""Two of FEW or more servers with nearly the same rate are no group if the others are not coherent with them."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """Members in the order of their joining, with their lags in seconds.

    `score` is that of the weakest link which holds the group together, `tests` the number of links that were tried.
    """

    members: tuple[int, ...]
    score: float
    tests: float
    lags: tuple[float, ...] = ()

    @property
    def p_value(self) -> float:
        """Bound of the chance that an hour of unrelated servers shows such a link."""
        return min(1.0, self.tests * tail(self.score))


def tail(score: float) -> float:
    """Return the chance that a standard normal number exceeds the score."""
    return math.erfc(score / math.sqrt(2)) / 2


def least_score(tests: float, chance: float = CHANCE) -> float:
    """Return the score that the best of this many unrelated tests exceeds with at most this chance (Bonferroni)."""
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if tests * tail(middle) > chance else (low, middle)
    return high


def coherent_groups(series: Phases, match: Mask, apart: Floats, lags: Lags) -> list[Group]:
    """Return the groups of two or more series, each with at least one link that chance does not explain.

    Parameters
    ----------
    series
        Phases of each server, a row each, of all its rails.
    match
        Pairs of servers whose bytes match on each rail.
    apart
        Logarithm of the ratio of rates of each two servers.
    lags
        Compares two series at lags.
    """
    groups = joined(series, equal_groups(series, connected(match)), apart, lags)
    groups = [one for one in groups if len(one.members) > 2 or not _by_accident(one, apart)]
    return with_late_members(series, groups, apart, lags)


def equal_groups(series: Phases, candidates: list[list[int]]) -> list[Group]:
    """Return the sets of servers whose bytes match and that are coherent as a whole.

    Bytes may be equal by chance, or because several jobs are copies. So the mean score of all pairs of a set must
    exceed what chance explains, and each member must be coherent with the rest.
    """
    tests = max(len(candidates), 1)
    enough, found = least_score(tests), []
    for candidate in candidates:
        members = np.array(candidate)
        least = max(len(members) - max(1, int(ASIDE * len(members))), 2)
        while len(members) >= least:
            own = series[members]
            pairs = all_scores(own)[np.triu_indices(len(members), 1)]
            score = float(pairs.sum()) / math.sqrt(len(pairs))
            total = own.sum(axis=0)
            rest = [float(scores(rounded(total - one), one[np.newaxis])[0]) for one in own]
            if score >= enough and min(rest) >= WITH_THE_REST:
                found.append(Group(tuple(members.tolist()), score, tests))
                break
            members = np.delete(members, int(np.argmin(rest)))
    return found


def joined(series: Phases, groups: list[Group], apart: Floats, lags: Lags) -> list[Group]:
    """Join the two most coherent series or groups again and again, while chance does not explain their score.

    A group is represented by the phases of its sum, so it counts as one series, however alike its members are.
    """
    count = len(series)
    tests = max(count * (count - 1) / 2, 1)
    enough = least_score(tests)
    taken = {member for group in groups for member in group.members}
    parts = groups + [Group((one,), math.inf, tests) for one in range(count) if one not in taken]
    belongs = np.zeros((len(parts), count))
    for number, part in enumerate(parts):
        belongs[number, list(part.members)] = 1
    sums = np.stack([series[list(part.members)].sum(axis=0) for part in parts])
    one = rounded(sums)
    found = all_scores(one)
    barred = _other_rates(belongs, belongs, apart)
    np.fill_diagonal(barred, True)
    while True:
        free = np.where(barred, -np.inf, found)
        i, j = (int(place) for place in np.unravel_index(int(np.argmax(free)), free.shape))
        if free[i, j] < enough:
            break
        if not at_once(one[i], one[j], lags):
            barred[i, j] = barred[j, i] = True
            continue
        both = parts[i], parts[j]
        least = min((part for part in both), key=lambda part: part.score)
        link = Group(both[0].members + both[1].members, float(found[i, j]), tests)
        parts[i] = link if link.score < least.score else replace(least, members=link.members)
        sums[i] += sums[j]
        belongs[i] += belongs[j]
        one[i] = rounded(sums[i])
        found[i] = found[:, i] = scores(one[i], one)
        gone = barred.all(axis=1)
        gone[j] = True
        barred[i] = _other_rates(belongs[i : i + 1], belongs, apart)[0] | gone
        barred[i, i] = True
        barred[:, i] = barred[i]
        barred[j] = barred[:, j] = True
        parts[j] = Group((), math.inf, tests)
    return [part for part in parts if len(part.members) > 1]


def _other_rates(some: Floats, others: Floats, apart: Floats) -> Mask:
    """Return which groups have other rates: the mean over their members."""
    sizes = some.sum(axis=1)[:, np.newaxis] * others.sum(axis=1)
    found: Mask = np.abs(some @ apart @ others.T) > math.log(ANOTHER) * sizes
    return found


def at_once(one: Phases, other: Phases, lags: Lags) -> bool:
    """Return whether two series are coherent at once, and clearly less so some seconds or periods later.

    Regular pulses are coherent at any multiple of their period. Only what is not regular tells when they were sent.
    """
    found = lags.correlation(one, other)
    near = max(found[0], found[1], found[-1])
    around = max(found[: AROUND + 1].max(), found[-AROUND:].max())
    far = found[AROUND:-AROUND].max()
    return bool(near**2 + DOUBT >= around**2 and near**2 >= far**2 + DOUBT)


def _by_accident(group: Group, apart: Floats) -> bool:
    """Return whether these two are coherent alone, although several servers have nearly the same rate."""
    one, other = group.members
    near = np.abs(apart[[one, other]]) <= NEARLY
    return bool(near[0, other] and near.any(axis=0).sum() >= FEW)


def with_late_members(series: Phases, groups: list[Group], apart: Floats, lags: Lags) -> list[Group]:
    """Add single servers that are coherent with a group some seconds later, and the lags of all members."""
    taken = {member for group in groups for member in group.members}
    single = [one for one in range(len(series)) if one not in taken]
    tests = max(len(single) * len(groups), 1)
    stacks = [rounded(series[list(group.members)].sum(axis=0)) for group in groups]
    found = [_with_lags(group, series, lags) for group in groups]
    for one in single:
        tried = [
            (*lag_of(stack, series[one], LATEST, lags), number)
            for number, (stack, group) in enumerate(zip(stacks, groups, strict=True))
            if abs(apart[one, list(group.members)].mean()) <= math.log(ANOTHER)
        ]
        lag, score, number = max(tried, key=lambda found: found[1], default=(0.0, 0.0, 0))
        allowed = tests if abs(lag) <= AT_ONCE else tests * LATEST
        if score >= least_score(allowed):
            before = found[number]
            found[number] = replace(before, members=(*before.members, one), lags=(*before.lags, lag))
            if score < before.score:
                found[number] = replace(found[number], score=score, tests=allowed)
    return found


def _with_lags(group: Group, series: Phases, lags: Lags) -> Group:
    """Return the group with the lag of each member behind the others."""
    total = series[list(group.members)].sum(axis=0)
    behind = [lag_of(rounded(total - series[one]), series[one], AROUND, lags)[0] for one in group.members]
    return replace(group, lags=tuple(behind))


def lag_of(group: Phases, one: Phases, most: int, lags: Lags) -> tuple[float, float]:
    """Return the seconds by which a series is later than a group, to a tenth, and its score there."""
    seconds = np.arange(-most, most + 1, dtype=np.float64)
    best = float(seconds[int(np.argmax(lags.at(group, one, seconds)))])
    tenths = np.round(best + np.arange(-9, 10) / 10, 1)
    found = lags.at(group, one, tenths)
    return float(tenths[int(np.argmax(found))]), float(found.max())


def connected(near: Mask) -> list[list[int]]:
    """Return the sets of two or more connected servers, ordered by their first one."""
    near = near | np.eye(len(near), dtype=bool)
    first = np.arange(len(near))
    while True:  # each takes the smallest number that a neighbor has
        known = np.where(near, first, len(near)).min(axis=1)
        if (known == first).all():
            break
        first = known
    groups = [np.flatnonzero(first == one).tolist() for one in np.unique(first)]
    return [members for members in groups if len(members) > 1]
