"""Each construct of `fixtures/spark/constructs.sql` gives the same rows on Spark as in DuckDB.

They run on tables with NULLs, negative numbers, empty lists, times before 1970 and texts that do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.engines import cluster as spark
from tests.test_spark_dialect import pairs
from warehouse.spark_dialect import to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
CREATE TABLE t AS SELECT * FROM (VALUES
    (1, 'p', 7, 2, 1500, 3200, 1.0, 'ens10_7', TIMESTAMP '2024-05-23 16:13:50.678', '2024-05-23 16:13:50.678', [4, 5]),
    (2, 'p', -7, 2, -7, 3, -2.5, 'ST-1.GPU.x.14:1', TIMESTAMP '2024-05-23 15:59:59.999999', '2024-02-29 00:00:00', []),
    (3, 'q', 0, 1, 7, 7, NULL, NULL, TIMESTAMP '1969-12-31 23:59:59.5', '1970-01-01 00:00:00', NULL),
    (4, 'q', 40, NULL, 2, -3, 0.125, 'ens19/4', NULL, NULL, [NULL, 9]),
    (5, NULL, NULL, 3, NULL, 5, 1e15, '14', TIMESTAMP '2024-01-01 00:00:00', '2024-01-01 00:00:00.000001', [1])
) AS r (id, g, i, k, a, b, x, s, ts, stamp, l);
ALTER TABLE t ALTER i TYPE BIGINT; ALTER TABLE t ALTER k TYPE BIGINT; ALTER TABLE t ALTER x TYPE DOUBLE;
ALTER TABLE t ALTER a TYPE BIGINT; ALTER TABLE t ALTER b TYPE BIGINT; ALTER TABLE t ALTER l TYPE BIGINT[];
ALTER TABLE t ADD st STRUCT(a BIGINT, b VARCHAR); UPDATE t SET st = {'a': a, 'b': s} WHERE id <> 4;
CREATE TABLE u AS SELECT unnest([0, 7, 8])::BIGINT AS i;
CREATE TABLE v AS SELECT unnest([7, -7, 40])::BIGINT AS i;
CREATE TABLE w AS SELECT unnest([40, 99])::BIGINT AS i;
"""


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture(scope="module")
def on_spark(on_duckdb: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the same tables, as DuckDB's Parquet files."""
    if why := spark.missing():
        pytest.skip(why)
    from warehouse.engines import spark_session

    folder = tmp_path_factory.mktemp("constructs")
    session = spark_session.start("local[1]", threads=1, memory_bytes=2**30, log=folder / "spark.log")
    try:
        for key, value in spark_session.FEW.items():
            session.conf.set(key, value)
        for name in "tuvw":
            on_duckdb.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")
            session.read.parquet(f"{folder / name}.parquet").createOrReplaceTempView(name)
        yield session
    finally:
        session.stop()


def plain(value: Any) -> Any:
    """A value without what only tells engines apart: rows of structs, width of integers, decimals."""
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-15)
    return bool(ours == theirs)


def test_every_construct_gives_the_same_rows(on_duckdb: duckdb.DuckDBPyConnection, on_spark: SparkSession) -> None:
    """One test, so that one process of the tests starts one Java; what differs is listed by its title."""
    different = {}
    for title, ours, _ in pairs():
        expected = sorted(([plain(one) for one in row] for row in on_duckdb.execute(ours).fetchall()), key=repr)
        found = sorted(([plain(one) for one in row] for row in on_spark.sql(to_spark(ours)).collect()), key=repr)
        assert expected, title
        if not same(expected, found):
            different[title] = (expected, found)
    assert different == {}
