"""---
about: Groups of servers whose traffic rises and falls together, that is jobs as the network sees them. Servers are connected by correlations of at least 0.6.
partition: hour_utc
reads: [metrics.traffic_periods, metrics.busy_server_second]
grain: [cluster, hour_utc, group_id, server]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  group_id: INTEGER [1] 1, 2, ... in order of the first server's name
  server: VARCHAR GPU-n
  servers: INTEGER [1] servers of the group, two or more
  period_seconds: DOUBLE [s] median of its servers' periods; NULL where no period is resolved
  correlation: DOUBLE [1] mean correlation with the other servers of the group
time: hour_utc
dimensions: [cluster, group_id, server]
measures:
  servers: max                # the same in every row of a group
  period_seconds: none
  correlation: mean
checks:
  - unique(cluster, hour_utc, server)
  - references(cluster, server, hour_utc) -> metrics.traffic_periods(cluster, server, hour_utc)
  - servers >= 2 and group_id >= 1
  - correlation <= 1
sources: docs/metrics/periods.md
---"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from statistics import median

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HOUR = 3600
GAP_MS = 10_000
"""A second that a longer window overlaps counts as not observed."""
LEVELS = 1000
"""Number of levels that bytes are rounded to. Sums of products of small integers are exact in any order."""
SMOOTH = (1, 4, 6, 4, 1)
"""Weights of neighboring seconds: ports show the same pulse up to a second sooner or later."""
TOGETHER = 0.6
COMMON = 120
"""Two servers are compared if both were observed for this many seconds."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Server = tuple[str, str]


def model(periods: pa.Table, seconds: pa.Table) -> pa.Table:
    """Group the servers of each cluster."""
    keys = zip(periods["cluster"].to_pylist(), periods["server"].to_pylist(), strict=True)
    period_of = dict(zip(keys, periods["period_seconds"].to_pylist(), strict=True))
    rows: list[tuple[str, int, str, int, float | None, float]] = []
    for cluster, of_cluster in groupby(per_server(seconds), lambda one: one[0][0]):
        names, waves, observed = zip(*((name[1], *wave(*series)) for name, series in of_cluster), strict=True)
        alike = correlations(np.stack(waves), np.stack(observed))
        for number, members in enumerate(connected(alike >= TOGETHER), start=1):
            known = [period_of[cluster, names[one]] for one in members if period_of[cluster, names[one]] is not None]
            period = round(median(known), 4) if known else None
            for one in members:
                others = (alike[one, members].sum() - alike[one, one]) / (len(members) - 1)
                rows.append((cluster, number, names[one], len(members), period, round(float(others), 3)))
    hour = periods["hour_utc"][0] if len(periods) else None
    kinds = (pa.string(), pa.int32(), pa.string(), pa.int32(), pa.float64(), pa.float64())
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    columns.insert(1, pa.array([hour] * len(rows), pa.timestamp("us")))
    return pa.table(columns, ["cluster", "hour_utc", "group_id", "server", "servers", "period_seconds", "correlation"])


def per_server(seconds: pa.Table) -> Iterator[tuple[Server, tuple[Ints, Ints]]]:
    """Yield for each server the bytes of each second of the hour, and 1 for each observed second."""
    cluster, server = (seconds[name].combine_chunks().dictionary_encode() for name in ("cluster", "server"))
    new = [np.diff(one.indices.to_numpy(), prepend=-1) != 0 for one in (cluster, server)]
    edges = [*np.flatnonzero(new[0] | new[1]).tolist(), len(seconds)]
    second, moved, longest = (seconds[name].to_numpy() for name in ("second", "bytes", "longest_ms"))
    for low, high in pairwise(edges):
        rows = slice(low, high)
        at = second[rows]
        total, observed = np.zeros(HOUR, np.int64), np.zeros(HOUR, np.int64)
        total[at] = moved[rows]
        observed[at.min() : at.max() + 1] = 1
        observed[at[longest[rows] > GAP_MS]] = 0
        yield (cluster[low].as_py(), server[low].as_py()), (total, observed)


def wave(moved: Ints, observed: Ints) -> tuple[Ints, Ints]:
    """Return the series as smoothed small integers around zero, 0 where not observed, and the observed seconds."""
    values = moved[observed > 0]
    if not values.any():
        return np.zeros_like(moved), observed
    peak = int(np.sort(values)[99 * (len(values) - 1) // 100]) or int(values.max())
    levels = np.minimum(moved, peak) * LEVELS // peak * observed
    around_zero = (levels - round(int(levels.sum()) / len(values))) * observed
    return np.convolve(around_zero, SMOOTH, "same") * observed, observed


def correlations(waves: Ints, observed: Ints) -> Floats:
    """Return Pearson's correlation of every two servers over the seconds in which both were observed."""
    wave, there = waves.astype(np.float64), observed.astype(np.float64)
    products, squares, common = wave @ wave.T, wave**2 @ there.T, there @ there.T
    scale = np.sqrt(squares) * np.sqrt(squares.T)
    alike: Floats = np.where((scale > 0) & (common >= COMMON), products / np.where(scale > 0, scale, 1), 0)
    return alike


def connected(near: NDArray[np.bool_]) -> list[list[int]]:
    """Return the groups of two or more connected servers, ordered by their first server."""
    near = near | np.eye(len(near), dtype=bool)
    first = np.arange(len(near))
    while True:  # every server takes the smallest number that a neighbor has
        known = np.where(near, first, len(near)).min(axis=1)
        if (known == first).all():
            break
        first = known
    groups = [np.flatnonzero(first == one).tolist() for one in np.unique(first)]
    return [members for members in groups if len(members) > 1]
