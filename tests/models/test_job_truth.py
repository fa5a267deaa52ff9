"""Job tables against what was planted in the sample, and against plain Python over its CSV text."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.models.conftest import Planted

ROOT = Path(__file__).parents[2]
CLUSTERS = ("seren", "kalos")


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_totals_states_and_types_are_the_planted_ones(planted: Planted, cluster: str, kind: str) -> None:
    truth = planted.truth["acme_jobs"][cluster][kind]
    where = f"WHERE cluster = '{cluster}' AND kind = '{kind}'"
    names = ["jobs", "running_jobs", "gpu_seconds", "published_gpu_seconds"]
    names += ["median_duration_seconds", "max_duration_seconds"]
    found = planted.rows(
        f"SELECT {', '.join(names)}, mean_queue_seconds * jobs, mean_gpus * jobs FROM metrics.job_totals {where}"
    )
    assert found == [pytest.approx((*(truth[name] for name in names), truth["queue_seconds"], truth["gpus"]))]
    jobs = f"SELECT name, jobs FROM metrics.job_share {where} AND quantity = "
    assert dict(planted.rows(f"{jobs}'state'")) == truth["states"]
    assert dict(planted.rows(f"{jobs}'job_type'")) == {name or "none": jobs for name, jobs in truth["types"].items()}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_times_are_utc_by_the_offset_of_each(planted: Planted, cluster: str) -> None:
    path = planted.root / "acme" / "data" / "job_trace" / f"trace_{cluster}.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        expected = {row["job_id"]: datetime.fromisoformat(row["submit_time"]) for row in csv.DictReader(stream)}
    found = planted.rows(f"SELECT job_id, submit_utc FROM metrics.jobs WHERE cluster = '{cluster}'")
    assert {job: time.replace(tzinfo=UTC) for job, time in found} == expected


def test_earlier_traces_and_itp_have_their_jobs_and_gpu_time(planted: Planted) -> None:
    for cluster in ("helios", "philly", "pai"):
        truth = planted.truth["acme_jobs"][cluster]
        found = {
            kind: (jobs, published)
            for kind, jobs, published in planted.rows(
                "SELECT kind, jobs, published_gpu_seconds FROM metrics.job_totals "
                f"WHERE cluster = '{cluster}' AND trace = '{cluster}'"
            )
        }
        assert found["gpu"] == (truth["gpu"]["jobs"], truth["gpu"]["published_gpu_seconds"])
        assert found.get("cpu", (0,))[0] == truth["cpu"]["jobs"]
    assert planted.rows("SELECT count(*) FROM metrics.jobs WHERE cluster IN ('helios', 'philly', 'pai')") == [(0,)]
    itp = planted.truth["itp_jobs"]["clusters"].items()
    found_itp = planted.rows("SELECT cluster, jobs, gpu_seconds FROM metrics.job_totals WHERE trace = 'itp'")
    assert found_itp == sorted((name, one["jobs"], one["gpu_seconds"]) for name, one in itp)


# published claims ---------------------------------------------------------------------------------


def test_each_claim_about_loaded_files_has_our_value(planted: Planted) -> None:
    """Verdicts follow from the values, as bench.acceptance computes them."""
    assert planted.rows(
        "SELECT bool_and(our_value IS NOT NULL OR computed LIKE '%/utilization/%'), count(our_value) >= 450 "
        "FROM metrics.published_claims WHERE computed IS NOT NULL"
    ) == [(True, True)]


def test_labels_of_a_figure_are_recomputed_from_jobs(planted: Planted) -> None:
    """The figure was drawn from cluster_summary.csv: held against that file, its labels could only come out."""
    rows = planted.rows(
        "SELECT c.our_value, 100 * avg((coalesce(j.outcome, 'failed') = split_part(c.computed, '/', 3))::INTEGER), "
        "bool_and(independent) FROM metrics.published_claims AS c JOIN staging.job_sizes AS j "
        "ON j.trace = 'acme' AND j.kind = 'gpu' AND j.cluster = split_part(c.computed, '/', 1) "
        "WHERE c.claim LIKE 'fig_bar_count_%' GROUP BY c.claim, c.our_value"
    )
    assert len(rows) == 6
    for ours, from_jobs, independent in rows:
        assert ours == pytest.approx(from_jobs, abs=1e-9)
        assert independent


def test_no_claim_is_independent_if_our_value_is_computed_from_its_own_document(planted: Planted) -> None:
    """A publication that a value is computed from is named in `computed_from`; so are files that it was drawn from."""
    rows = planted.rows(
        "SELECT claim, source, computed_from, independent FROM metrics.published_claims WHERE computed IS NOT NULL"
    )
    circular = {
        claim: independent
        for claim, source, computed_from, independent in rows
        if source in computed_from or ("util_pkl" in computed_from and "AcmeTrace published" in computed_from)
    }
    assert {"itp_start", "itp_end", "paper_idle_gpus"} <= circular.keys()
    assert not any(circular.values()), [claim for claim, independent in circular.items() if independent]
    epoch = "2021-03-04 00:00:00"  # the only constant of a publication in a model or mapping of jobs
    files = [*(ROOT / "models").rglob("*.sql"), *(ROOT / "data" / "traces").glob("*.yaml")]
    assert [path.name for path in files if epoch in path.read_text(encoding="utf-8")] == ["itp.yaml"]
    (cutoff,) = [text for claim, _, text, _ in rows if claim == "paper_idle_gpus"]
    assert "70 W" in cutoff


def test_the_claims_are_a_reviewed_file_with_sources() -> None:
    with (ROOT / "data" / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) >= 506
    assert all(row["source"] and row["place"] and row["quantity"] and row["published_text"] for row in rows)
    assert {row["evidence"] for row in rows} == {"read", "drawn", "quoted"}
    assert all(
        ("as quoted" in row["source"] or "as cited" in row["source"]) == (row["evidence"] == "quoted") for row in rows
    )
