"""Acme jobs: `trace_seren.csv`, `trace_kalos.csv`, the jobs of earlier traces, and `cluster_summary.csv`.

Docs: docs/formats/acme_jobs.md. Kalos has four columns in the middle that Seren lacks, so columns are found by name.
Seren writes times at +08:00, Kalos at +00:00. Only the offset in the text is used.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from warehouse.base.startup import regex
from warehouse.formats.base import RawFile
from warehouse.formats.named_csv import (
    COUNT,
    HUNDREDTHS,
    NAME,
    NUMBER,
    TEXT,
    TIME,
    WHOLE,
    WORD,
    NamedCsv,
    parse_time,
    signed,
)

JOBS = {
    "job_id": NAME.needed(),
    "user": NAME,
    "node_num": COUNT,
    "gpu_num": COUNT,
    "cpu_num": COUNT,
    "mem_per_pod_GB": NUMBER,
    "shared_mem_per_pod": NUMBER,
    "type": WORD,
    "state": WORD,
    "submit_time": TIME.needed(),
    "start_time": TIME,
    "end_time": TIME,
    "fail_time": TIME,
    "stop_time": TIME,
    "duration": NUMBER,
    "queue": NUMBER,
    "gpu_time": NUMBER,
}
"""Columns of Kalos; Seren lacks those of `KALOS_ONLY`."""
KALOS_ONLY = frozenset({"mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time"})
PREVIOUS = {
    "job_id": TEXT,
    "job_name": TEXT,
    "task_name": TEXT,
    "user": TEXT,
    "vc": TEXT,
    "node_num": COUNT,
    "gpu_num": COUNT,
    "cpu_num": COUNT,
    "plan_gpu": HUNDREDTHS,
    "plan_cpu": HUNDREDTHS,
    "state": TEXT,
    "status": TEXT,
    "submit_time": TEXT,
    "start_time": TEXT,
    "end_time": TEXT,
    "duration": signed(NUMBER),
    "queue": signed(NUMBER),
    "wait_time": signed(NUMBER),
}
_COUNTS = "job_num cpu_job_num gpu_job_num"
_GPU = """
    avg_run_time_gpu avg_que_time_gpu avg_gpu_num med_run_time_gpu med_que_time_gpu med_gpu_num max_run_time_gpu max_gpu
    complete_rate_gpu cancel_rate_gpu fail_rate_gpu complete_gpu_time cancel_gpu_time fail_gpu_time
    complete_rate_gpu_time cancel_rate_gpu_time fail_rate_gpu_time
"""
_CPU = """
    avg_run_time_cpu avg_que_time_cpu med_run_time_cpu med_que_time_cpu complete_rate_cpu cancel_rate_cpu fail_rate_cpu
"""
SUMMARY = (
    {"id": NAME.needed()} | dict.fromkeys(_COUNTS.split(), WHOLE) | dict.fromkeys(f"{_GPU} {_CPU}".split(), NUMBER)
)

_TRACE = regex(r"(?:trace_)?(seren|kalos)[^/]*\.csv(?:\.gz|\.zst)?", re.IGNORECASE)
_EARLIER = regex(r"(helios|philly|pai)_(trace[^/.]*)\.csv(?:\.gz|\.zst)?", re.IGNORECASE)
_SUMMARY = regex(r"cluster_summary\.csv", re.IGNORECASE)


@dataclass
class AcmeJobs(NamedCsv):
    """Format `acme.jobs`."""

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Set the cluster by file name and header, which must agree."""
        found = _TRACE.fullmatch(file.path.name)
        cluster = found[1].lower() if found else ""
        here = sorted(KALOS_ONLY & set(header))
        if cluster == "seren" and here:
            raise ValueError(f"named after Seren, but with columns of Kalos: {', '.join(here)}")
        if cluster == "kalos" and len(here) < len(KALOS_ONLY):
            raise ValueError(f"named after Kalos, but without its {', '.join(sorted(KALOS_ONLY - set(here)))}")
        return file.but(cluster=cluster, release_path=f"acme/job_trace/trace_{cluster}.csv")

    def misfit(self, row: Mapping[str, str]) -> str | None:
        """Reject a time that does not exist in the calendar, and an end before the start."""
        times = {name: parse_time(row[name]) for name, cell in self.cells.items() if cell is TIME and row.get(name)}
        for name, time in {**times, "submit_time": parse_time(row["submit_time"])}.items():
            if time is None:
                return f"{name} is not a time that exists: {row[name]!r}"
        start, end = times.get("start_time"), times.get("end_time")
        return f"end_time {end} is before start_time {start}" if start and end and end < start else None


@dataclass
class PreviousJobs(NamedCsv):
    """Format `acme.previous_jobs`.

    The files were not available when the format was written, so only a few column names are required.
    """

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Set the cluster by the file name; a second Philly file is a cluster of its own."""
        for names in (("gpu_num", "plan_gpu"), ("state", "status"), ("duration",)):
            if not set(names) & set(header):
                raise ValueError(f"the columns differ from the published ones: without {' or '.join(names)}")
        found = _EARLIER.fullmatch(file.path.name)
        assert found is not None
        cluster = f"{found[1]}{found[2][len('trace') :]}".lower()
        return file.but(cluster=cluster, release_path=f"acme/job_trace/trace_previous_work/{file.path.name.lower()}")

    def identity(self, row: Mapping[str, str]) -> tuple[str, Hashable] | None:
        """Return the job and all its values: ids of several clusters, and tasks of one job, repeat a job alone.

        Numbers are compared as the check of `staging.previous_jobs` compares them.
        """
        key = next((name for name in ("job_id", "job_name") if row.get(name)), None)
        values = (float(text) if text and self.cells[name].is_measure else text for name, text in row.items())
        return None if key is None else (key, hash(tuple(values)))


@dataclass
class ClusterSummary(NamedCsv):
    """Format `acme.cluster_summary`."""

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Set cluster `acme`: the file describes five clusters."""
        return file.but(cluster="acme", release_path="acme/cluster_summary.csv")


FORMATS = (
    AcmeJobs(
        "acme.jobs", "acme_jobs", "Jobs of Seren and Kalos as published; four columns exist only for Kalos.", JOBS,
        optional=KALOS_ONLY, key="job_id", file_name=_TRACE,
    ),
    PreviousJobs(
        "acme.previous_jobs", "acme_previous_jobs", "Jobs of Helios, Philly and PAI, as in AcmeTrace.", PREVIOUS,
        optional=frozenset(PREVIOUS), file_name=_EARLIER,
    ),
    ClusterSummary(
        "acme.cluster_summary", "acme_cluster_summary", "AcmeTrace's summary of five clusters, one row each.", SUMMARY,
        key="id", file_name=_SUMMARY, ends_with_newline=False,
    ),
)  # fmt: skip
