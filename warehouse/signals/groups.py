"""Groups of servers that are coherent: jobs, as the network sees them.

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

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

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
    return np.asarray(np.rint(unit.real * UNIT) + 1j * np.rint(unit.imag * UNIT))


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
    return np.asarray(
        (one.real @ other.real.T + one.imag @ other.imag.T) / UNIT**2 / np.maximum(_common(some, others), 1)
    )


def _common(some: Phases, others: Phases) -> Floats:
    # Floats, since NumPy multiplies matrices of integers without BLAS; such counts are exact.
    one, other = ((series != 0).reshape(len(series), -1).astype(np.float64) for series in (some, others))
    return np.asarray(one @ other.T)


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
    return np.asarray(np.rint(turns).reshape(len(series), -1))


def correlation(one: Phases, other: Phases, seconds: int) -> Floats:
    """Return the score of two series in windows of `seconds` for each whole lag of the other, modulo the window."""
    first, end = _band(seconds)
    spectrum = np.zeros(seconds // 2 + 1, complex)
    spectrum[first:end] = _products(one, other)
    # irfft divides by the window, and adds each wave twice: itself and its conjugate.
    return np.fft.irfft(spectrum, seconds) * seconds / 2


def at_lags(one: Phases, other: Phases, lags: Floats, seconds: int) -> Floats:
    """Return the score of two series in windows of `seconds` for each of these lags, which need not be whole."""
    return (_turns(seconds, tuple(lags.tolist())) @ _products(one, other)).real


def _products(one: Phases, other: Phases) -> Phases:
    common = max(int(((one != 0) & (other != 0)).sum()), 1)
    spread = 1.0
    if len(one) > 1:
        both = one[np.newaxis], other[np.newaxis]
        spread = float(_spread(*both, (rails_alike(both[0]), rails_alike(both[1])))[0, 0])
    return np.asarray((one.conj() * other).sum(axis=0) / UNIT**2 * np.sqrt(2 / common / spread))


@lru_cache(maxsize=128)
def _turns(seconds: int, lags: tuple[float, ...]) -> Phases:
    """Return by how much each lag turns each wave: lags x waves."""
    return np.asarray(np.exp(2j * np.pi * np.outer(lags, np.arange(*_band(seconds))) / seconds))


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


# Groups.

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
    series: Phases, match: Mask, apart: Floats, blind: Mask, seconds: int, least: float = 0.0
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
    seconds
        Length of the window.
    least
        Least score of a group's weakest link.
    """
    equal = equal_groups(series, connected(match & ~blind))
    # Two servers without a common rail have no ratio that could keep them apart: 0 lets them join.
    groups = joined(series, equal, np.where(blind, NEVER, np.nan_to_num(apart)), seconds)
    groups = [_with_lags(one, series, seconds) for one in groups if len(one.members) > 2 or _is_pair(one, apart)]
    groups = [one for one in groups if one.score >= least and np.median(np.abs(one.lags)) <= MEASURED]
    groups = [one for one in groups if has_copies(one, match)]
    return with_late_members(series, groups, np.nan_to_num(apart), seconds)


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


def joined(series: Phases, groups: list[Group], apart: Floats, seconds: int) -> list[Group]:
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
        if not at_once(one[i], one[j], seconds):
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


def at_once(one: Phases, other: Phases, seconds: int) -> bool:
    """Return True if two series are coherent at once, and at no other lag clearly more so.

    Pulses that are nearly regular are also coherent a period later, or at any lag that an accident gave them.
    """
    found = correlation(one, other, seconds)
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


def with_late_members(series: Phases, groups: list[Group], apart: Floats, seconds: int) -> list[Group]:
    """Add single servers that are coherent with a group some seconds later, and the lags of all members."""
    taken = {member for group in groups for member in group.members}
    single = [one for one in range(len(series)) if one not in taken]
    tests = max(len(single) * len(groups), 1)
    stacks = [rounded(series[list(group.members)].sum(axis=0)) for group in groups]
    found = list(groups)
    for one in single:
        tried = [
            (*lag_of(stack, series[one], LATEST, seconds), number)
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


def with_members_elsewhere(sums: Phases, groups: list[Group], apart: Floats, seconds: int) -> list[Group]:
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
            score = float(at_lags(total, sums[one], np.zeros(1), seconds)[0])
            if score >= least_score(tests) and at_once(total, sums[one], seconds):
                taken.add(one)
                before, lag = found[number], lag_of(total, sums[one], AROUND, seconds)[0]
                found[number] = replace(before, members=(*before.members, one), lags=(*before.lags, lag))
                if tests * tail(score) > before.p_value:
                    found[number] = replace(found[number], score=score, tests=tests)
    return found


def _with_lags(group: Group, series: Phases, seconds: int) -> Group:
    """Return the group with the lag of each member behind the others."""
    total = series[list(group.members)].sum(axis=0)
    behind = [lag_of(rounded(total - series[one]), series[one], AROUND, seconds)[0] for one in group.members]
    return replace(group, lags=tuple(behind))


def lag_of(group: Phases, one: Phases, most: int, seconds: int) -> tuple[float, float]:
    """Return the seconds by which a series is later than a group, to a tenth, and its score there."""
    whole = np.arange(-most, most + 1, dtype=np.float64)
    best = float(whole[int(np.argmax(at_lags(group, one, whole, seconds)))])
    # Sums of tenths are no tenths in binary, and the lag is published.
    tenths = np.round(best + np.arange(-9, 10) / 10, 1)
    found = at_lags(group, one, tenths, seconds)
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
