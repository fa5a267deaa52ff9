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
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np

from warehouse.sample.basics import (
    FIRST,
    HOUR,
    SLOTS,
    START_MS,
    Row,
    SampleOptions,
    hour_folder,
    hour_utc,
    second_utc,
    server_name,
)
from warehouse.sample.fabric import (
    RECEIVING,
    SENDING,
    WRONG_PORT,
    Fabric,
    nic_ports,
    unlisted_ports,
    write_workbook,
)
from warehouse.sample.hour_tables import write_hour_tables
from warehouse.sample.jobs import Job
from warehouse.sample.plan import (
    BURST_SECONDS,
    FAVORED_PERCENT,
    LESS_PERCENT,
    Faults,
    Plan,
    formula_spine_port,
    make_plan,
    other_cable,
    spine_port,
    steady_servers,
)
from warehouse.sample.port_files import refresh_ms, write_switch
from warehouse.sample.task_logs import write_logs
from warehouse.sample.traces import write_acme, write_itp, write_utilization
from warehouse.sample.truth_tasks import task_row, write_iterations

README = """\
# A synthetic release

Nothing here was measured. These files were generated in the form of a published trace of a GPU cluster: a
topology workbook, and one CSV an hour for each switch port. The machines, jobs and faults are made up.

What was planted is in `truth.json` and `truth/` of the folder above this one: read the files here as if you
did not have it, then compare.
"""

STRAYS = {
    "../README.md": README.encode(),
    # The signatures of real files of these kinds; nothing reads the rest.
    "taskinfo/.DS_Store": b"\x00\x00\x00\x01Bud1" + bytes(6140),
    f"trafficinfo/{hour_folder(0)}/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    f"trafficinfo/{hour_folder(0)}/notes.txt": b"copied from the collector, see the other folder for the logs\n",
}


TASK, MISSPELLED = "48213", "48214"


def write_task_list(path: Path, plan: Plan) -> list[Row]:
    """Write `tasks.csv`, if a planted job has no log; return its true rows."""
    logged = {task.job for task in plan.tasks}
    job = next((job for job in plan.jobs if job.name not in logged), None)
    if job is None:
        return []
    start, end = 90, 240  # for a part of its time
    local = [f"{FIRST + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S%z}" for second in (start, end)]
    hosts = ",".join(f"{number:03}" for number in job.servers)
    lines = [
        ["JobID", "NodeList", "Start", "End"],
        [TASK, f"gpu[{hosts}]", *local],
        [f"{TASK}.batch", f"gpu{job.servers[0]:03}", *local],
        [MISSPELLED, f"gpv{job.servers[0]:03}", local[0], "Unknown"],
    ]
    path.write_bytes("".join("|".join(line) + "\n" for line in lines).encode())
    return [
        {
            "task": TASK,
            "job": job.name,
            "servers": [server_name(number) for number in job.servers],
            "start_utc": second_utc(start),
            "end_utc": second_utc(end),
        }
    ]


MADE_BY = "warehouse sample"


def write_sample(directory: Path, options: SampleOptions = SampleOptions()) -> Path:  # noqa: B008 - frozen
    """Write a sample into `directory`, replacing an older sample there; return the path of `truth.json`.

    Raises `FileExistsError` if the folder holds anything other than a sample.
    """
    options = options.resolved()
    cluster = options.cluster
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
    for task in plan.tasks:
        write_logs(root / "taskinfo" / task.name, task, plan.fabric, options)
    for path, content in STRAYS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    (directory / "truth").mkdir()
    write_seconds(directory / "truth" / "second.parquet", cluster, plan)
    # What the writers return are facts, too.
    facts = {
        "made_by": MADE_BY,
        "complete": True,
        "version": 3,
        "options": {**asdict(options), "first_hour": hour_folder(0)},
        "cluster": cluster,
        "hours": [
            {"folder": hour_folder(hour), "hour_utc": hour_utc(hour), "seconds": options.seconds}
            for hour in range(options.hours)
        ],
        "files": {"count": len(ports), "rows": sum(row["rows"] for row in ports)},
        "ports": ports,
        "nic_ports": nic_ports(plan.fabric),
        "uplinks": uplink_rows(plan),
        "suspects": suspects(plan.fabric, plan.faults) + other_ends(plan),
        "switch_phases": [
            {"switch": one.name, "phase_ms": refresh_ms(one.name, options.seed)}
            for one in plan.fabric.switches.values()
        ],
        "unlisted_ports": unlisted_ports(plan.fabric),
        "jobs": [_job(job, plan) for job in plan.jobs],
        "tasks": [task_row(task, plan) for task in plan.tasks],
        "listed_tasks": write_task_list(root / "tasks.csv", plan),
        "task_iteration_rows": write_iterations(directory / "truth" / "task_iteration.parquet", plan),
        "hour_tables": write_hour_tables(root / "trafficinfo", plan) if options.hour_tables else [],
        "utilization": write_utilization(directory / "acme" / "data", options.seed) if options.utilization else None,
        "acme_jobs": write_acme(directory / "acme", options.seed) if options.jobs else {},
        "itp_jobs": write_itp(directory / "itp", options.seed) if options.jobs else {},
        "traps": traps(plan),
    }
    _write_json(truth_path, facts)
    return truth_path


