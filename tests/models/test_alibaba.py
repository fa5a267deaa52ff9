"""The published Alibaba GPU trace v2023, recomputed in polars from the CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest

import warehouse
from tests.release import only

pytestmark = pytest.mark.real
FILES = Path(__file__).parents[2] / "data" / "alibaba"
TABLES = (
    "metrics.jobs", "staging.trace_jobs", "metrics.nodes", "metrics.gpu_allocation", "metrics.idle_gpus",
    "metrics.node_allocation", "staging.rejected_rows",
)  # fmt: skip
SLOT = 600


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A build of the trace alone."""
    if not FILES.is_dir():
        pytest.skip("the Alibaba trace is not at hand: .ci/run lays it out in data/alibaba")
    base = tmp_path_factory.mktemp("alibaba")
    with only(base / "project", *TABLES):
        warehouse.build(FILES, base / "warehouse")
    with warehouse.open(base / "warehouse") as connection:
        yield connection


def pods(name: str) -> polars.DataFrame:
    """Return a list of pods with its GPUs in thousandths."""
    (path,) = FILES.rglob(f"openb_pod_list_{name}.csv")
    read = polars.read_csv(path, infer_schema_length=None)
    return read.with_columns(milli=polars.col("num_gpu") * polars.col("gpu_milli"))


def with_gpus() -> polars.DataFrame:
    """Return the pods of the default list that held GPUs, with the seconds at which they began and ended."""
    ran = (polars.col("milli") > 0) & (polars.col("deletion_time") > polars.col("scheduled_time"))
    return pods("default").drop_nulls("scheduled_time").filter(ran)


def test_every_pod_has_its_request_times_and_gpu_seconds(built: duckdb.DuckDBPyConnection) -> None:
    ran = polars.col("deletion_time") - polars.col("scheduled_time")
    default = pods("default").with_columns(milli_seconds=polars.col("milli") * ran)
    columns = ["name", "milli", "creation_time", "scheduled_time", "deletion_time", "pod_phase", "qos", "milli_seconds"]
    found = built.execute(
        "SELECT job_id, (num_gpus * 1000)::BIGINT, submit_seconds, start_seconds, end_seconds, state_raw, job_type, "
        "(gpu_seconds * 1000)::BIGINT "
        "FROM metrics.jobs WHERE trace = 'alibaba_v2023' AND submit_utc IS NULL AND start_utc IS NULL"
    ).fetchall()
    assert sorted(found) == sorted(default.select(columns).rows())
    assert len(found) == 8152
    variants = built.execute("SELECT variant, count(*) FROM staging.trace_jobs GROUP BY 1").fetchall()
    assert len(variants) == 24
    assert dict(variants) == {name: pods(name).height for name, _ in variants}, "24 lists, which are not summed"
    assert built.execute("SELECT count(*) FROM staging.rejected_rows").fetchall() == [(0,)]


def test_nodes(built: duckdb.DuckDBPyConnection) -> None:
    (path,) = FILES.rglob("openb_node_list_all_node.csv")
    nodes = polars.read_csv(path).select(polars.len(), polars.col("gpu", "memory_mib").sum()).row(0)
    assert nodes[:2] == (1523, 6212)
    asked = "SELECT count(*), sum(num_gpus)::BIGINT, sum(memory_bytes)::BIGINT >> 20 FROM metrics.nodes"
    assert built.execute(asked).fetchall() == [nodes]


def test_allocation_of_each_ten_minutes(built: duckdb.DuckDBPyConnection) -> None:
    """Pods are cut into the slots that they overlap: another way than the model, which adds up changes."""
    begin, end = polars.col("scheduled_time"), polars.col("deletion_time")
    slots = with_gpus().with_columns(slot=polars.int_ranges(begin // SLOT, (end - 1) // SLOT + 1)).explode("slot")
    low = polars.max_horizontal(begin, polars.col("slot") * SLOT)
    high = polars.min_horizontal(end, (polars.col("slot") + 1) * SLOT)
    used = slots.group_by("slot").agg((polars.col("milli") * (high - low)).sum())
    found: dict[int, int] = dict(
        built.execute(
            "SELECT time_seconds, (gpu_seconds * 1000)::BIGINT FROM metrics.gpu_allocation WHERE gpu_seconds > 0"
        ).fetchall()
    )
    assert found == {slot * SLOT: milli for slot, milli in used.rows() if milli}
    assert built.execute(
        "SELECT DISTINCT cluster_gpus, allocation_share = gpu_seconds / 600 / 6212, time_utc "
        "FROM metrics.gpu_allocation"
    ).fetchall() == [(6212, True, None)]


def test_free_gpus_at_each_change(built: duckdb.DuckDBPyConnection) -> None:
    milli = polars.col("milli")
    changes = [
        with_gpus().select(
            second=polars.col(column),
            milli=sign * milli,
            whole=sign * polars.when(milli >= 1000).then(milli).otherwise(0),
            sharing=sign * (milli < 1000).cast(polars.Int64),
        )
        for column, sign in (("scheduled_time", 1), ("deletion_time", -1))
    ]
    by_second = polars.concat(changes).group_by("second").sum().sort("second")
    held = by_second.select("second", polars.col("milli", "whole", "sharing").cum_sum())
    expected = [
        (second, 6_212_000 - milli, max(6212 - whole // 1000 - sharing, 0), 6212 + (-milli // 1000))
        for second, milli, whole, sharing in held.rows()
    ]
    found = built.execute(
        "SELECT begin_seconds, (free_gpus * 1000)::BIGINT, whole_gpus_min, whole_gpus_max "
        "FROM metrics.idle_gpus ORDER BY 1"
    ).fetchall()
    assert found == expected
    assert built.execute("SELECT DISTINCT node FROM metrics.node_allocation").fetchall() == [("all",)]
