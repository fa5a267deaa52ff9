"""---
about: Groups of servers whose traffic speeds up and slows down together, that is jobs as the network sees them. A link needs a score that chance does not explain.
partition: hour_utc
reads: [metrics.traffic_periods, metrics.rail_seconds]  # check
grain: [cluster, hour_utc, group_id, server]
columns:
  cluster: VARCHAR the cluster's folder
  hour_utc: TIMESTAMP the hour
  group_id: INTEGER [1] 1, 2, ... in order of the first server's name
  server: VARCHAR GPU-n; an owner that stands for two servers is one member
  servers: INTEGER [1] servers of the group, two or more
  period_seconds: DOUBLE [s] median of its servers' periods; NULL where no period is resolved, see metrics.traffic_jobs
  correlation: DOUBLE [1] mean cosine of the differences of phases with the other servers of the group, 1 for equal waves
  lag_seconds: DOUBLE [s] time by which the server is later than the others
  scale_seconds: INTEGER [s] length of the window in which the group is coherent, the observed time or a third of it
  signature_match: BOOLEAN whether its bytes on each rail agree with those of another member to a thousandth
  p_value: DOUBLE [1] bound of the chance that an hour of unrelated servers has a link as strong as the weakest one of the group
time: hour_utc
dimensions: [cluster, group_id, server, signature_match]
measures:
  servers, scale_seconds, p_value: max                # the same in every row of a group
  period_seconds: none
  correlation: mean except over group_id
  lag_seconds: none                                   # later than others of the same group
checks:
  - unique(cluster, hour_utc, server)
  - references(cluster, server, hour_utc) -> metrics.traffic_periods(cluster, server, hour_utc)
  - servers >= 2 and group_id >= 1
  - correlation <= 1 and p_value between 0 and 0.01
  - lag_seconds between -16 and 16
sources: docs/metrics/periods.md
---"""

from __future__ import annotations

from statistics import median

import pyarrow as pa

from warehouse.signals.series import clusters
from warehouse.signals.together import together

COLUMNS = {
    "cluster": pa.string(),
    "hour_utc": pa.timestamp("us"),
    "group_id": pa.int32(),
    "server": pa.string(),
    "servers": pa.int32(),
    "period_seconds": pa.float64(),
    "correlation": pa.float64(),
    "lag_seconds": pa.float64(),
    "scale_seconds": pa.int32(),
    "signature_match": pa.bool_(),
    "p_value": pa.float64(),
}


def model(periods: pa.Table, rails: pa.Table) -> pa.Table:
    """Group the servers of each cluster."""
    keys = zip(periods["cluster"].to_pylist(), periods["server"].to_pylist(), strict=True)
    period_of = dict(zip(keys, periods["period_seconds"].to_pylist(), strict=True))
    hour = periods["hour_utc"][0].as_py() if len(periods) else None
    rows = []
    for one in clusters(rails):
        for number, found in enumerate(together(one), start=1):
            members = [one.servers[member] for member in found.members]
            known = [period for server in members if (period := period_of[one.cluster, server]) is not None]
            of_group = {
                "cluster": one.cluster,
                "hour_utc": hour,
                "group_id": number,
                "servers": len(members),
                "period_seconds": round(median(known), 4) if known else None,
                "scale_seconds": found.seconds,
                # Two digits: more would claim an accuracy that an upper bound does not have.
                "p_value": float(f"{found.p_value:.2g}"),
            }
            rows += [
                of_group
                | {"server": server, "correlation": round(cosine, 3), "lag_seconds": lag, "signature_match": match}
                for server, cosine, lag, match in zip(members, found.coherence, found.lags, found.matches, strict=True)
            ]
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})
