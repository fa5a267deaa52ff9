"""---
about: Period of each server's traffic pulses, found by autocorrelation of its bytes per second, or the reason why no period is resolved. One iteration of a training job is one pulse.
partition: hour_utc
reads: [metrics.server_hour, metrics.rail_seconds]  # check, grain
grain: [cluster, server, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  period_seconds: DOUBLE [s] mean time from pulse to pulse; NULL where the period is not resolved
  strength: DOUBLE [1] autocorrelation at candidate_seconds, 1 for pulses that repeat exactly
  duty_cycle: DOUBLE [1] share of the time above half of the pulses' height; NULL where no period is resolved
  peak_over_mean: DOUBLE [1] 99th percentile of bytes per second over their mean
  pulses: INTEGER [1] pulses with a known start; NULL where no period is resolved
  scatter_seconds: DOUBLE [s] spread of the times from start to start, 1.4826 x the median absolute deviation
  candidate_seconds: DOUBLE [s] period at the autocorrelation's peak, accepted or rejected
  unresolved: VARCHAR why no period is resolved, idle, aperiodic, fast, few_cycles, shallow or unsteady; NULL where a period is resolved
  observed_seconds: INTEGER [s] seconds of the hour outside gaps
  starts_ms: INTEGER[] start of each pulse, milliseconds of the hour; NULL where no period is resolved
time: hour_utc
dimensions: [cluster, server, unresolved]
measures:
  period_seconds, candidate_seconds, scatter_seconds: none
  strength: none
  duty_cycle: none, shown in %
  peak_over_mean: max
  pulses: sum except over server
  observed_seconds: sum except over server
checks:
  - (period_seconds is null) = (unresolved is not null)
  - period_seconds between 4 and 300 or period_seconds is null
  - unresolved in ('idle', 'aperiodic', 'fast', 'few_cycles', 'shallow', 'unsteady') or unresolved is null
  - duty_cycle between 0 and 1 or duty_cycle is null
  - len(starts_ms) = pulses or pulses is null
  - none: SELECT cluster, server FROM metrics.server_hour ANTI JOIN this USING (cluster, server, hour_utc)
sources: docs/metrics/periods.md
---"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warehouse.signals.period import period_of
from warehouse.signals.series import HOUR, clusters

COLUMNS = {
    "period_seconds": pa.float64(),
    "strength": pa.float64(),
    "duty_cycle": pa.float64(),
    "peak_over_mean": pa.float64(),
    "pulses": pa.int32(),
    "scatter_seconds": pa.float64(),
    "candidate_seconds": pa.float64(),
    "unresolved": pa.string(),
    "observed_seconds": pa.int32(),
    "starts_ms": pa.list_(pa.int32()),
}


def model(servers: pa.Table, rails: pa.Table) -> pa.Table:
    """Analyze every server of the hour, the bytes of all its rails together; servers without a series are idle."""
    series = {
        (one.cluster, server): (moved.sum(axis=0), observed)
        for one in clusters(rails)
        for server, moved, observed in zip(one.servers, one.moved, one.observed, strict=True)
    }
    idle = (np.zeros(HOUR, np.int64), np.zeros(HOUR, bool))
    names = zip(servers["cluster"].to_pylist(), servers["server"].to_pylist(), strict=True)
    found = [period_of(*series.get(name, idle)) for name in names]
    table = servers.select(["cluster", "server", "hour_utc"])
    for name, kind in COLUMNS.items():
        table = table.append_column(name, pa.array([getattr(one, name) for one in found], kind))
    return table
