"""Iterations of a job: period, error, duty cycle and bytes, from the sum over its servers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from warehouse.signals.alias import Leaf, alias_of, coherence_of
from warehouse.signals.comb import Comb, comb_of
from warehouse.signals.period import AGREE, SHORTEST_ALONE, Found, date, half_height, period_of, share_above
from warehouse.signals.series import Ints, Mask, peaks

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
    seen = coherence_of(leaves, window, period)
    coherence, of_alias = (None, None) if seen is None else (round(seen.period, 3), round(seen.alias, 3))
    alias = None if found.period_seconds else alias_of(total, observed, period)
    verdict = verdict_of(alias.weight if alias else 0.0, seen.weight if seen else 0.0)
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
        coherence,
        of_alias,
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
