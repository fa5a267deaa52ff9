"""Writer of a whole sample; the truth is written last.

Beside the data are a readme, stray files that a reader must ignore, and a list of tasks without a log, in the form of
Slurm's: one job for a part of its time, and one on a misspelled server.

`truth.json` uses the names of the published tables; hours and times are UTC text. It holds:

- `options`, `cluster`, `hours`, `files` (port CSVs and their rows);
- `ports`: totals of each file; bytes corrected for wraps, and `_raw` bytes as stored;
- `nic_ports`, `uplinks`, `suspects`: expected rows of `topology.nic_ports`, `topology.uplinks` and
  `metrics.suspect_links`;
- `switch_phases`: time in each second at which a switch refreshes its counters;
- `unlisted_ports`, `jobs`, `traps`: facts that no file states, and what else is planted for findings;
- `tasks`: training tasks with logs: ranks, ports, paths, iterations, restarts, expected bytes;
- `listed_tasks`: tasks of `tasks.csv`, without a log;
- `hour_tables`: totals of the four hour-level tables;
- `utilization`: totals of each metric, oddities of its files, and the power of servers;
- `acme_jobs`, `itp_jobs`: totals of the job traces, by cluster.

`truth/task_iteration.parquet` holds the bytes of each NIC of a task in each iteration.
`truth/second.parquet` holds the physical bytes of every port and second; seconds without bytes are absent.
The stored rows differ from it as real ones do. A counter is read up to a second late. Bytes after the last poll
of an hour are counted in the first row of the next hour.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

from warehouse.sample import truth
from warehouse.sample.basics import HOUR, Row, hour_folder, hour_utc, second_utc, server_name
from warehouse.sample.fabric import write_workbook
from warehouse.sample.hour_tables import write_hour_tables
from warehouse.sample.job_traces import write_acme, write_itp
from warehouse.sample.jobs import Job
from warehouse.sample.options import SampleOptions
from warehouse.sample.plan import Plan, make_plan
from warehouse.sample.port_files import refresh_ms, write_switch
from warehouse.sample.task_logs import write_logs
from warehouse.sample.utilization import write_utilization

README = """\
# A synthetic release

Nothing here was measured. These files were generated in the form of a published trace of a GPU cluster: a
topology workbook, and one CSV an hour for each switch port. The machines, jobs and faults are made up.

