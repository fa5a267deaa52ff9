"""List of tasks without a log, as Slurm prints it: one job for a part of its time, and one on a misspelled server."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from warehouse.sample import clock
from warehouse.sample.names import server_name

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.plan import Plan

TASK, MISSPELLED = "48213", "48214"
_FROM, _UNTIL = timedelta(seconds=90), timedelta(seconds=240)
_OFFSET = timedelta(hours=8)


def write_task_list(path: Path, plan: Plan) -> list[dict[str, Any]]:
    """Write `tasks.csv`, if a planted job has no log; return its true rows."""
    logged = {task.job for task in plan.tasks}
    job = next((job for job in plan.jobs if job.name not in logged), None)
    if job is None:
        return []
    hour = datetime.fromisoformat(clock.utc_text(clock.hour_start(0, plan.options)))
    start, end = hour + _FROM, hour + _UNTIL
    hosts = ",".join(f"{number:03}" for number in job.servers)
    lines = [
        "JobID|NodeList|Start|End",
        f"{TASK}|gpu[{hosts}]|{_local(start)}|{_local(end)}",
        f"{TASK}.batch|gpu{job.servers[0]:03}|{_local(start)}|{_local(end)}",
        f"{MISSPELLED}|gpv{job.servers[0]:03}|{_local(start)}|Unknown",
    ]
    path.write_bytes(("\n".join(lines) + "\n").encode())
    servers = [server_name(number) for number in job.servers]
    return [{"task": TASK, "job": job.name, "servers": servers, "start_utc": str(start), "end_utc": str(end)}]


def _local(time: datetime) -> str:
    return f"{time + _OFFSET:%Y-%m-%dT%H:%M:%S}+0800"
