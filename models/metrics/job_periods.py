"""---
about: Iterations of each group of servers that train together, from the sum over its servers. Read metrics.traffic_jobs.
partition: hour_utc
reads: [metrics.traffic_groups, metrics.traffic_periods, metrics.rail_seconds, metrics.sampling_quality]  # check, filter
grain: [cluster, hour_utc, group_id]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  group_id: INTEGER [1] the group in metrics.traffic_groups
  servers: INTEGER [1] members of the group
  leaves: INTEGER [1] loaded leaves on which they moved bytes
  bytes: BIGINT [B] bytes received and sent in the hour
  period_seconds: DOUBLE [s] mean time from iteration to iteration; NULL where the period is not resolved
  period_error_seconds: DOUBLE [s] standard error of the period
  alias_seconds: DOUBLE [s] period of faster iterations that would look the same; NULL where they are excluded
  coherence: DOUBLE [1] coherence of its leaves at the period, 1 if all are in phase, 1/leaves by chance; NULL for one leaf
  alias_coherence: DOUBLE [1] coherence of its leaves at the alias of the period, 1 / (1 - 1/period)
  iterations: INTEGER [1] iterations in its active time
  duty_cycle: DOUBLE [1] share of the time above half of the pulses' height; NULL below 4 s
  bytes_per_iteration: BIGINT [B] bytes received and sent in an iteration
  resolved_from: VARCHAR server (half of its servers or more show the period alone) or group
  unresolved: VARCHAR why no period is resolved, as in metrics.traffic_periods; NULL where one is
  clock_of: INTEGER [1] the largest job that it follows in step; NULL where there is none
  lag_seconds: DOUBLE [s] time by which it is later than that job; NULL where its rails do not agree in one
time: hour_utc
dimensions: [cluster, group_id, resolved_from, unresolved]
measures:
  servers: sum except over hour_utc
  leaves: max
  bytes, iterations: sum
  others: none
checks:
  - (period_seconds is null) = (unresolved is not null)
  - (period_seconds is null) = (resolved_from is null)
  - resolved_from in ('server', 'group') or resolved_from is null
  - period_seconds between 1 and 300 or period_seconds is null
  - alias_seconds between 1 and 2 or alias_seconds is null
  - coherence between 0 and 1 or coherence is null
  - (coherence is null) = (alias_coherence is null)
  - clock_of is not null or lag_seconds is null
  - referenced(cluster, hour_utc, group_id) by metrics.traffic_groups(cluster, hour_utc, group_id)
  # each group is a job, with all bytes of its servers
  - none: WITH moved AS (SELECT g.cluster, g.hour_utc, g.group_id, sum(h.rx_bytes + h.tx_bytes)::BIGINT AS bytes
      FROM metrics.traffic_groups AS g JOIN metrics.server_hour AS h USING (cluster, server, hour_utc) GROUP BY ALL)
      SELECT m.group_id, m.bytes, t.bytes FROM moved AS m LEFT JOIN this AS t USING (cluster, hour_utc, group_id)
      WHERE t.bytes IS DISTINCT FROM m.bytes
sources: docs/metrics/periods.md
---"""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby

import numpy as np
import pyarrow as pa

from warehouse.signals.job import Leaf, iterations_of
from warehouse.signals.series import clusters
from warehouse.signals.together import clocks, window

MOST = 0.9
STEADY_MS = 100
COLUMNS = {
    "cluster": pa.string(),
    "hour_utc": pa.timestamp("us"),
    "group_id": pa.int32(),
    "servers": pa.int32(),
    "leaves": pa.int32(),
    "bytes": pa.int64(),
    "period_seconds": pa.float64(),
    "period_error_seconds": pa.float64(),
    "alias_seconds": pa.float64(),
    "coherence": pa.float64(),
    "alias_coherence": pa.float64(),
    "iterations": pa.int32(),
    "duty_cycle": pa.float64(),
    "bytes_per_iteration": pa.int64(),
    "resolved_from": pa.string(),
    "unresolved": pa.string(),
    "clock_of": pa.int32(),
    "lag_seconds": pa.float64(),
}


def model(groups: pa.Table, periods: pa.Table, rails: pa.Table, quality: pa.Table) -> pa.Table:
    """Analyze the groups of each cluster."""
    phase = {
        (one["cluster"], one["switch"]): one["refresh_phase_ms"] / 1000
        for one in quality.to_pylist()
        # Refreshes that wander have no phase that could tell a wave from its alias.
        if one["refresh_phase_ms"] is not None and one["refresh_spread_ms"] <= STEADY_MS
    }
    alone = {(one["cluster"], one["server"]): one["period_seconds"] for one in periods.to_pylist()}
    members: dict[str, dict[int, list[str]]] = {}
    for (cluster, group), rows in groupby(groups.to_pylist(), lambda row: (row["cluster"], row["group_id"])):
        members.setdefault(cluster, {})[group] = [row["server"] for row in rows]
    found = []
    for one in clusters(rails):
        jobs = members.get(one.cluster, {})
        place = {server: number for number, server in enumerate(one.servers)}
        numbers = [[place[server] for server in servers] for servers in jobs.values()]
        ids = list(jobs)
        for job, servers, follows in zip(ids, numbers, clocks(one, numbers, window(one.observed)), strict=True):
            moved, by_switch = one.moved[servers].sum(axis=0), one.by_switch(servers)
            iterations = iterations_of(
                moved,
                # One server with a gap must not take the second from all.
                np.asarray(one.observed[servers].mean(axis=0) >= MOST),
                window(one.observed),
                [alone[one.cluster, one.servers[server]] for server in servers],
                [
                    Leaf(phase[one.cluster, switch], seconds)
                    for switch, seconds in by_switch.items()
                    if (one.cluster, switch) in phase
                ],
            )
            row = {
                "cluster": one.cluster,
                "hour_utc": groups["hour_utc"][0].as_py(),
                "group_id": job,
                "servers": len(servers),
                "leaves": len(by_switch),
                "bytes": int(moved.sum()),
                "clock_of": ids[follows.of] if follows else None,
                "lag_seconds": follows.lag_seconds if follows else None,
            }
            found.append(row | asdict(iterations))
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in COLUMNS.items()})
