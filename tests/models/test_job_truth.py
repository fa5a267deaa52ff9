"""Job tables against what was planted in the sample, and against plain Python over its CSV text."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import pytest

import warehouse
from tests.examples import ROOT
from tests.models.conftest import Planted

Row = dict[str, str]
CLUSTERS = ("seren", "kalos")


def written(planted: Planted, cluster: str) -> list[Row]:
    """The rows of a cluster's CSV."""
    path = planted.root / "acme" / "data" / "job_trace" / f"trace_{cluster}.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def seconds(text: str) -> int:
    """A time with its offset as seconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp())


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_totals_are_the_planted_ones(planted: Planted, cluster: str, kind: str) -> None:
    truth = planted.truth["acme_jobs"][cluster][kind]
    names = ["jobs", "running_jobs", "gpu_seconds", "published_gpu_seconds"]
    names += ["median_duration_seconds", "max_duration_seconds"]
    found = planted.rows(
        f"SELECT {', '.join(names)}, mean_queue_seconds * jobs, mean_gpus * jobs FROM metrics.job_totals "
        f"WHERE cluster = '{cluster}' AND kind = '{kind}'"
    )
    assert found == [pytest.approx((*(truth[name] for name in names), truth["queue_seconds"], truth["gpus"]))]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_states_and_types_are_the_planted_ones(planted: Planted, cluster: str, kind: str) -> None:
    truth = planted.truth["acme_jobs"][cluster][kind]
    where = f"WHERE cluster = '{cluster}' AND kind = '{kind}'"

    assert (
        dict(planted.rows(f"SELECT name, jobs FROM metrics.job_share {where} AND quantity = 'state'"))
        == truth["states"]
    )
    types = {name or "none": count for name, count in truth["types"].items()}
    of_types = f"{where} AND quantity = 'job_type'"
    assert dict(planted.rows(f"SELECT name, jobs FROM metrics.job_share {of_types}")) == types
    shares = planted.rows(f"SELECT sum(job_share), sum(gpu_time_share) FROM metrics.job_share {of_types}")
    assert shares == [(pytest.approx(1), pytest.approx(1) if kind == "gpu" else None)]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_durations_are_counted_up_to_powers_of_two(planted: Planted, cluster: str) -> None:
    truth = planted.truth["acme_jobs"][cluster]["gpu"]
    found = planted.connection.execute(
        "SELECT up_to_seconds, jobs, job_share FROM metrics.job_time_cdf "
        "WHERE cluster = ? AND kind = 'gpu' AND job_type = 'all' AND quantity = 'duration' ORDER BY 1",
        [cluster],
    ).fetchall()
    assert [up_to for up_to, *_ in found] == [2**k for k in range(22)]
    counts = {str(up_to): jobs for up_to, jobs, _ in found}
    assert {up_to: counts[up_to] for up_to in truth["duration_up_to"]} == truth["duration_up_to"]
    assert all(share == jobs / truth["jobs"] for _, jobs, share in found)


def test_distributions_by_type_and_by_run_equal_plain_python(planted: Planted) -> None:
    """Counts and GPU time of every type, cluster and basis, over the CSV text."""
    expected: Counter[tuple[object, ...]] = Counter()
    gpu_time: dict[tuple[object, ...], float] = defaultdict(float)
    for cluster in CLUSTERS:
        for row in written(planted, cluster):
            gpus = int(row["gpu_num"])
            run = seconds(row["end_time"]) - seconds(row["start_time"]) if row["end_time"] else None
            kind, typed = "gpu" if gpus else "cpu", row["type"] or "none"
            for quantity, value in (("run", run), ("duration", float(row["duration"]) if row["duration"] else None)):
                for power in range(22):
                    if value is not None and value <= 2**power:
                        for name in (typed, "all"):
                            expected[cluster, kind, name, quantity, 2**power] += 1
                            gpu_time[cluster, kind, name, quantity, 2**power] += value * gpus
    found = planted.connection.execute(
        "SELECT cluster, kind, job_type, quantity, up_to_seconds, jobs, gpu_seconds FROM metrics.job_time_cdf "
        "WHERE trace = 'acme' AND quantity <> 'queue' AND jobs > 0"
    ).fetchall()
    assert {row[:5]: row[5] for row in found} == dict(expected)
    assert {row[:5]: row[6] for row in found} == dict(gpu_time)


def test_waits_equal_plain_python(planted: Planted) -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    for row in written(planted, "kalos"):
        for power in range(22):
            if float(row["queue"]) <= 2**power:
                expected["gpu" if int(row["gpu_num"]) else "cpu", row["type"] or "none", 2**power] += 1
    found = planted.connection.execute(
        "SELECT kind, job_type, up_to_seconds, jobs FROM metrics.job_time_cdf "
        "WHERE cluster = 'kalos' AND quantity = 'queue' AND job_type <> 'all' AND jobs > 0"
    ).fetchall()
    assert {row[:3]: row[3] for row in found} == dict(expected)


def test_durations_are_what_each_cluster_means_by_them(planted: Planted) -> None:
    seren, kalos = (planted.truth["acme_jobs"][cluster] for cluster in CLUSTERS)
    all_seren = seren["gpu"]["jobs"] + seren["cpu"]["jobs"]
    all_kalos = kalos["gpu"]["jobs"] + kalos["cpu"]["jobs"]
    counted = "SELECT cluster, count(*), count(*) FILTER (run_seconds IS NULL) FROM metrics.jobs WHERE trace = 'acme'"
    assert planted.rows(f"{counted} GROUP BY 1") == [("kalos", all_kalos, 3), ("seren", all_seren, 0)]
    assert planted.rows(
        """SELECT cluster, bool_and(published_duration_seconds = run_seconds),
               bool_and(published_duration_seconds = run_seconds + queue_seconds)
           FROM metrics.jobs WHERE trace = 'acme' AND end_utc IS NOT NULL GROUP BY 1"""
    ) == [("kalos", False, True), ("seren", True, False)]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_times_are_utc_by_the_offset_of_each(planted: Planted, cluster: str) -> None:
    expected = {row["job_id"]: datetime.fromisoformat(row["submit_time"]) for row in written(planted, cluster)}
    found = planted.connection.execute(
        "SELECT job_id, submit_utc FROM metrics.jobs WHERE cluster = ?", [cluster]
    ).fetchall()
    assert {job: time.replace(tzinfo=UTC) for job, time in found} == expected


def test_jobs_that_still_run_are_there_without_an_end(planted: Planted) -> None:
    rows = planted.rows(
        "SELECT state, end_utc, run_seconds, gpu_seconds FROM metrics.jobs WHERE trace = 'acme' AND end_utc IS NULL"
    )
    assert rows == [("RUNNING", None, None, None)] * 3


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_allocation_is_the_gpus_that_jobs_hold(planted: Planted, cluster: str) -> None:
    """Second by second, for every job, in plain Python."""
    jobs = [row for row in written(planted, cluster) if int(row["gpu_num"])]
    last = max(seconds(row["end_time"]) for row in written(planted, cluster) if row["end_time"] and int(row["gpu_num"]))
    slots: Counter[int] = Counter()
    for row in jobs:
        begin, end = seconds(row["start_time"]), seconds(row["end_time"]) if row["end_time"] else last
        while begin < end:
            until = min(end, (begin // 600 + 1) * 600)
            slots[begin // 600] += int(row["gpu_num"]) * (until - begin)
            begin = until
    found = planted.connection.execute(
        "SELECT epoch(time_utc)::BIGINT // 600, gpu_seconds, allocation_share * cluster_gpus * 600 "
        "FROM metrics.gpu_allocation WHERE cluster = ? ORDER BY 1",
        [cluster],
    ).fetchall()
    assert {slot: used for slot, used, _ in found if used} == dict(slots)
    assert [slot for slot, *_ in found] == list(range(found[0][0], found[-1][0] + 1))
    assert all(math.isclose(used, again) for _, used, again in found)


def test_box_plots_have_the_quartiles_of_numpy(planted: Planted) -> None:
    for cluster in CLUSTERS:
        sizes = defaultdict(list)
        for row in written(planted, cluster):
            sizes[row["type"] or "none"].append(int(row["gpu_num"]))
        for name, values in sizes.items():
            q1, median, q3 = numpy.percentile(values, [25, 50, 75]).tolist()
            reach = 1.5 * (q3 - q1)
            low = min(value for value in values if value >= q1 - reach)
            high = max(value for value in values if value <= q3 + reach)
            prefix = f"{cluster}/{name}/gpus/"
            found = planted.rows(
                f"SELECT quantity, value FROM metrics.claim_quantities WHERE starts_with(quantity, '{prefix}')"
            )
            box = {"whisker_low": low, "q1": q1, "median": median, "q3": q3, "whisker_high": high}
            assert {quantity.removeprefix(prefix): value for quantity, value in found} == box


def test_shares_by_size_add_up(planted: Planted) -> None:
    sizes = Counter(int(row["gpu_num"]) for row in written(planted, "seren") if int(row["gpu_num"]))
    whole, up_to = sum(sizes.values()), 0
    expected = []
    for size, count in sorted(sizes.items()):
        up_to += count
        expected.append((float(size), count, count / whole, up_to / whole))
    found = planted.connection.execute(
        "SELECT value, jobs, job_share, job_share_up_to FROM metrics.job_share "
        "WHERE cluster = 'seren' AND quantity = 'num_gpus' ORDER BY value"
    ).fetchall()
    assert found == expected


def test_arrivals_are_those_of_each_hour_of_the_day(planted: Planted) -> None:
    hours = Counter(
        datetime.fromisoformat(row["submit_time"]).astimezone(UTC).hour
        for row in written(planted, "seren")
        if int(row["gpu_num"])
    )
    found = planted.rows(
        "SELECT value, jobs FROM metrics.job_share "
        "WHERE cluster = 'seren' AND kind = 'gpu' AND quantity = 'submit_hour'"
    )
    assert dict(found) == dict(hours)


def test_earlier_traces_have_their_jobs_and_gpu_time(planted: Planted) -> None:
    for cluster in ("helios", "philly", "pai"):
        truth = planted.truth["acme_jobs"][cluster]
        found: dict[str, int] = dict(
            planted.rows(
                f"SELECT kind, jobs FROM metrics.job_totals WHERE cluster = '{cluster}' AND trace = '{cluster}'"
            )
        )
        assert found.get("gpu", 0) == truth["gpu"]["jobs"]
        assert found.get("cpu", 0) == truth["cpu"]["jobs"]
        assert planted.rows(
            f"SELECT published_gpu_seconds FROM metrics.job_totals WHERE cluster = '{cluster}' AND kind = 'gpu'"
        ) == [(truth["gpu"]["published_gpu_seconds"],)]
    assert planted.rows("SELECT count(*) FROM metrics.jobs WHERE cluster IN ('helios', 'philly', 'pai')") == [(0,)]
    states: dict[str, str] = dict(
        planted.rows("SELECT DISTINCT state_raw, state FROM staging.previous_jobs WHERE cluster = 'philly'")
    )
    assert states == {"Pass": "COMPLETED", "Killed": "CANCELLED", "Failed": "FAILED"}


def test_itp_is_as_planted_and_the_testbed_apart(planted: Planted) -> None:
    truth = planted.truth["itp_jobs"]
    expected = sorted((name, one["jobs"], one["gpu_seconds"]) for name, one in truth["clusters"].items())
    found = planted.rows("SELECT cluster, jobs, gpu_seconds FROM metrics.job_totals WHERE trace = 'itp'")
    assert found == expected
    assert planted.rows("SELECT count(*) FROM staging.testbed_jobs") == [(truth["testbed_jobs"],)]
    listed = "SELECT * FROM staging.testbed_jobs UNION ALL BY NAME SELECT * FROM staging.elasticflow_jobs"
    shared = "JOIN staging.itp_jobs USING (job_id, submission_seconds, duration_seconds, num_gpus)"
    for jobs in (listed, f"FROM ({listed}) {shared}"):
        assert planted.rows(f"SELECT count(*) FROM ({jobs})") == [(truth["elasticflow_jobs"] + truth["testbed_jobs"],)]


CLAIM = "SELECT verdict, remark FROM metrics.published_claims WHERE claim = '{}'"


def test_verdicts(planted: Planted) -> None:
    def verdict(claim: str) -> tuple[Any, ...]:
        [row] = planted.rows(CLAIM.format(claim))
        return tuple(row)

    assert verdict("acme_readme_duration_seren") == ("reproduced", None)
    assert verdict("acme_readme_duration_kalos") == ("differs", None)
    assert verdict("acme_readme_jobs") == ("differs", None)
    assert verdict("paper_psu_share") == ("no_data", "no file tells it; seen only as quoted by others")
    assert verdict("summary_seren_gpu_job_num") == ("contradicted", "other figures: 450590 in fig_treemap_seren_total")
    assert verdict("paper_kalos_eval_gputime")[0] == "contradicted"


def test_every_claim_on_jobs_has_a_value_when_all_traces_are_there(planted: Planted) -> None:
    rows = planted.rows(
        "SELECT claim FROM metrics.published_claims WHERE our_value IS NULL AND computed NOT LIKE '%/utilization/%'"
    )
    assert rows == []
    assert planted.rows("SELECT count(*) >= 450 FROM metrics.published_claims WHERE our_value IS NOT NULL") == [(True,)]


def test_labels_of_a_figure_are_recomputed_from_jobs(planted: Planted) -> None:
    """The figure was drawn from cluster_summary.csv: held against that file, its labels could only come out."""
    rows = planted.rows(
        "SELECT c.our_value, 100 * avg((coalesce(j.outcome, 'failed') = split_part(c.computed, '/', 3))::INTEGER) "
        "FROM metrics.published_claims AS c JOIN staging.job_sizes AS j "
        "ON j.trace = 'acme' AND j.kind = 'gpu' AND j.cluster = split_part(c.computed, '/', 1) "
        "WHERE c.claim LIKE 'fig_bar_count_%' GROUP BY ALL"
    )
    assert len(rows) == 6
    for ours, from_jobs in rows:
        assert ours == pytest.approx(from_jobs, abs=1e-9)
    independent = planted.rows("SELECT DISTINCT independent FROM metrics.published_claims WHERE claim LIKE 'fig_bar_%'")
    assert independent == [(True,)]


def test_what_the_release_drew_from_the_same_file_is_not_independent(planted: Planted) -> None:
    """Our values of utilization are from the published distributions, as the figures and the text of the paper are."""
    assert planted.rows(
        "SELECT DISTINCT contains(computed, '/utilization/') AND computed <> 'acme/utilization/interval_seconds' "
        "FROM metrics.published_claims WHERE NOT independent AND NOT starts_with(computed, 'itp/')"
    ) == [(True,)]


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


def test_differences_and_bounds_follow_their_definition(planted: Planted) -> None:
    rows = planted.connection.execute(
        "SELECT relation, published_value, tolerance, our_value, difference, verdict FROM metrics.published_claims "
        "WHERE our_value IS NOT NULL"
    ).fetchall()
    holds: dict[str, Callable[[float, float, float], bool]] = {
        "equal": lambda ours, said, tolerance: abs(ours - said) <= tolerance + 1e-9,
        "at_most": lambda ours, said, _: ours <= said + 1e-9,
        "at_least": lambda ours, said, _: ours >= said - 1e-9,
        "below": lambda ours, said, _: ours < said,
        "above": lambda ours, said, _: ours > said,
    }
    assert {row[0] for row in rows} == set(holds)
    for relation, said, tolerance, ours, difference, verdict in rows:
        assert difference == ours - said
        assert (verdict == "reproduced") == holds[relation](ours, said, tolerance)


def test_the_claims_are_a_reviewed_file_with_sources() -> None:
    with (Path(__file__).parents[2] / "data" / "claims.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) >= 506
    assert all(row["source"] and row["place"] and row["quantity"] and row["published_text"] for row in rows)
    assert {row["evidence"] for row in rows} == {"read", "drawn", "quoted"}
    assert all(
        ("as quoted" in row["source"] or "as cited" in row["source"]) == (row["evidence"] == "quoted") for row in rows
    )


def test_one_cluster_alone_does_not_answer_a_claim_about_both(planted: Planted, tmp_path: Path) -> None:
    """From the raw file to the claim: the jobs of Kalos are not compared with the published number of all jobs."""
    warehouse.build(
        planted.root / "acme" / "data" / "job_trace" / "trace_kalos.csv",
        tmp_path / "t",
        select=["metrics.published_claims"],
    )
    with warehouse.open(tmp_path / "t") as connection:
        claim = "SELECT our_value FROM metrics.published_claims WHERE claim = 'acme_readme_jobs'"
        assert connection.execute(claim).fetchall() == [(None,)]
