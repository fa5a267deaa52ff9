"""SWF workloads, read back by the rules of the format and compared with metrics.jobs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import pytest

import warehouse
from bench import swf as libraries
from tests.conftest import Command
from tests.environments import environment
from warehouse.publish.export import export

FIELDS = 18
STATUS = {"completed": 1, "failed": 0, "cancelled": 5, None: -1}


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


@pytest.fixture(scope="module")
def written(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(built, tmp_path_factory.mktemp("swf") / "out", formats=["swf"])


def test_one_workload_per_cluster_and_no_other_file(written: Path) -> None:
    names = {path.name for path in written.glob("*.swf")}
    assert names == {"acme-kalos.swf", "acme-seren.swf", *(f"itp-cluster{n:02}.swf" for n in range(1, 11))}
    assert not list(written.glob("*.parquet"))
    listed = json.loads((written / "manifest.json").read_text(encoding="utf-8"))["files"]
    listed = [file for file in listed if file["format"] != "json"]
    assert {file["path"] for file in listed} == names | {name.replace(".swf", ".jobs.csv") for name in names}


@pytest.mark.parametrize("name", ["acme-kalos", "acme-seren", "itp-cluster02"])
def test_jobs_read_back_equal_the_table(written: Path, built: Path, name: str) -> None:
    workload = read_swf(written / f"{name}.swf")
    trace, _, cluster = name.partition("-")
    with warehouse.open(built) as connection:
        rows = connection.execute(
            """SELECT job_id, epoch_us(submit_utc) // 1000000, queue_seconds, run_seconds, num_gpus, outcome, user_id
               FROM metrics.jobs WHERE trace = ? AND cluster = ? AND num_gpus > 0 ORDER BY submit_utc, job_id""",
            [trace, cluster],
        ).fetchall()
    start = int(workload.comments["UnixStartTime"][0])
    users: dict[str, set[int]] = {}
    for job, (_, submit, queue, run, gpus, outcome, user) in zip(workload.jobs, rows, strict=True):
        expected = (submit - start, -1 if queue is None else queue, -1 if run is None else run, gpus)
        assert job[1:5] == expected
        assert job[10] == STATUS[outcome]
        users.setdefault(user, set()).add(job[11])
    assert all(len(numbers) == 1 for numbers in users.values()), "a user has one number"
    assert len(set.union(*users.values())) == len(users)
    with (written / f"{name}.jobs.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["job_id"] for row in csv.DictReader(stream)] == [row[0] for row in rows]


def test_a_simulator_that_knows_the_format_finds_the_same_jobs(written: Path, built: Path) -> None:
    # its reader needs none of AccaSim's simulation packages
    compare(written, built, environment("accasim", "accasim==1.1.3\n"), ["AccaSim"])


@pytest.mark.skipif(not libraries.PYTHON.exists(), reason="python -m bench.swf installs evalys, which reads workloads")
def test_evalys_finds_the_same_jobs(written: Path, built: Path) -> None:
    compare(written, built, libraries.PYTHON, ["evalys"])


def compare(written: Path, built: Path, python: Path, readers: list[str]) -> None:
    files = sorted(written.glob("*.swf"))
    for path, found in libraries.read(files, python, readers).items():
        expected = libraries.jobs(built, path.stem)
        assert len(expected) > 20
        assert found == {reader: libraries.visible(expected, reader) for reader in readers}
    assert len(files) == 12


def test_the_cluster_size_is_given_if_known(written: Path) -> None:
    assert read_swf(written / "acme-seren.swf").comments["MaxProcs"] == ["2288"]
    assert "MaxProcs" not in read_swf(written / "itp-cluster01.swf").comments
    notes = read_swf(written / "acme-kalos.swf").comments["Note"]
    assert any(note.endswith("jobs without GPUs are left out") for note in notes)
    assert "executable 2 is the type Eval" in notes


def test_the_command_writes_it_and_a_warehouse_without_jobs_says_so(
    built: Path, tmp_path: Path, command: Command
) -> None:
    said = command("export", tmp_path / "out", "-t", built, "--format", "swf")
    assert said.status == 0
    assert "Wrote" in said.out

    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "cluster01.csv").write_text("job_id,submission_time,duration,num_gpu", encoding="utf-8")
    assert command("build", "-d", tmp_path / "d", "-t", tmp_path / "t").status == 0
    said = command("export", tmp_path / "none", "-t", tmp_path / "t", "--format", "swf")
    assert said.status == 2
    assert "no job with GPUs" in said.err_text
    assert not (tmp_path / "none").exists()
