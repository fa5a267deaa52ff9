"""Iterations of a job: period, error, duty cycle and bytes, from the sum over its servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from warehouse.signals.autocorrelation import Ints, Mask, percentile
from warehouse.signals.comb import Comb, comb_of
from warehouse.signals.period import AGREE, SHORTEST, Found, period_of
from warehouse.signals.pulses import date, half_height, share_above

STARTS = 0.8
"""Part of the iterations whose start must be found, if the period is their mean distance."""
NEAR = 0.02
"""Part by which this mean may differ from the period of the comb."""
OF_SCATTER, OF_JACKKNIFE = 1.1, 0.8
"""Standard errors are these parts of scatter / iterations and of the jackknife's: 68 % of the true means of simulated
jobs are then within one of them (`python -m bench.jobs_traffic`)."""
IDLE = 0.02
"""Part of the usual height of pulses below which a job is idle."""


@dataclass(frozen=True)
class Iterations:
    """What the sum over a job's servers tells of its iterations; fields are columns of metrics.job_periods."""

    period_seconds: float | None
    period_error_seconds: float | None
    iterations: int | None
    duty_cycle: float | None
    bytes_per_iteration: int | None
    resolved_from: str | None
    unresolved: str | None


def iterations_of(moved: Ints, observed: Mask, window: tuple[int, int], alone: Sequence[float | None]) -> Iterations:
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
    """
    total = moved.sum(axis=0)
    found = period_of(total, observed)
    if not total[observed].any():
        return Iterations(None, None, None, None, None, None, found.unresolved or "idle")
    comb = None if found.period_seconds else comb_of(_used(moved[:, window[0] : window[1]]))
    timed = _timed(total, observed, found, comb)
    if timed is None:
        return Iterations(None, None, None, None, None, None, found.unresolved or "unsteady")
    period, error = timed
    known = [one for one in alone if one is not None and abs(one / period - 1) <= AGREE]
    seconds = _active(total, observed)
    count = max(round(seconds.sum() / period), 1)
    half = half_height(np.minimum(total[observed], percentile(total[observed], 99)))
    return Iterations(
        round(period, 4),
        round(max(error, 0.0001), 4),
        count,
        round(share_above(total, seconds, half), 3) if period >= SHORTEST else None,
        int(total[seconds].sum() * period / seconds.sum()),
        "server" if 2 * len(known) >= len(alone) else "group",
        None,
    )


def _used(moved: Ints) -> Ints:
    return moved[moved.any(axis=1)]


def _timed(total: Ints, observed: Mask, found: Found, comb: Comb | None) -> tuple[float, float] | None:
    """Return the period and its error, from the starts of iterations if they are found, else from the comb."""
    near = found.period_seconds or (comb.period if comb else None)
    if near is None:
        return None
    if near >= SHORTEST:
        peak = percentile(total[observed], 99)
        starts = date(total, observed, near, half_height(np.minimum(total[observed], peak)))
        between = np.diff(starts) / 1000
        cycles = np.maximum(np.rint(between / near), 1)
        mean = float(between.sum() / max(cycles.sum(), 1))
        if len(starts) > STARTS * cycles.sum() > 0 and abs(mean / near - 1) <= NEAR:
            each = between / cycles
            scatter = 1.4826 * median(np.abs(each - np.median(each)).tolist())
            return mean, OF_SCATTER * scatter / float(cycles.sum())
    if comb is None:
        comb = comb_of(total[np.newaxis, np.flatnonzero(observed)[0] : np.flatnonzero(observed)[-1]])
    return (comb.period, OF_JACKKNIFE * comb.error) if comb else None


def _active(total: Ints, observed: Mask) -> Mask:
    """Return the observed seconds from the first to the last pulse."""
    busy = np.flatnonzero(observed & (total > IDLE * percentile(total[observed], 99)))
    seconds = np.zeros(len(total), bool)
    seconds[busy[0] : busy[-1] + 1] = True
    return seconds & observed
