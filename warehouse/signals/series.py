"""Rails of servers as arrays: bytes per second, and which seconds were observed. Types and levels of series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

HOUR = 3600


@dataclass(frozen=True)
class Rails:
    """Servers of one cluster in one hour."""

    cluster: str
    servers: list[str]
    moved: Ints
    """Bytes by server, rail and second of the hour; rails that a server lacks have none."""
    observed: Mask
    """By server and second: from the first to the last second, without those that a longer window overlaps."""
    switches: dict[tuple[int, int], str]
    """Leaf of each server and rail on which it moved bytes."""

    def by_switch(self, servers: Sequence[int]) -> dict[str, Ints]:
        """Return the bytes per second of some servers together, by leaf."""
        found: dict[str, Ints] = {}
        for (server, rail), switch in self.switches.items():
            if server in servers:
                found[switch] = found.get(switch, 0) + self.moved[server, rail]
        return found


def clusters(rails: pa.Table) -> Iterator[Rails]:
    """Yield the servers of each cluster from rows of metrics.rail_seconds, sorted by their grain."""
    cluster, server = (np.asarray(rails[name].to_pylist(), dtype=object) for name in ("cluster", "server"))
    if not len(rails):
        return
    for low, high in pairwise([0, *(np.flatnonzero(cluster[1:] != cluster[:-1]) + 1).tolist(), len(rails)]):
        part = rails.slice(low, high - low)
        names, owners = np.unique(server[low:high], return_inverse=True)
        rail = part["rail"].to_numpy() - 1
        moved = np.zeros((len(names), int(rail.max()) + 1, HOUR), np.int64)
        observed, touched = np.ones((len(names), HOUR), bool), np.zeros((len(names), HOUR), bool)
        switches = {}
        series = [part[name].combine_chunks() for name in ("seconds", "bytes", "gap_seconds")]
        for row, (owner, number, switch) in enumerate(
            zip(owners.tolist(), rail.tolist(), part["switch"].to_pylist(), strict=True)
        ):
            seconds, values, gaps = (one[row].values.to_numpy() for one in series)
            # An owner that stands for two servers has two ports on a rail.
            moved[owner, number, seconds] += values
            touched[owner, seconds] = True
            observed[owner, gaps] = False
            if values.any():
                switches[owner, number] = switch
        begun, going = np.maximum.accumulate(touched, axis=1), np.maximum.accumulate(touched[:, ::-1], axis=1)[:, ::-1]
        # Before the first and after the last window nothing was polled, which is not the same as no bytes.
        observed &= begun & going
        yield Rails(str(cluster[low]), names.tolist(), moved, observed, switches)


def peaks(series: Ints) -> Ints:
    """Return the 99th percentile of each row, rounded down, or its largest value where that is zero; 1 for zeros."""
    ascending = np.sort(series, axis=-1)
    found = ascending[..., 99 * (series.shape[-1] - 1) // 100]
    # Callers divide by it.
    return np.maximum(np.where(found > 0, found, ascending[..., -1]), 1)[..., np.newaxis]


def around(series: Floats, half: Ints | int) -> Floats:
    """Return the mean of each value with so many before and after it, as far as there are any."""
    sums = np.concatenate([[0.0], np.cumsum(series)])
    at = np.arange(len(series))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(series))
    return np.asarray((sums[high] - sums[low]) / (high - low))
