"""The real ITP archives and Acme files: plain Python over the archives' own text, and published figures."""

from __future__ import annotations

import csv
import io
import tarfile
from pathlib import Path

import duckdb
import pytest

from tests.models.test_star import QUESTIONS

pytestmark = pytest.mark.real

Connection = duckdb.DuckDBPyConnection
Row = dict[str, str]


def members(real: Path, name: str) -> dict[str, list[Row]]:
    """Return the rows of each CSV of an archive."""
    found = {}
    with tarfile.open(real / "itp" / "data" / name) as tar:
        for info in tar:
            stream = tar.extractfile(info)
            if info.name.endswith(".csv") and stream is not None:
                found[info.name[:-4]] = list(csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8")))
    return found


def test_every_raw_job_is_there_with_its_gpu_time(real: Path, real_jobs: Connection) -> None:
    """And the question of docs/star.md has one count of jobs a cluster: the archives have neither types nor states."""
    raw = members(real, "raw-traces.tar.gz")
    expected = sorted(
        (cluster, len(rows), sum(int(r["num_gpu"]) * int(r["duration"]) for r in rows)) for cluster, rows in raw.items()
    )
    assert sum(count for _, count, _ in expected) == 69_351
    assert sum(seconds for *_, seconds in expected) == 5_877_791_065
    of_jobs = "SELECT cluster, count(*), sum(gpu_seconds)::BIGINT FROM metrics.jobs WHERE trace = 'itp' GROUP BY 1"
    assert real_jobs.execute(f"{of_jobs} ORDER BY 1").fetchall() == expected
    totals = "SELECT sum(jobs)::BIGINT, sum(gpu_seconds) FROM metrics.job_totals WHERE trace = 'itp'"
    assert real_jobs.execute(totals).fetchall() == [(69_351, 5_877_791_065.0)]
    assert real_jobs.execute(QUESTIONS[3]).fetchall() == [(cluster, None, None, jobs) for cluster, jobs, _ in expected]


CLAIMS = {
    "itp_gpu_hours": (5_877_791_065 / 3600, "reproduced"),
    "totals/itp/gpu_seconds": (5_877_791_065.0, "reproduced"),
    "totals/itp/jobs": (69_351.0, "reproduced"),
    "paper_median_util_seren": (99.0, "differs"),
    "paper_median_util_kalos": (97.0, "differs"),
    "paper_over400_seren": (8.0, "differs"),
    "paper_over400_kalos": (12.6, "reproduced"),
    "paper_kalos_mem": (50.25, "reproduced"),
    "paper_sm_activity": (50.16, "differs"),
    "paper_nic_idle": (63.4, "reproduced"),
    "paper_idle_gpus": (29.2, "reproduced"),
    "paper_server_ratio": (5.04, "reproduced"),
    "paper_max_power": (599.7, "reproduced"),
    "fig_power_max_cpu_node": (960.0, "reproduced"),
    "fig_power_max_gpu_node": (6554.0, "reproduced"),
    "nb_cdf_points": (1000.0, "reproduced"),
    "acme_readme_sample_interval": (None, "no_data"),
}


def test_claims_have_our_values_and_verdicts(real_jobs: Connection) -> None:
    """Labels of bars have no data: their jobs are not at hand; cluster_summary.csv, which they were drawn from, is."""
    rows = real_jobs.execute("SELECT claim, our_value, verdict, remark FROM metrics.published_claims").fetchall()
    found = {claim: (value, verdict) for claim, value, verdict, _ in rows}
    for claim, (value, verdict) in CLAIMS.items():
        assert found[claim] == (value if value is None else pytest.approx(value, rel=0.002), verdict), claim
    assert [found[claim][1] for claim in found if claim.startswith("itp_")] == ["reproduced"] * 9
    assert [found[claim][1] for claim in found if claim.startswith("summary_")] == ["no_data"] * 112
    bars = [(verdict, remark) for claim, _, verdict, remark in rows if claim.startswith("fig_bar_")]
    assert len(bars) == 12
    assert set(bars) == {("no_data", "not loaded: jobs of seren"), ("no_data", "not loaded: jobs of kalos")}
