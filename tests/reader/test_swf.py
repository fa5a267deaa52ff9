"""The named query `swf`, read back by the rules of the format and by a simulator, and compared with metrics.jobs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import warehouse
from tests.conftest import Command
from tests.environments import environment

FIELDS = 18
ACCASIM = """
import collections, collections.abc, json, sys
collections.Mapping = collections.abc.Mapping  # AccaSim 1.1.3 uses a name that moved in Python 3.10
from accasim.utils.reader_class import DefaultWorkloadParser
names = "job_number queued_time wait_time duration total_processors status user_id executable_number".split()
parser = DefaultWorkloadParser()
jobs = [parser.parse_line(line.rstrip("\\n")) for line in open(sys.argv[1], encoding="ascii")]
print(json.dumps([[int(job[name]) for name in names] for job in jobs if job]))
"""


class Workload(NamedTuple):
    comments: dict[str, list[str]]
    jobs: list[tuple[int, ...]]


def read_swf(path: Path) -> Workload:
    """Read a workload by the definition of the format; raise on violations."""
    comments: dict[str, list[str]] = {}
    jobs: list[tuple[int, ...]] = []
    text = path.read_bytes()
    assert text.endswith(b"\n")
    for line in text.decode("ascii").splitlines():
        if line.startswith(";"):
            assert not jobs, "header comments come first"
            key, _, value = line[1:].strip().partition(": ")
            comments.setdefault(key, []).append(value)
            continue
        fields = tuple(int(field) for field in line.split())
        assert len(fields) == FIELDS
        assert all(field >= -1 for field in fields)
        number, submit, _, _, allocated, _, _, requested = fields[:8]
        assert number == len(jobs) + 1, "jobs are numbered from 1 on"
        assert submit >= (jobs[-1][1] if jobs else 0), "in the order of submission"
        assert allocated == requested > 0
        assert fields[10] in (-1, 0, 1, 2, 3, 4, 5)
        jobs.append(fields)
    assert comments["Version"] == ["2.2"]
    assert comments["MaxJobs"] == comments["MaxRecords"] == [str(len(jobs))]
    assert jobs[0][1] == 0
    return Workload(comments, jobs)


def written(folder: Path, built: Path, command: Command, *which: str) -> Path:
    """Return the file that the command writes for a trace, or one of its clusters."""
    path = folder / "jobs.swf"
    said = command("sql", "-q", "swf", *which, "--format", "text", "-o", path, "-t", built)
    assert (said.status, said.err) == (0, "")
    return path


def test_a_simulator_that_knows_the_format_finds_the_same_jobs(built: Path, tmp_path: Path, command: Command) -> None:
    path = written(tmp_path, built, command, "--trace", "acme", "--job-cluster", "seren")
    python = environment("accasim", "accasim==1.1.3\n")  # its reader needs none of AccaSim's simulation packages
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run([str(python), "-c", ACCASIM, str(path)], env=variables, check=True, capture_output=True)
    status = "CASE outcome WHEN 'completed' THEN 1 WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 5 ELSE -1 END"
    with warehouse.open(built) as connection:
        expected = connection.execute(
            f"""
            SELECT row_number() OVER (ORDER BY submit_utc, job_id),
                epoch(submit_utc)::BIGINT - min(epoch(submit_utc)::BIGINT) OVER (),
                coalesce(queue_seconds, -1), coalesce(run_seconds, -1), num_gpus, {status},
                CASE WHEN user_id IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY user_id) END,
                CASE WHEN job_type IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY job_type) END
            FROM metrics.jobs WHERE trace = 'acme' AND cluster = 'seren' AND num_gpus > 0 ORDER BY 1
            """
        ).fetchall()
    assert len(expected) > 20
    assert [tuple(job) for job in json.loads(said.stdout)] == expected


def test_a_trace_has_its_clusters_as_partitions_and_its_size_if_known(
    built: Path, tmp_path: Path, command: Command
) -> None:
    workload = read_swf(written(tmp_path, built, command, "--trace", "acme"))
    assert workload.comments["Partition"] == ["1 kalos", "2 seren"]
    assert workload.comments["MaxProcs"] == [str(2288 + 2416)]
    assert any(note.endswith("jobs without GPUs are left out") for note in workload.comments["Note"])
    assert "executable 2 is the type Eval" in workload.comments["Note"]
    with warehouse.open(built) as connection:
        counts = connection.execute(
            "SELECT count(*) FROM metrics.jobs WHERE trace = 'acme' AND num_gpus > 0 GROUP BY cluster ORDER BY cluster"
        ).fetchall()
    assert [sum(job[15] == part for job in workload.jobs) for part in (1, 2)] == [count for (count,) in counts]
    unknown = written(tmp_path, built, command, "--trace", "itp", "--job-cluster", "cluster01")
    assert "MaxProcs" not in read_swf(unknown).comments
