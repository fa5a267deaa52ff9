"""`metrics.jobs` in the Standard Workload Format 2.2, for scheduler simulators.

Each cluster gets a file: comment lines that begin with `;`, then one line per job with eighteen integers, -1 if
unknown. Definition: Feitelson, *The Standard Workload Format*,
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.

The format's "processors" are GPUs here. Jobs without GPUs are left out, and a comment counts them. Beside each file,
`<name>.jobs.csv` maps job numbers to the ids of the trace.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

from warehouse.base.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

CHUNK = 50_000
_STATUS = "CASE outcome WHEN 'completed' THEN 1 WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 5 ELSE -1 END"
_JOBS = f"""
    SELECT
        row_number() OVER (ORDER BY submit_utc, job_id),
        date_diff('second', min(submit_utc) OVER (), submit_utc),
        CASE WHEN queue_seconds >= 0 THEN queue_seconds ELSE -1 END,
        coalesce(run_seconds, -1),
        num_gpus,
        {_STATUS},
        CASE WHEN user_id IS NOT NULL THEN dense_rank() OVER (ORDER BY user_id) ELSE -1 END,
        CASE WHEN job_type IS NOT NULL THEN dense_rank() OVER (ORDER BY job_type) ELSE -1 END,
        job_id
    FROM metrics.jobs
    WHERE trace = ? AND cluster = ? AND num_gpus > 0 AND submit_utc IS NOT NULL
    ORDER BY 1
"""


class Written(NamedTuple):
    """A written file."""

    path: Path
    about: str
    rows: int


def write_swf(connection: duckdb.DuckDBPyConnection, folder: Path, build: str | None) -> Iterator[Written]:
    """Write one workload file per cluster, and yield the files.

    Raises
    ------
    QueryError
        When there are no jobs.
    """
    clusters = connection.execute(
        """SELECT j.trace, j.cluster, count(*) FILTER (WHERE num_gpus > 0),
               count(*) FILTER (WHERE num_gpus IS NULL OR num_gpus = 0), max(num_gpus), max(c.gpus),
               epoch_us(min(submit_utc) FILTER (WHERE num_gpus > 0)) // 1000000, max(num_nodes)
           FROM metrics.jobs AS j LEFT JOIN reference.job_clusters AS c USING (trace, cluster)
           GROUP BY 1, 2 HAVING count(*) FILTER (WHERE num_gpus > 0) > 0 ORDER BY 1, 2"""
    ).fetchall()
    if not clusters:
        raise QueryError(
            "metrics.jobs has no job with GPUs to write as a workload",
            hint="build the files of AcmeTrace or ITP first: warehouse build -d DIR",
        )
    for trace, cluster, jobs, left_out, largest, gpus, start, _ in clusters:
        types = connection.execute(
            "SELECT DISTINCT job_type FROM metrics.jobs WHERE trace = ? AND cluster = ? AND num_gpus > 0 "
            "AND submit_utc IS NOT NULL AND job_type IS NOT NULL ORDER BY 1",
            [trace, cluster],
        ).fetchall()
        comments = [
            "Version: 2.2",
            f"Computer: {cluster} of {trace}",
            f"Conversion: warehouse export, of build {build}",
            f"MaxJobs: {jobs}",
            f"MaxRecords: {jobs}",
            f"UnixStartTime: {start}",
            "TimeZoneString: Etc/UTC",
            *([f"MaxProcs: {gpus}"] if gpus else []),
            "Note: processors are GPUs" + ("" if gpus else "; how many the cluster has is not known"),
            f"Note: the largest job has {largest} GPUs",
            f"Note: {left_out} jobs without GPUs are left out",
            "Note: run time is end - start" if trace == "acme" else "Note: run time is the duration as published",
            f"Note: {trace}-{cluster}.jobs.csv has the trace's own name of each job",
            *(f"Note: executable {number} is the type {name}" for number, (name,) in enumerate(types, start=1)),
        ]
        path = folder / f"{trace}-{cluster}.swf"
        _write_jobs(connection, [trace, cluster], path, comments)
        yield Written(path, f"GPU jobs of {cluster} in the Standard Workload Format", jobs)
        yield Written(path.with_suffix(".jobs.csv"), f"The job ids of {path.name}", jobs)


def _write_jobs(connection: duckdb.DuckDBPyConnection, which: list[str], path: Path, comments: list[str]) -> None:
    found = connection.execute(_JOBS, which)
    with (
        path.open("w", encoding="ascii", errors="backslashreplace", newline="\n") as out,
        path.with_suffix(".jobs.csv").open("w", encoding="utf-8", newline="") as ids,
    ):
        out.writelines(f"; {comment}\n" for comment in comments)
        names = csv.writer(ids, lineterminator="\n")
        names.writerow(["job", "job_id"])
        while rows := found.fetchmany(CHUNK):
            for number, submit, wait, run, gpus, status, user, kind, job_id in rows:
                fields = (number, submit, wait, run, gpus, -1, -1, gpus, -1, -1, status, user, -1, kind, -1, -1, -1, -1)
                out.write(" ".join(map(str, fields)) + "\n")
                names.writerow([number, job_id])