def _job(job: Job, plan: Plan) -> Row:
    return {
        "job": job.name,
        "servers": [server_name(number) for number in job.servers],
        "rails": job.rails,
        "period_seconds": job.period_ms / 1000,
        "duty_cycle": job.on_ms / job.period_ms,
        "start_utc": second_utc(job.start),
        "end_utc": second_utc(job.end),
        "hours": [
            hour_utc(hour)
            for hour in range(plan.options.hours)
            if job.start < hour * HOUR + plan.options.seconds and job.end > hour * HOUR
        ],
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


# Planted facts, as tables must have them.


def write_seconds(path: Path, cluster: str, plan: Plan) -> None:
    """Write (cluster, switch, port, second_utc, in_bytes, out_bytes); seconds without bytes have no row."""
    ports = sorted((switch.name, port.name) for switch in plan.fabric.switches.values() for port in switch.ports)
    into, out = (
        np.stack([side[switch][plan.fabric.switches[switch].index[port]] for switch, port in ports])
        for side in (plan.traffic.into, plan.traffic.out)
    )
    at = port, second = np.nonzero(into | out)
    columns = {"id": port, "second": START_MS // 1000 + second, "in_bytes": into[at], "out_bytes": out[at]}
    names = ", ".join(f"({number}, '{switch}', '{port}')" for number, (switch, port) in enumerate(ports))
    # One thread, so that equal rows give equal bytes.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("seconds", columns)
        connection.execute(f"CREATE TABLE names AS SELECT * FROM (VALUES {names}) AS t(id, switch, port)")
        connection.sql(
            f"""SELECT '{cluster}' AS cluster, names.switch, names.port,
                make_timestamp(seconds.second * 1000000) AS second_utc, seconds.in_bytes, seconds.out_bytes
            FROM seconds JOIN names USING (id) ORDER BY seconds.id, seconds.second"""
        ).write_parquet(str(path), compression="zstd")


def suspects(fabric: Fabric, faults: Faults) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links`, apart from those of link tables."""
    rows = [_suspect(kind, *link) for kind, link in one_way(faults)]
    for nic in fabric.all_nics():
        of = {"server": server_name(nic.server), "nic": nic.name}
        if nic.sheet_port == WRONG_PORT:
            rows.append(_suspect("access_on_idle_400g", nic.switch, WRONG_PORT, **of, candidate_port=nic.port))
        if fabric.places[nic.server].is_visitor and nic.listed:
            rows.append(_suspect("server_in_other_group", nic.switch, nic.sheet_port, **of))
    return sorted(rows, key=lambda row: (row["kind"], row["switch"], row["port"]))


def _suspect(kind: str, switch: str, port: str, **of: str) -> Row:
    return {"kind": kind, "switch": switch, "port": port, "server": None, "nic": None, "candidate_port": None, **of}


def one_way(faults: Faults) -> list[tuple[str, tuple[str, str]]]:
    """Return the planted kinds of uplinks without data one way, each with its link."""
    links = {
        "uplink_no_data_in": faults.no_data_in,
        "uplink_no_data_out": faults.no_data_out,
        "uplink_silent_in": faults.silent_in,
    }
    return [(kind, link) for kind, link in links.items() if link]


def other_ends(plan: Plan) -> list[Row]:
    """Return the expected rows of `metrics.suspect_links` for cables that end elsewhere than the formula says."""
    return [
        _suspect("peer_differs", link["leaf"], link["leaf_port"])
        for link in uplink_rows(plan)
        if link["spine_port_by_formula"] not in (None, link["spine_port"])
    ]


def uplink_rows(plan: Plan) -> list[Row]:
    """Return each uplink with its spine port: from the link table if there is one, else by the formula."""
    in_table = plan.options.hour_tables
    return [
        {
            "leaf": switch.name,
            "leaf_port": port.name,
            "spine": f"spine-{port.spine}",
            "spine_port": spine_port(switch, port, plan.options) if in_table else formula_spine_port(switch, port),
            "spine_port_by_formula": formula_spine_port(switch, port),
            "source": "link_table" if in_table else "inferred:uplink_formula",
        }
        for switch in plan.fabric.switches.values()
        for port in switch.ports
        if port.spine
    ]


def traps(plan: Plan) -> list[Row]:
    """Return the planted cases that other facts do not tell, each with its place."""
    return sorted([*_uplinks(plan), *_servers(plan), *_jobs(plan)], key=lambda trap: str(trap["kind"]))


def _uplinks(plan: Plan) -> Iterator[Row]:
    faults, options = plan.faults, plan.options
    hot = [("uplink_hot_out", faults.hot_out)] if faults.hot_out and options.hours > 1 else []
    yield from ({"kind": kind, "switch": leaf, "port": port} for kind, (leaf, port) in [*one_way(faults), *hot])
    if faults.uneven_out:
        leaf, begin = faults.uneven_out
        [uplink] = [port.name for port in plan.fabric.switches[leaf].ports if port.spine == 1]
        yield {
            "kind": "uneven_minute",
            "switch": leaf,
            "direction": "out",
            "minute_utc": second_utc(begin),
            "uplink": uplink,
        }
    if faults.favored_spine:
        yield {"kind": "spine_favored", "spine": f"spine-{faults.favored_spine}", "weight": FAVORED_PERCENT / 100}
    if faults.less_from_spine:
        leaf = faults.less_from_spine[1]
        yield {"kind": "less_from_spine", "switch": leaf, "spine": "spine-1", "percent": LESS_PERCENT}
    if options.hour_tables:
        leaf, port = other_cable(options)
        yield {"kind": "spine_port_not_by_formula", "switch": leaf, "port": port}


def _servers(plan: Plan) -> Iterator[Row]:
    """Yield servers that hold each other's slots, that move bytes one way, and that are idle."""
    # A visitor -> the number of the server whose slot it holds.
    visitors = {
        place.number: SLOTS * place.group + place.slot
        for place in plan.fabric.places.values()
        if place.group is not None and place.is_visitor and place.in_topology
    }
    for number, mate in visitors.items():
        if visitors.get(mate) == number < mate:
            yield {"kind": "servers_exchanged", "servers": [server_name(number), server_name(mate)]}
    steady = steady_servers(plan.fabric.places)
    if steady:
        yield {
            "kind": "one_way_servers",
            "send": server_name(steady[SENDING]),
            "receive": server_name(steady[RECEIVING]),
        }
        yield from ({"kind": "steady_server", "server": server_name(number)} for number in steady.values())
    busy = {*steady.values(), *(number for job in plan.jobs for number in job.servers)}
    idle = [server_name(number) for number in sorted(plan.fabric.nics) if number not in busy]
    yield {"kind": "idle_servers", "servers": idle}


def _jobs(plan: Plan) -> Iterator[Row]:
    for job in plan.jobs:
        for server in job.other_rails:
            yield {"kind": "rails_differ", "server": server_name(server)}
        for begin, end in job.pauses:
            if begin % HOUR < plan.options.seconds and (end - begin) * 1000 > job.period_ms:
                yield {
                    "kind": "job_pause",
                    "job": job.name,
                    "start_utc": second_utc(begin),
                    "seconds": end - begin,
                }
    for burst in plan.bursts:
        if burst.seconds > BURST_SECONDS:
            job = next(job for job in plan.jobs if job.name == burst.job)
            ends = [plan.fabric.nics[job.servers[member]][burst.rail] for member in (burst.member, burst.member + 1)]
            yield {
                "kind": "nics_at_line_rate",
                "second_utc": second_utc(burst.second),
                "seconds": burst.seconds,
                "nics": [{"server": server_name(nic.server), "switch": nic.switch, "port": nic.port} for nic in ends],
            }
