"""Hours without a job: each server shifted by a time of its own, surrogates of random phases, unrelated servers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from scipy import stats

from bench.planted_jobs import plan_traffic
from tests.models.planted_hours import Ints, dense, planted, with_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = ("shifted", "surrogate", "unrelated")
SEEN = slice(256, 3598)
"""Seconds of the hour that all switches saw: after the opening gap, before the last poll."""


def null_hour(kind: str, seed: int) -> pa.Table:
    """Return the rails of a simulated hour of this kind."""
    if kind == "unrelated":
        return planted(seed, plan=partial(plan_traffic, jobs=False))[0]
    rails, _ = planted(seed)
    return (shifted if kind == "shifted" else surrogate)(rails, np.random.default_rng(seed))


def shifted(rails: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return the rails with each server's seconds in a circle, turned by a random time.

    No two times are within the lags at which a member is looked for: such servers of one job would still be together.
    """
    moved, longest = dense(rails)
    servers = _servers(rails)
    apart = (SEEN.stop - SEEN.start) // len(servers)
    for rows, step in zip(servers, (apart * rng.permutation(len(servers))).tolist(), strict=True):
        for series in (moved, longest):
            series[rows, SEEN] = np.roll(series[rows, SEEN], step, axis=1)
    return _as_input(rails, moved, longest)


def surrogate(rails: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return rails with nearly the spectra of these and the same bytes in other seconds.

    The phases of a server's waves are random, equal on its rails. The bytes take the order of the wave that results.
    """
    moved, longest = dense(rails)
    for rows in _servers(rails):
        waves = np.fft.rfft(moved[rows, SEEN], axis=1)
        waves *= np.exp(2j * np.pi * rng.uniform(0, 1, waves.shape[1]))
        ranks = np.fft.irfft(waves, SEEN.stop - SEEN.start, axis=1).argsort(axis=1, kind="stable").argsort(axis=1)
        moved[rows, SEEN] = np.take_along_axis(np.sort(moved[rows, SEEN], axis=1), ranks, axis=1)
    return _as_input(rails, moved, longest)


def _servers(rails: pa.Table) -> list[slice]:
    names = rails["server"].to_pylist()
    edges = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    return [slice(low, high) for low, high in zip(edges, [*edges[1:], len(names)], strict=True)]


def _as_input(rails: pa.Table, moved: Ints, longest: Ints) -> pa.Table:
    known = rails.select(["cluster", "server", "hour_utc", "rail", "switch"])
    return with_seconds(known, moved, longest)


def show(found: Sequence[tuple[str, int]]) -> None:
    """Print groups in null hours, given kind and number of groups of each hour."""
    print(
        f"{'hours without a job':<22}{'hours':>6}{'groups':>8}{'hours with one':>16}{'95% interval of this share':>30}"
    )
    for kind in (*KINDS, "all"):
        counts = [count for name, count in found if kind in (name, "all")]
        if counts:
            hit = sum(count > 0 for count in counts)
            low, high = stats.binomtest(hit, len(counts)).proportion_ci(method="exact")
            print(f"{kind:<22}{len(counts):>6}{sum(counts):>8}{hit:>16}{f'{low:.2%} to {high:.2%}':>30}")
