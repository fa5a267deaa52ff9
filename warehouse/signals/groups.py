"""Groups of servers that are coherent: jobs, as the network sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from warehouse.signals.coherence import Lags, Phases, rails_alike, rounded, scores
from warehouse.signals.series import Floats, Mask

CHANCE = 0.002
"""Largest chance of a false link among unrelated servers, for each of the searches of an hour."""
ANOTHER = 1.2
"""Servers whose rates differ by more than this factor are not of one job."""
AS_A_WHOLE, WITH_THE_REST = 5.0, 2.0
"""Smallest scores of servers whose bytes match: of all pairs together, and of each member with the rest."""
ASIDE = 0.1
"""Largest share of the servers whose bytes match that may be left out of the group."""
AT_ONCE, AROUND, MEASURED = 1, 6, 1.5
"""Members are at most AT_ONCE seconds apart. Lags are looked for up to AROUND; the median of those of a group's members
is at most MEASURED."""
COPIES = 1 / 3
"""Smallest share of the servers whose bytes match a member's that must be in its group. Of many servers with one
regular rhythm, some are in step by chance."""
DOUBT = 9.0
"""Difference of squared scores at which the place of a maximum is certain (three deviations)."""
LATEST = 15
"""Largest lag of a member behind its group, in seconds."""
FEW, NEARLY_ONE = 4, 0.01
"""Two servers are a group only if their rates differ by at most NEARLY_ONE. If FEW or more servers have nearly this
rate, two of them are no group."""

NEVER = 1000.0
"""Logarithm of a ratio that keeps two servers apart."""


@dataclass(frozen=True)
class Group:
    """Members in the order of their joining, with their lags in seconds.

    `score` is that of the weakest link which holds the group together, `tests` the number of links that were tried.
    """

    members: tuple[int, ...]
    score: float
    tests: float
    lags: tuple[float, ...] = ()
    seconds: int = 0
    """Length of the window in which the members are coherent."""
    coherence: tuple[float, ...] = ()
    """Mean cosine of the differences of phases of each with the other members."""
    matches: tuple[bool, ...] = ()
    """True if its bytes on each rail match those of another member."""

    @property
    def p_value(self) -> float:
        """Upper bound of the chance that an hour of unrelated servers shows such a link."""
        # The tail underflows to 0 beyond 38 deviations, but no chance is 0.
        return min(1.0, max(self.tests * tail(self.score), 1e-300))


def tail(score: float) -> float:
    """Return the chance that a standard normal number exceeds the score."""
    return math.erfc(score / math.sqrt(2)) / 2


def least_score(tests: float) -> float:
    """Return the score that the best of this many unrelated tests exceeds with a chance of `CHANCE` (Bonferroni)."""
    # By symmetry, and not at 1 - CHANCE / tests, which would lose digits.
    return -NormalDist().inv_cdf(CHANCE / tests)


def coherent_groups(
    series: Phases, match: Mask, apart: Floats, blind: Mask, lags: Lags, least: float = 0.0
) -> list[Group]:
    """Return the groups of two or more series, each with at least one link that chance does not explain.

    Parameters
    ----------
    series
        Phases of each server: servers x rails x waves.
    match
        Pairs of servers whose bytes match on each rail.
    apart
        Logarithm of the ratio of rates of each two servers; NaN where they use no rail at the same time.
    blind
        Pairs of servers that are not compared: a gap that both have makes them look coherent.
    lags
        Compares two series at lags.
    least
        Least score of a group's weakest link.
    """
    equal = equal_groups(series, connected(match & ~blind))
    # Two servers without a common rail have no ratio that could keep them apart: 0 lets them join.
    groups = joined(series, equal, np.where(blind, NEVER, np.nan_to_num(apart)), lags)
    groups = [_with_lags(one, series, lags) for one in groups if len(one.members) > 2 or _is_pair(one, apart)]
    groups = [one for one in groups if one.score >= least and np.median(np.abs(one.lags)) <= MEASURED]
    groups = [one for one in groups if has_copies(one, match)]
    return with_late_members(series, groups, np.nan_to_num(apart), lags)


def equal_groups(series: Phases, candidates: list[list[int]]) -> list[Group]:
    """Return the sets of servers whose bytes match and that are coherent as a whole.

    Bytes may be equal by chance, or because several jobs are copies. So the mean score of all pairs of a set must
    exceed what chance explains, and each member must be coherent with the rest.
    """
    tests = max(len(candidates), 1)
    found: list[Group] = []
    for candidate in candidates:
        members = np.array(candidate)
        least = max(len(members) - max(1, int(ASIDE * len(members))), 2)
        while len(members) >= least:
            own = series[members]
            pairs = scores(own, own)[np.triu_indices(len(members), 1)]
            # Has variance 1, as each score of unrelated servers.
            score = float(pairs.sum()) / math.sqrt(len(pairs))
            total = own.sum(axis=0)
            rest = [float(scores(rounded(total - one)[np.newaxis], one[np.newaxis])[0, 0]) for one in own]
            if score >= AS_A_WHOLE and min(rest) >= WITH_THE_REST:
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
    # A server alone has no link yet, so its score must never be the weakest.
    parts = groups + [Group((one,), math.inf, tests) for one in range(count) if one not in taken]
    belongs = np.zeros((len(parts), count))
    for number, part in enumerate(parts):
        belongs[number, list(part.members)] = 1
    sums = np.stack([series[list(part.members)].sum(axis=0) for part in parts])
    one = rounded(sums)
    alike = rails_alike(one)
    found = scores(one, one, (alike, alike))
    ratios, sizes = belongs @ apart @ belongs.T, belongs.sum(axis=1)
    # Ratios are summed over all pairs of members, so the limit is, too.
    free = np.where(np.abs(ratios) > math.log(ANOTHER) * np.outer(sizes, sizes), -np.inf, found)
    np.fill_diagonal(free, -np.inf)
    left = np.ones(len(parts), bool)
    while True:
        i, j = (int(place) for place in np.unravel_index(int(np.argmax(free)), free.shape))
        if free[i, j] < enough:
            break
        if not at_once(one[i], one[j], lags):
            free[i, j] = free[j, i] = -np.inf
            continue
        weakest = min(parts[i], parts[j], Group((), float(free[i, j]), tests), key=lambda part: part.score)
        parts[i] = replace(weakest, members=parts[i].members + parts[j].members)
        sums[i] += sums[j]
        one[i] = rounded(sums[i])
        alike[i] = rails_alike(one[i : i + 1])[0]
        left[j] = False
        ratios[i] += ratios[j]
        ratios[:, i] += ratios[:, j]
        sizes[i] += sizes[j]
        apart_now = np.abs(ratios[i]) > math.log(ANOTHER) * sizes[i] * sizes
        row = np.where(apart_now | ~left, -np.inf, scores(one[i : i + 1], one, (alike[i : i + 1], alike))[0])
        row[i] = -np.inf
        free[i] = free[:, i] = row
        free[j] = free[:, j] = -np.inf
    return [part for place, part in enumerate(parts) if left[place] and len(part.members) > 1]


def at_once(one: Phases, other: Phases, lags: Lags) -> bool:
    """Return True if two series are coherent at once, and at no other lag clearly more so.

    Pulses that are nearly regular are also coherent a period later, or at any lag that an accident gave them.
    """
    found = lags.correlation(one, other)
    # Lags of 0, 1 and -1 s: members are at most AT_ONCE apart.
    near = max(found[0], found[1], found[-1])
    return bool(near**2 + DOUBT >= found.max() ** 2)


def has_copies(group: Group, match: Mask) -> bool:
    """Return True if enough of the servers whose bytes match a member's are members."""
    members = list(group.members)
    copies = np.asarray(match[members].any(axis=0))
    return bool(copies[members].sum() >= COPIES * copies.sum())


