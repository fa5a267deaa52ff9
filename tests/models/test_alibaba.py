"""The published Alibaba GPU trace v2023, recomputed in polars from the CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest

import warehouse

pytestmark = pytest.mark.real
FILES = Path(__file__).parents[2] / "data" / "alibaba"
TABLES = ("metrics.jobs", "staging.trace_jobs", "metrics.nodes", "metrics.gpu_allocation", "metrics.idle_gpus")
OTHERS = ("metrics.node_allocation", "staging.rejected_rows", "metrics.published_claims")
SLOT = 600


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A build of the trace alone."""
    if not FILES.is_dir():
        pytest.skip("the Alibaba trace is not at hand: .ci/run lays it out in data/alibaba")
    target = tmp_path_factory.mktemp("alibaba") / "warehouse"
    warehouse.build(FILES, target, select=[*TABLES, *OTHERS])
    with warehouse.open(target) as connection:
        yield connection


def pods(name: str) -> polars.DataFrame:
    """Return a list of pods with its GPUs in thousandths."""
    (path,) = FILES.rglob(f"openb_pod_list_{name}.csv")
    read = polars.read_csv(path, infer_schema_length=None)
    return read.with_columns(milli=polars.col("num_gpu") * polars.col("gpu_milli"))


def test_counts_and_gpu_seconds_of_the_default_list(built: duckdb.DuckDBPyConnection) -> None:
    default = pods("default")
    ran = polars.col("deletion_time") - polars.col("scheduled_time")
    expected = default.select(
        polars.len(), polars.col("scheduled_time").null_count(), (polars.col("num_gpu") == 0).sum(),
        polars.col("milli").sum().alias("milli_gpus"), (polars.col("milli") * ran).sum().alias("milli_seconds"),
    ).row(0)  # fmt: skip
    assert expected[:3] == (8152, 897, 1088)
    assert built.execute(
        """SELECT count(*), count(*) FILTER (WHERE start_seconds IS NULL), count(*) FILTER (WHERE num_gpus = 0),
            (sum(num_gpus) * 1000)::BIGINT, (sum(gpu_seconds) * 1000)::BIGINT
        FROM metrics.jobs WHERE trace = 'alibaba_v2023' AND submit_utc IS NULL AND start_utc IS NULL"""
    ).fetchall() == [expected]


def test_the_published_totals_come_out(built: duckdb.DuckDBPyConnection) -> None:
    of_trace = "starts_with(claim, 'totals/alibaba_v2023/')"
    totals = f"SELECT quantity, our_value FROM metrics.published_claims WHERE {of_trace} ORDER BY ALL"
    assert built.execute(totals).fetchall() == [("jobs", 8152.0), ("nodes", 1523.0)]
    check = "SELECT status FROM meta.checks WHERE model = 'metrics.published_claims' AND severity = 'warn'"
    assert built.execute(check).fetchall() == [("passed",)]


def test_every_pod_has_its_request_and_times(built: duckdb.DuckDBPyConnection) -> None:
    columns = ["name", "milli", "creation_time", "scheduled_time", "deletion_time", "pod_phase", "qos"]
    found = built.execute(
        "SELECT job_id, (num_gpus * 1000)::BIGINT, submit_seconds, start_seconds, end_seconds, state_raw, job_type "
        "FROM metrics.jobs"
    ).fetchall()
    assert sorted(found) == sorted(pods("default").select(columns).rows())


def test_lists_are_variants_and_are_not_summed(built: duckdb.DuckDBPyConnection) -> None:
    found: dict[str, int] = dict(
        built.execute("SELECT variant, count(*) FROM staging.trace_jobs GROUP BY 1").fetchall()
    )
    assert len(found) == 24
    assert found == {name: pods(name).height for name in found}
    assert built.execute("SELECT count(*) FROM staging.rejected_rows").fetchall() == [(0,)]


def test_nodes(built: duckdb.DuckDBPyConnection) -> None:
    (path,) = FILES.rglob("openb_node_list_all_node.csv")
    nodes = polars.read_csv(path)
    expected = nodes.select(polars.len(), polars.col("gpu").sum(), (polars.col("memory_mib").sum() * 2**20).alias("b"))
    assert expected.row(0)[:2] == (1523, 6212)
    found = built.execute(
        "SELECT count(*), sum(num_gpus)::BIGINT, sum(memory_bytes)::BIGINT FROM metrics.nodes"
    ).fetchall()
    assert found == expected.rows()


def test_allocation_of_each_ten_minutes(built: duckdb.DuckDBPyConnection) -> None:
    """Pods are cut into the slots that they overlap: another way than the model, which adds up changes."""
    held = (
        pods("default")
        .drop_nulls("scheduled_time")
        .filter((polars.col("milli") > 0) & (polars.col("deletion_time") > polars.col("scheduled_time")))
    )
    begin, end = polars.col("scheduled_time"), polars.col("deletion_time")
    slots = held.with_columns(slot=polars.int_ranges(begin // SLOT, (end - 1) // SLOT + 1)).explode("slot")
    low, high = (
        polars.max_horizontal(begin, polars.col("slot") * SLOT),
        polars.min_horizontal(end, (polars.col("slot") + 1) * SLOT),
    )
    used = (
        slots.group_by("slot")
        .agg((polars.col("milli") * (high - low)).sum().alias("used"))
        .filter(polars.col("used") > 0)
    )
    expected = {slot * SLOT: milli for slot, milli in used.rows()}
    found: dict[int, int] = dict(
        built.execute(
            "SELECT time_seconds, (gpu_seconds * 1000)::BIGINT FROM metrics.gpu_allocation WHERE gpu_seconds > 0"
        ).fetchall()
    )
    assert found == expected
    assert built.execute(
        "SELECT DISTINCT cluster_gpus, allocation_share = gpu_seconds / 600 / 6212, time_utc "
        "FROM metrics.gpu_allocation"
    ).fetchall() == [(6212, True, None)]


def test_free_gpus_at_each_change(built: duckdb.DuckDBPyConnection) -> None:
    held = (
        pods("default")
        .drop_nulls("scheduled_time")
        .filter((polars.col("milli") > 0) & (polars.col("deletion_time") > polars.col("scheduled_time")))
    )
    whole = polars.when(polars.col("milli") >= 1000).then(polars.col("milli")).otherwise(0)
    sides = [
        held.select(
            second=polars.col(column), milli=sign * polars.col("milli"), whole=sign * whole,
            sharing=sign * (polars.col("milli") < 1000).cast(polars.Int64),
        )
        for column, sign in (("scheduled_time", 1), ("deletion_time", -1))
    ]  # fmt: skip
    held_at = (
        polars.concat(sides).group_by("second").sum().sort("second")
        .select("second", polars.col("milli", "whole", "sharing").cum_sum())
    )  # fmt: skip
    expected = [
        (second, 6_212_000 - milli, max(6212 - whole // 1000 - sharing, 0), 6212 + (-milli // 1000))
        for second, milli, whole, sharing in held_at.rows()
    ]
    assert (
        built.execute(
            "SELECT begin_seconds, (free_gpus * 1000)::BIGINT, whole_gpus_min, whole_gpus_max "
            "FROM metrics.idle_gpus ORDER BY 1"
        ).fetchall()
        == expected
    )
    assert built.execute("SELECT DISTINCT node FROM metrics.node_allocation").fetchall() == [("all",)]