What was planted is in `truth.json` and `truth/` of the folder above this one: read the files here as if you
did not have it, then compare.
"""

# The signatures of real files of these kinds; nothing reads the rest.
STRAYS = {
    "taskinfo/.DS_Store": b"\x00\x00\x00\x01Bud1" + bytes(6140),
    f"trafficinfo/{hour_folder(0)}/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    f"trafficinfo/{hour_folder(0)}/notes.txt": b"copied from the collector, see the other folder for the logs\n",
}


def write_extras(root: Path) -> None:
    """Write the readme, and stray files that a reader must ignore."""
    (root.parent / "README.md").write_bytes(README.encode())
    for path, content in STRAYS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


TASK, MISSPELLED = "48213", "48214"
_FROM, _UNTIL = timedelta(seconds=90), timedelta(seconds=240)
_OFFSET = timedelta(hours=8)


def write_task_list(path: Path, plan: Plan) -> list[Row]:
    """Write `tasks.csv`, if a planted job has no log; return its true rows."""
    logged = {task.job for task in plan.tasks}
    job = next((job for job in plan.jobs if job.name not in logged), None)
    if job is None:
        return []
    hour = datetime.fromisoformat(hour_utc(0))
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


MADE_BY = "warehouse sample"
VERSION = 3


def write_release(directory: Path, options: SampleOptions) -> Path:
    """Write the whole sample; see `warehouse.sample.write_sample`."""
    cluster = options.cluster
    options = options.resolved()
    truth_path = directory / "truth.json"
    _clear(directory)
    # First, so that the folder of an interrupted run is known as a sample and may be replaced.
    _write_json(truth_path, {"made_by": MADE_BY, "complete": False})
    plan = make_plan(options)
    root = directory / "zhejiang" / cluster
    root.mkdir(parents=True)
    write_workbook(root / f"{cluster}.xlsx", plan.fabric)
    ports = [
        row for switch in plan.fabric.switches.values() for row in write_switch(root / "trafficinfo", switch, plan)
    ]
    hour_tables = write_hour_tables(root / "trafficinfo", plan) if options.hour_tables else []
    for task in plan.tasks:
        write_logs(root / "taskinfo" / task.name, task, plan.fabric, options)
    listed = write_task_list(root / "tasks.csv", plan)
    write_extras(root)
    utilization = write_utilization(directory / "acme" / "data", options.seed) if options.utilization else None
    acme_jobs = write_acme(directory / "acme", options.seed) if options.jobs else {}
    itp_jobs = write_itp(directory / "itp", options.seed) if options.jobs else {}
    (directory / "truth").mkdir()
    truth.write_seconds(directory / "truth" / "second.parquet", cluster, plan)
    path = directory / "truth" / "task_iteration.parquet"
    iterations = truth.write_iterations(path, plan) if plan.tasks else 0
    facts = {
        "made_by": MADE_BY,
        "complete": True,
        "version": VERSION,
        "options": {**asdict(options), "first_hour": hour_folder(0)},
        "cluster": cluster,
        "hours": [
            {"folder": hour_folder(hour), "hour_utc": hour_utc(hour), "seconds": options.seconds}
            for hour in range(options.hours)
        ],
        "files": {"count": len(ports), "rows": sum(row["rows"] for row in ports)},
        "ports": ports,
        "nic_ports": truth.nic_ports(plan.fabric),
        "uplinks": truth.uplink_rows(plan),
        "suspects": truth.suspects(plan.fabric, plan.faults) + truth.other_ends(plan),
        "switch_phases": [
            {"switch": one.name, "phase_ms": refresh_ms(one.name, options.seed)}
            for one in plan.fabric.switches.values()
        ],
        "unlisted_ports": truth.unlisted_ports(plan.fabric),
        "jobs": [_job(job, plan) for job in plan.jobs],
        "tasks": [truth.task_row(task, plan) for task in plan.tasks],
        "listed_tasks": listed,
        "task_iteration_rows": iterations,
        "hour_tables": hour_tables,
        "utilization": utilization,
        "acme_jobs": acme_jobs,
        "itp_jobs": itp_jobs,
        "traps": truth.traps(plan),
    }
    _write_json(truth_path, facts)
    return truth_path


def _job(job: Job, plan: Plan) -> Row:
    options = plan.options
    hours = [
        hour_utc(hour)
        for hour in range(options.hours)
        if job.start < hour * HOUR + options.seconds and job.end > hour * HOUR
    ]
    return {
        "job": job.name,
        "servers": [server_name(number) for number in job.servers],
        "rails": job.rails,
        "period_seconds": job.period_ms / 1000,
        "duty_cycle": job.on_ms / job.period_ms,
        "start_utc": second_utc(job.start),
        "end_utc": second_utc(job.end),
        "hours": hours,
    }


def _clear(directory: Path) -> None:
    """Remove an older sample, and nothing else. Raise FileExistsError if the folder holds anything else."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        if not _is_sample(directory):
            raise FileExistsError(f"{directory} exists and is not a sample: choose an empty or a new folder.")
        # Only what a sample writes: a user may have put a build beside it.
        for part in ("truth", "zhejiang", "acme", "itp"):
            if (directory / part).exists():
                shutil.rmtree(directory / part)
    directory.mkdir(parents=True, exist_ok=True)


def _is_sample(directory: Path) -> bool:
    try:
        found = json.loads((directory / "truth.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("made_by") == MADE_BY


def _write_json(path: Path, value: Row) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_bytes((text + "\n").encode())
