"""Truth of planted traffic jobs: a row for each job and owner of ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from bench.planted_jobs import TrafficJob, TrafficPlan
    from warehouse.sample.fabric import Fabric

SEEN = 254.4
"""Second of the hour at which the opening gap has ended on all switches: nobody sees single iterations before."""

Row = dict[str, Any]


def traffic_rows(fabric: Fabric, plan: TrafficPlan) -> list[Row]:
    """Return the members of all jobs, by job and owner.

    - `server`: the owner of the ports as the workbook tells it, with `members` servers.
    - `rails`, `leaves`: positions of its leaves in their group, from 1, and their names.
    - `period_seconds`, `iterations`: mean length and number of the job's iterations that began and ended between
      `SEEN`, or the job's start, and its end.
    - `duty`: part of an iteration during which a rail moves bytes; `steady`: part of its bytes that moves all the time.
    - `bytes_per_iteration`: bytes in and out of the owner's ports.
    - `clock_of`: the job whose iterations this one repeats; `lag_seconds`: delay of this member behind the iterations
      of `clock_of`, or of its own job.
    - `start_second`, `end_second`: seconds of the hour within which the member moves bytes.
    """
    rows: dict[tuple[str, str], Row] = {}
    for job in plan.jobs:
        period, iterations = _period(job)
        for place, server in enumerate(job.servers):
            key = job.job_id, plan.owners[server]
            row = rows.setdefault(
                key,
                {
                    "job_id": job.job_id,
                    "kind": job.kind,
                    "server": plan.owners[server],
                    "members": 0,
                    "rails": [rail + 1 for rail in job.rails],
                    "leaves": [fabric.nics[server][rail].switch for rail in job.rails],
                    "period_seconds": period,
                    "iterations": iterations,
                    "duty": job.duty,
                    "steady": job.steady,
                    "bytes_per_iteration": 0,
                    "clock_of": job.clock_of,
                    "lag_seconds": round(job.lag + job.lags[place], 3),
                    "start_second": max(job.begin, job.begins[place]),
                    "end_second": min(job.end, HOUR),
                },
            )
            row["members"] += 1
            row["bytes_per_iteration"] += round(sum(job.bytes_per_iteration))
    return list(rows.values())


def _period(job: TrafficJob) -> tuple[float | None, int]:
    seen = job.starts[(job.starts >= max(SEEN, job.begin)) & (job.starts <= job.end)]
    if len(seen) < 2:
        return None, 0
    return round(float(np.diff(seen).mean()), 6), len(seen) - 1