def _is_pair(group: Group, apart: Floats) -> bool:
    """Return True if two servers are a group: they have nearly one rate, and are not two of several with this rate."""
    near = np.abs(apart[list(group.members)]) <= NEARLY_ONE
    return bool(near[0, group.members[1]]) and int(near.any(axis=0).sum()) < FEW


def with_late_members(series: Phases, groups: list[Group], apart: Floats, lags: Lags) -> list[Group]:
    """Add single servers that are coherent with a group some seconds later, and the lags of all members."""
    taken = {member for group in groups for member in group.members}
    single = [one for one in range(len(series)) if one not in taken]
    tests = max(len(single) * len(groups), 1)
    stacks = [rounded(series[list(group.members)].sum(axis=0)) for group in groups]
    found = list(groups)
    for one in single:
        tried = [
            (*lag_of(stack, series[one], LATEST, lags), number)
            for number, (stack, group) in enumerate(zip(stacks, groups, strict=True))
            if abs(apart[one, list(group.members)].mean()) <= math.log(ANOTHER)
        ]
        lag, score, number = max(tried, key=lambda found: found[1], default=(0.0, 0.0, 0))
        # A later member was found among more lags, so chance reaches a higher score.
        allowed = tests if abs(lag) <= AT_ONCE else tests * LATEST
        # A maximum at the end of the range may be the slope of one beyond it.
        if abs(lag) < LATEST and score >= least_score(allowed):
            before = found[number]
            found[number] = replace(before, members=(*before.members, one), lags=(*before.lags, lag))
            if score < before.score:
                found[number] = replace(found[number], score=score, tests=allowed)
    return found


def with_members_elsewhere(sums: Phases, groups: list[Group], apart: Floats, lags: Lags) -> list[Group]:
    """Add single servers that are coherent with a group at once, by the sums over rails of which they share none.

    `apart` is `NEVER` for two servers that do share a rail, which are compared by it.
    """
    taken = {member for group in groups for member in group.members}
    single = [one for one in range(len(sums)) if one not in taken]
    tests = max(len(single) * len(groups), 1)
    found = list(groups)
    for number, group in enumerate(groups):
        total = rounded(sums[list(group.members)].sum(axis=0))
        for one in single:
            if one in taken or abs(apart[one, list(group.members)]).max() > math.log(ANOTHER):
                continue
            score = float(lags.at(total, sums[one], np.zeros(1))[0])
            if score >= least_score(tests) and at_once(total, sums[one], lags):
                taken.add(one)
                before, lag = found[number], lag_of(total, sums[one], AROUND, lags)[0]
                found[number] = replace(before, members=(*before.members, one), lags=(*before.lags, lag))
                if tests * tail(score) > before.p_value:
                    found[number] = replace(found[number], score=score, tests=tests)
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
    # Sums of tenths are no tenths in binary, and the lag is published.
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
