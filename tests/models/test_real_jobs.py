"""The real ITP archives and the published claims, against plain Python over the archives' own text."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.models.test_star_questions import QUESTIONS

pytestmark = pytest.mark.real

Connection = duckdb.DuckDBPyConnection
Row = dict[str, str]


@pytest.fixture(scope="module")
def jobs(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A build of the ITP and Acme files at hand."""
    target = tmp_path_factory.mktemp("jobs") / "warehouse"
    warehouse.build([real / "itp", real / "acme"], target, threads=2)
    connection = warehouse.open(target)
    yield connection
    connection.close()


def members(real: Path, name: str) -> dict[str, list[Row]]:
    """The rows of each CSV of an archive."""
    found = {}
    with tarfile.open(real / "itp" / "data" / name) as tar:
        for info in tar:
            stream = tar.extractfile(info)
            if info.name.endswith(".csv") and stream is not None:
                found[info.name[:-4]] = list(csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8")))
    return found


def test_jobs_by_type_and_state_of_the_star_equal_the_archives(real: Path, jobs: Connection) -> None:
    """The question of docs/star.md, with one count of jobs a cluster: the archives have neither types nor states."""
    found = jobs.execute(QUESTIONS[3]).fetchall()
    raw = members(real, "raw-traces.tar.gz")
    assert found == [(name, None, None, len(raw[name])) for name in sorted(raw)]


def test_every_raw_job_is_there_with_its_gpu_time(real: Path, jobs: Connection) -> None:
    raw = members(real, "raw-traces.tar.gz")
    expected = sorted(
        (cluster, len(rows), sum(int(r["num_gpu"]) * int(r["duration"]) for r in rows)) for cluster, rows in raw.items()
    )
    assert sum(count for _, count, _ in expected) == 69_351
    assert sum(seconds for *_, seconds in expected) == 5_877_791_065

    found = (
        "SELECT cluster, count(*), sum(gpu_seconds)::BIGINT FROM metrics.jobs WHERE trace = 'itp' GROUP BY 1 ORDER BY 1"
    )
    assert jobs.execute(found).fetchall() == expected
    assert jobs.execute("SELECT sum(jobs)::BIGINT, sum(gpu_seconds) FROM metrics.job_totals").fetchall() == [
        (69_351, 5_877_791_065.0)
    ]


def test_the_testbed_is_apart_and_a_piece_of_cluster02(real: Path, jobs: Connection) -> None:
    assert jobs.execute("SELECT count(*) FROM staging.testbed_jobs").fetchall() == [(195,)]
    both = members(real, "elasticflow-traces.tar.gz")
    ids = [row["job_id"] for row in both["195job"]]
    assert ids == [row["job_id"] for row in both["cluster02"]][4288:4483]
    assert jobs.execute("SELECT count(*) FROM metrics.jobs WHERE job_id = ?", [ids[0]]).fetchall() == [(1,)]


def test_every_elasticflow_row_is_its_raw_job(jobs: Connection) -> None:
    assert jobs.execute(
        """SELECT count(*), count(i.job_id) FROM staging.elasticflow_jobs AS e LEFT JOIN staging.itp_jobs AS i
           USING (cluster, job_id, submission_seconds, duration_seconds, num_gpus)"""
    ).fetchall() == [(69_351, 69_351)]


def test_the_figures_of_the_elasticflow_readme_come_out(jobs: Connection) -> None:
    rows = jobs.execute("SELECT claim, verdict FROM metrics.published_claims WHERE claim LIKE 'itp_%'").fetchall()
    assert len(rows) == 9
    assert {verdict for _, verdict in rows} == {"reproduced"}
    assert jobs.execute(
        "SELECT our_value, published_value FROM metrics.published_claims WHERE claim = 'itp_gpu_hours'"
    ).fetchall() == [(5_877_791_065 / 3600, 1_632_719.7)]


def test_the_published_totals_come_out(jobs: Connection) -> None:
    found = jobs.execute("SELECT claim, our_value, verdict FROM metrics.published_claims WHERE claim LIKE 'totals/%'")
    assert sorted(found.fetchall()) == [
        ("totals/itp/gpu_seconds", 5_877_791_065.0, "reproduced"),
        ("totals/itp/jobs", 69_351.0, "reproduced"),
    ]


def test_claims_on_job_files_that_are_not_there_have_no_data(jobs: Connection) -> None:
    rows = jobs.execute("SELECT claim, verdict FROM metrics.published_claims WHERE claim LIKE 'summary_%'").fetchall()
    assert len(rows) == 112
    assert {verdict for _, verdict in rows} == {"no_data"}
    assert jobs.execute("SELECT count(*) FROM metrics.published_claims").fetchall()[0][0] >= 506
