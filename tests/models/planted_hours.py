"""Simulated hours with planted jobs, in the form of the input of `traffic_groups` and `traffic_jobs`.

The rows of the ports come from the sample; a computation apart from the models gives their bytes to seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.planted_jobs import Hour, simulate, truth_of
from tests.models.seconds import seconds
from warehouse.sample.port_files import refresh_ms

CLUSTER = "cluster_sample_traffic"
HOUR_UTC = np.datetime64("2024-05-23T16:00:00", "us")
LEAST = 1_000_000_000
"""Bytes of an hour below which a server is idle: the models do not see it."""
AT_ONCE = 8
GAP_MS = 10_000
"""A second that a longer window overlaps is in a gap."""
HOUR = 3600

Ints = NDArray[np.int64]


def planted(seed: int, **size: Any) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return the rails of a simulated hour, and its truth."""
    hour = simulate(seed, **size)
    return rails(hour), truth_of(hour.plan)


def phases(seed: int, switches: Iterable[str]) -> pa.Table:
    """Return the rows of `metrics.sampling_quality` for these switches of the simulated hour of a seed."""
    rows = [
        {"cluster": CLUSTER, "switch": name, "refresh_phase_ms": refresh_ms(name, seed), "refresh_spread_ms": 0}
        for name in sorted(set(switches))
    ]
    return pa.Table.from_pylist(rows)


def rails(hour: Hour) -> pa.Table:
    """Return the series of each rail of each busy owner, sorted by server and rail.

    An owner of two servers has two ports on a rail, whose bytes are added.
    """
    owners = sorted({port.owner for port in hour.ports})
    key = [(owners.index(port.owner), port.rail) for port in hour.ports]
    names = sorted(set(key))
    row_of = np.array([names.index(one) for one in key])
    switch = dict(zip(key, (port.switch for port in hour.ports), strict=True))
    moved, longest = np.zeros((2, len(names), HOUR), np.int64)
    edges = np.searchsorted(hour.port, np.arange(0, len(hour.ports) + AT_ONCE, AT_ONCE)).tolist()
    for low, high in pairwise(edges):  # some ports at a time: their arrays fit in the cache
        port, times, delta = (one[low:high] for one in (hour.port, hour.offset_ms, hour.moved))
        found = seconds(port, times, delta, np.zeros_like(delta))
        at = row_of[found["file_key"]], found["second"]
        np.add.at(moved, at, found["in_bytes"])
        np.maximum.at(longest, at, found["longest_ms"])
    total = np.bincount([one for one, _ in names], moved.sum(axis=1), len(owners))
    kept = [place for place, (owner, _) in enumerate(names) if total[owner] >= LEAST]
    known = [(owners[names[one][0]], names[one][1] + 1, switch[names[one]]) for one in kept]
    return table(known, moved[kept], longest[kept])


def table(names: list[tuple[str, int, str]], moved: Ints, longest: Ints) -> pa.Table:
    """Return (server, rail, switch) of each row with the bytes of its seconds."""
    known = {
        "cluster": pa.array([CLUSTER] * len(names), pa.string()),
        "server": pa.array([server for server, _, _ in names], pa.string()),
        "hour_utc": pa.array([HOUR_UTC] * len(names), pa.timestamp("us")),
        "rail": pa.array([rail for _, rail, _ in names], pa.int32()),
        "switch": pa.array([switch for _, _, switch in names], pa.string()),
    }
    return with_seconds(pa.table(known), moved, longest)


def with_seconds(known: pa.Table, moved: Ints, longest: Ints) -> pa.Table:
    """Return the rails with these bytes and windows, rails x seconds; a second without a window has no row."""
    second = np.broadcast_to(np.arange(HOUR), longest.shape)
    for name, values, chosen, kind in (
        ("seconds", second, longest > 0, pa.int32()),
        ("bytes", moved, longest > 0, pa.int64()),
        ("gap_seconds", second, longest > GAP_MS, pa.int32()),
    ):
        offsets = pa.array(np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]), pa.int32())
        known = known.append_column(name, pa.ListArray.from_arrays(offsets, pa.array(values[chosen], kind)))
    return known


def dense(rails: pa.Table) -> tuple[Ints, Ints]:
    """Return the bytes of the rails, and windows as long as they are told apart, rails x seconds."""
    second = rails["seconds"].combine_chunks()
    row = np.repeat(np.arange(len(rails)), second.value_lengths().to_numpy())
    moved, longest = np.zeros((2, len(rails), HOUR), np.int64)
    at = row, second.flatten().to_numpy()
    moved[at] = rails["bytes"].combine_chunks().flatten().to_numpy()
    longest[at] = 1000
    gaps = rails["gap_seconds"].combine_chunks()
    longest[np.repeat(np.arange(len(rails)), gaps.value_lengths().to_numpy()), gaps.flatten().to_numpy()] = GAP_MS + 1
    return moved, longest
