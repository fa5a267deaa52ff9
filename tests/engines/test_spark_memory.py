"""What a session keeps of parts that are made: Java must not fill up over a day of hours."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pytest

from warehouse.engines.base import Parts, Select, Source
from warehouse.engines.spark import SparkEngine
from warehouse.errors import WarehouseError
from warehouse.model import Column

COLUMNS = (Column("n", "INTEGER"),)


@pytest.fixture
def engine(spark_here: None, tmp_path: Path) -> Iterator[SparkEngine]:
    engine = SparkEngine(None, threads=1, memory_bytes=2**30, spill=tmp_path / "spill")
    yield engine
    engine.close()


def part(path: Path) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1::INTEGER AS n) TO '{path}' (FORMAT parquet)")
    return path


def views(engine: SparkEngine) -> int:
    """Of both sessions, as Spark has them."""
    cluster = engine.cluster()
    sessions = (cluster._many, cluster._few)
    return sum(len(session.catalog.listTables()) for session in sessions)


def test_views_go_with_the_parts_that_they_show(engine: SparkEngine, tmp_path: Path) -> None:
    """Those of one part, and what reads them; not those of several hours together."""
    first, second = part(tmp_path / "first"), part(tmp_path / "second")
    hour: dict[str, Source] = {
        "s.t": Parts(COLUMNS, (first,)),
        "s.u": Parts(COLUMNS, (second,)),
        "s.v": Select("SELECT n FROM s.t UNION ALL SELECT n FROM s.u", COLUMNS),
    }
    day: dict[str, Source] = {"s.t": Parts(COLUMNS, (first, second))}

    def rows(sources: Mapping[str, Source], name: str, *, few: bool) -> int:
        with engine.scratch(sources, few=few) as scratch:
            return scratch.write(Select(f"SELECT n FROM {name}", COLUMNS), tmp_path / "out", ())

    assert rows(hour, "s.v", few=False) == rows(hour, "s.v", few=True) == rows(day, "s.t", few=False) == 2
    assert views(engine) == 3 + 3 + 1
    engine.let_go(first)
    assert views(engine) == 2 + 2 + 1
    engine.let_go(second)
    assert views(engine) == 1
    assert rows(hour, "s.v", few=False) == 2


def test_python_lets_go_of_what_java_made(engine: SparkEngine, tmp_path: Path) -> None:
    """The command line looks for garbage so seldom that a whole day would pass."""
    from py4j.java_gateway import JavaObject

    path = part(tmp_path / "part")
    frames = []
    gc.disable()
    try:
        for _ in range(3):
            with engine.scratch({"s.t": Parts(COLUMNS, (path,))}) as scratch:
                scratch.write(Select("SELECT n FROM s.t", COLUMNS), tmp_path / "out", ())
            frames.append(sum(isinstance(one, JavaObject) for one in gc.get_objects()))
    finally:
        gc.enable()
    assert frames[1] == frames[2]


def test_an_end_without_a_cluster_is_told(engine: SparkEngine, tmp_path: Path) -> None:
    with engine.scratch({"s.t": Parts(COLUMNS, (part(tmp_path / "part"),))}) as scratch:
        engine.cluster()._many.sparkContext._jsc.sc().stop()  # as Java does that has no memory left
        with pytest.raises(WarehouseError, match=r"^Spark on this machine ended the build's application\n.*spark\.log"):
            scratch.write(Select("SELECT n FROM s.t", COLUMNS), tmp_path / "out", ())
