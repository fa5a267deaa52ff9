"""Utilization: planted values of the sample are found, and published ones in the real files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.models.conftest import Planted

Connection = Any


@pytest.fixture
def truth_and_tables(planted: Planted) -> tuple[dict[str, Any], Connection]:
    return planted.truth["utilization"], planted.connection


def test_distributions_are_those_of_the_planted_samples(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    found = tables.execute(
        "SELECT cluster, metric, samples, round(zero_share * samples)::BIGINT, round(mean * samples * 1000)::BIGINT, "
        "p50, max_value FROM metrics.utilization_distribution ORDER BY ALL"
    ).fetchall()
    assert found == sorted(
        (g["cluster"], g["metric"], g["samples"], g["zero_samples"], g["sum_thousandths"], g["median"], g["max"])
        for g in truth["groups"]
    )


def test_minutes_add_up_to_the_planted_samples(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    found = tables.execute(
        "SELECT cluster, metric, count(*), sum(samples), sum(zero_samples), round(sum(mean * samples) * 1000) "
        "FROM metrics.utilization_minute GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == sorted(
        (g["cluster"], g["metric"], g["minutes"], g["samples"], g["zero_samples"], g["sum_thousandths"])
        for g in truth["groups"]
    )


def test_cells_add_up_by_server_too(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    found = tables.execute(
        "SELECT cluster, metric, count(value), round(sum(value) * 1000) "
        "FROM staging.utilization GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == sorted((g["cluster"], g["metric"], g["samples"], g["sum_thousandths"]) for g in truth["groups"])


def test_what_is_odd_about_files_is_found(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    found = tables.execute(
        "SELECT replace(file, 'acme/utilization/', ''), rows, columns, covered_rows, longest_gap_seconds, "
        "columns_in_doubt FROM metrics.utilization_quality ORDER BY ALL"
    ).fetchall()
    files = [file for group in truth["groups"] for file in group["files"]]
    assert found == sorted(
        (f["path"], f["rows"], f["columns"], f["covered_rows"], f["longest_gap_seconds"], len(f["columns_in_doubt"]))
        for f in files
    )
    doubts = tables.execute("SELECT name FROM staging.utilization_columns WHERE problem IS NOT NULL").fetchall()
    assert [name for (name,) in doubts] == [name for file in files for name in file["columns_in_doubt"]]
    nans = tables.execute("SELECT sum(nan_cells) FROM metrics.utilization_quality").fetchall()
    assert nans == [(sum(group["nan_cells"] for group in truth["groups"]),)]
    empty = tables.execute(
        "SELECT release_path, reason FROM raw.files WHERE status = 'skipped' AND release_path LIKE 'acme/util%'"
    ).fetchall()
    assert empty == [(f"acme/utilization/{path}", "no rows below the header") for path in truth["without_rows"]]


def test_lines_and_cells_that_are_none_are_named(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    found = tables.execute(
        "SELECT line, reason, text FROM staging.rejected_rows WHERE file LIKE 'acme/util%' ORDER BY line"
    ).fetchall()
    planted = sorted((one for group in truth["groups"] for one in group["rejected"]), key=lambda one: one["line"])
    assert len(found) == len(planted)
    for (line, reason, text), one in zip(found, planted, strict=True):
        assert line == one["line"]
        if one["cell"] is None:
            assert reason == "the same time as in line 12"
        else:
            assert one["cell"] in text.split(",")
            assert f"of {one['column']}: {one['cell']!r}" in reason


def test_power_is_that_of_the_planted_servers(truth_and_tables: tuple[dict[str, Any], Connection]) -> None:
    truth, tables = truth_and_tables
    page = (Path(__file__).parents[2] / "docs" / "metrics" / "utilization.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    columns = "server_kind, server_type, measure, servers, samples, round(mean_watts * samples)::BIGINT, p50"
    power = tables.sql(statement)
    assert power.project(columns).order("ALL").fetchall() == sorted(
        (p["server_kind"], p["server_type"], p["measure"], p["servers"], p["samples"], p["sum"], p["median"])
        for p in truth["power"]
    )


# the real files -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def acme(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    target = tmp_path_factory.mktemp("acme")
    warehouse.build(real / "acme", target)
    with warehouse.open(target) as connection:
        yield connection


CLAIMS = {
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


@pytest.mark.real
def test_claims_on_utilization_have_our_values_and_verdicts(acme: Connection) -> None:
    rows = acme.execute("SELECT claim, our_value, verdict FROM metrics.published_claims").fetchall()
    found = {claim: (value, verdict) for claim, value, verdict in rows}
    for claim, (value, verdict) in CLAIMS.items():
        assert found[claim] == (value if value is None else pytest.approx(value, rel=0.002), verdict), claim


@pytest.mark.real
def test_labels_of_bars_have_no_data_without_jobs(acme: Connection) -> None:
    """Their jobs are not at hand; cluster_summary.csv, which they were drawn from, is."""
    assert acme.execute("SELECT count(*) FROM staging.cluster_summary").fetchall() == [(5,)]
    rows = acme.execute("SELECT verdict, remark FROM metrics.published_claims WHERE claim LIKE 'fig_bar_%'").fetchall()
    assert len(rows) == 12
    assert set(rows) == {("no_data", "not loaded: jobs of seren"), ("no_data", "not loaded: jobs of kalos")}
    assert acme.execute(
        "SELECT DISTINCT independent FROM metrics.published_claims WHERE verdict = 'reproduced'"
    ).fetchall() == [(False,)]


@pytest.mark.real
def test_both_series_stand_where_two_files_disagree(acme: Connection) -> None:
    """Zeros of Kalos' GPU utilization: 33.8 % in the file that the figure draws, 25.8 % in the other."""
    assert acme.execute(
        "SELECT origin, p50, round(zero_share * 1000) / 10, figure IS NOT NULL, differs_from "
        "FROM metrics.utilization_distribution WHERE cluster = 'kalos' AND metric = 'GPU_UTIL' ORDER BY origin"
    ).fetchall() == [
        ("util_gpu_kalos.pkl 1", 97.0, 33.8, True, ["util_gpu_kalos_full.pkl 1"]),
        ("util_gpu_kalos_full.pkl 1", 98.0, 25.8, False, ["util_gpu_kalos.pkl 1"]),
    ]
    same = acme.execute(
        "SELECT DISTINCT largest_difference FROM metrics.utilization_distribution WHERE metric = 'TC_ACTIVITY'"
    ).fetchall()
    assert same == [(0.0,)]


@pytest.mark.real
def test_the_pandas_pickle_is_refused_by_name(acme: Connection) -> None:
    assert acme.execute("SELECT release_path, reason FROM raw.files WHERE status = 'skipped'").fetchall() == [
        (
            "acme/utilization/util_pkl/util_gpu_pai.pkl",
            "refused: opcode EMPTY_TUPLE at byte 46",
        )
    ]
