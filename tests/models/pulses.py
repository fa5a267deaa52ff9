"""A server whose traffic pulses, from bytes at any moment to the seconds that a warehouse has of its ports.

A counter is refreshed once a second; polls come at the intervals of the real ones; the rule for rates gives bytes to
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.models.seconds import seconds

HOUR = 3600
GAP_MS = 10_000
STEPS = np.array([(0, 480), (10, 501), (40, 553), (60, 602), (75, 676), (90, 815), (95, 1030), (99, 1900), (100, 5200)])
"""Share of the intervals between polls (percent) that are at most so long (ms), as on the real GPU leaves."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """Pulses of `duty` x `period` seconds; lengths of iterations and heights of pulses vary by parts of themselves."""

    period: float
    duty: float
    phase: float = 0.0
    jitter: float = 0.0
    noise: float = 0.02
    level: float = 0.0
    """Steady traffic, as a part of the pulses' height."""
    height: float = 1e10

    def starts(self, rng: np.random.Generator) -> Floats:
        """When each iteration begins, from before the hour to after it."""
        count = int(HOUR / self.period * 1.2) + 5
        lengths = self.period * np.maximum(1 + self.jitter * rng.standard_normal(count), 0.2)
        return np.concatenate([[0.0], np.cumsum(lengths)]) + self.phase - 2 * self.period

    def moved(self, starts: Floats, moments: Floats, rng: np.random.Generator) -> Floats:
        """Bytes that have moved by each moment."""
        heights = self.height * (1 + self.noise * rng.standard_normal(len(starts) - 1))
        ends = starts[:-1] + self.duty * np.diff(starts)
        edges = np.stack([starts[:-1], ends], axis=1).ravel()
        bytes_at = np.concatenate(
            [[0.0], np.cumsum(np.stack([heights, 0 * heights], axis=1).ravel()[:-1] * np.diff(edges))]
        )
        found: Floats = np.interp(moments, edges, bytes_at) + self.level * self.height * moments
        return found


def polls(rng: np.random.Generator, gap: float) -> Ints:
    """Milliseconds of the hour at which a switch is asked: once at the begin, then from the end of the gap on."""
    steps = np.interp(rng.uniform(0, 100, 7000), STEPS[:, 0], STEPS[:, 1]).astype(np.int64)
    times = int(gap * 1000) + np.cumsum(steps)
    return np.concatenate([[int(rng.integers(602, 1235))], times[(times > 1500) & (times < HOUR * 1000 - 300)]])


def server(
    jobs: list[Job], rng: np.random.Generator, *, ports: int = 4, gap: float = 250.0, refresh: float | None = None
) -> tuple[Ints, NDArray[np.bool_], Floats]:
    """Bytes of each second of the hour, which seconds were observed, and the true starts of the first job.

    `refresh` is the time in a second at which counters are refreshed; each port has one of its own if it is None.
    """
    total, observed = np.zeros(HOUR, np.int64), np.zeros(HOUR, bool)
    all_starts = [job.starts(rng) for job in jobs]
    seeds = [int(seed) for seed in rng.integers(0, 2**31, len(jobs))]
    for _ in range(ports):
        times = polls(rng, gap)
        phase = rng.uniform(0, 1) if refresh is None else refresh
        seen = np.maximum(np.floor(times / 1000 - phase) + phase, 0)
        counted = sum(
            job.moved(starts, seen, np.random.default_rng(seed))
            - job.moved(starts, np.zeros(1), np.random.default_rng(seed))
            for job, starts, seed in zip(jobs, all_starts, seeds, strict=True)
        )
        deltas = np.maximum(np.diff(np.floor(counted).astype(np.int64), prepend=0), 0)
        rows = seconds(np.zeros(len(times), np.int64), times, deltas, np.zeros_like(deltas))
        np.add.at(total, rows["second"], rows["in_bytes"])
        observed[rows["second"]] = True
        gaps = rows["second"][rows["longest_ms"] > GAP_MS]
    first, last = np.flatnonzero(observed)[[0, -1]]
    observed[first : last + 1] = True
    observed[gaps] = False
    return total, observed, all_starts[0]
