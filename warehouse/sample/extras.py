"""Files beside the data: a readme, stray files that a reader must ignore, and a list of tasks without a log.

The list has the form of Slurm's: one job for a part of its time, and one on a misspelled server.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from warehouse.sample import clock
from warehouse.sample.names import server_name

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.sample.options import SampleOptions
    from warehouse.sample.plan import Plan

README = """\
# A synthetic release

Nothing here was measured. These files were generated in the form of a published trace of a GPU cluster: a
topology workbook, and one CSV an hour for each switch port. The machines, jobs and faults are made up.

What was planted is in `truth.json` and `truth/` of the folder above this one: read the files here as if you
did not have it, then compare.
"""

_DS_STORE = b"\x00\x00\x00\x01Bud1" + bytes(6140)
_THUMBS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
_NOTES = b"copied from the collector, see the other folder for the logs\n"


def write_extras(release: Path, cluster: str, options: SampleOptions) -> list[str]:
    """Write the readme and the stray files; return the release paths of the stray files."""
    (release / "README.md").write_bytes(README.encode())
    hour = f"{cluster}/trafficinfo/{clock.hour_folder(0, options)}"
    strays = {
        f"{cluster}/taskinfo/.DS_Store": _DS_STORE,
        f"{hour}/Thumbs.db": _THUMBS,
        f"{hour}/notes.txt": _NOTES,
    }
    for path, content in strays.items():
        (release / path).parent.mkdir(parents=True, exist_ok=True)
        (release / path).write_bytes(content)
    return sorted(strays)


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
