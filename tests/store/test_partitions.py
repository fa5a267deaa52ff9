"""Names of partitions, and their folders: DuckDB reads every value back from the name of its folder."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from tests.tiny import Tiny
from warehouse.base.sql_text import literal
from warehouse.engine.sources import Parts, source_sql
from warehouse.formats.base import RawFile
from warehouse.project.contract import Column
from warehouse.store.manifest import columns_of, folder_of, partition_of, values_of

HOUR = datetime(2024, 5, 23, 16)  # noqa: DTZ001
COLUMNS = (Column("hour_utc", "TIMESTAMP"), Column("switch", "VARCHAR"), Column("bytes", "BIGINT"))
ODD = [
    "Leaf-1", "a/b", "a\\b", "100%", "%41", "%2F", "a=b", "=", "a b", " a ", "it's", 'a"b', "a,b", "a|b", "a*b", "a?b",
    "[ab]", "{a}", "a;b", "a\nb", "a\tb", "a#b", "a&b", "a+b", "~", ".", "..", "", "NULL", "null", "ü", "交换机", "🚀",
    "1e3", "01", "-0", "true", "2024-05-23", "switch=Leaf-1", "all", "2024-05-23T16", "a\u202eb",
]  # fmt: skip


def test_odd_values_come_back_from_names_and_duckdb_opens_the_file_of_one_alone(tmp_path: Path) -> None:
    """The files lack the columns of the folders."""
    files = [RawFile(Path("/x"), "x", 1, 1, hour_utc=HOUR, switch=switch) for switch in ODD]
    names = [partition_of(file, ("hour_utc", "switch")) or "" for file in files]
    for switch, name in zip(ODD, names, strict=True):
        assert dict(values_of(name)) == {"hour_utc": "2024-05-23 16:00:00", "switch": switch}
        assert (columns_of(name), folder_of(name).count("/")) == (("hour_utc", "switch"), 1)
    paths = [tmp_path / "parts" / "staging.x" / folder_of(name) / "f.parquet" for name in names]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        duckdb.execute(f"COPY (SELECT {number} AS bytes) TO {literal(str(path))} (FORMAT parquet)")
    sql = source_sql(Parts(COLUMNS, tuple(map(str, paths)), ("hour_utc", "switch")))
    assert "hive_partitioning=true" in sql
    expected = [(HOUR, switch, number) for number, switch in enumerate(ODD)]
    assert duckdb.execute(f"SELECT * FROM ({sql}) ORDER BY bytes").fetchall() == expected
    types = duckdb.execute(f"SELECT typeof(hour_utc), typeof(switch) FROM ({sql}) LIMIT 1").fetchall()
    assert types == [("TIMESTAMP", "VARCHAR")]
    for number, switch in enumerate(ODD):
        one = f"SELECT bytes FROM ({sql}) WHERE switch = {literal(switch)}"
        assert duckdb.execute(one).fetchall() == [(number,)], switch
        plan = duckdb.execute(f"EXPLAIN {one}").fetchall()[0][1]
        assert re.search(r"Scanning Files: *1/", plan), switch


HOURLY = {"hour_utc": "TIMESTAMP", "port": "VARCHAR", "bytes": "BIGINT"}
OF_PORTS = (
    "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, PortName AS port, sum(InOctets) AS bytes\n"
    "FROM raw.port_counters GROUP BY ALL"
)


@pytest.fixture
def large(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A table of a part per hour that is large, so that it is a view of its parts."""
    monkeypatch.setattr("warehouse.runner.catalog.SMALL_BYTES", 0)
    tiny.model("staging.hour", OF_PORTS, HOURLY, "grain: [hour_utc, port]", "partition: hour_utc")
    tiny.model(
        "metrics.all_hours", "SELECT port, sum(bytes) AS bytes FROM staging.hour GROUP BY ALL",
        {"port": "VARCHAR", "bytes": "BIGINT"},
    )  # fmt: skip
    return tiny


@pytest.mark.parametrize("name", ["bytes=1/target", "hour_utc=2000-01-01 00%3A00%3A00"])
def test_a_target_may_lie_in_a_folder_that_looks_like_a_partition(large: Tiny, name: str) -> None:
    """DuckDB would take its value for those of the column."""
    large.target = large.base / name
    large.made()
    assert large.ask("SELECT strftime(hour_utc, '%H'), port, bytes FROM staging.hour ORDER BY ALL") == [
        ("16", "TwoHundredGigE1/0/1:1", 100), ("17", "TwoHundredGigE1/0/1:1", 100),
    ]  # fmt: skip
    assert large.ask("SELECT bytes FROM metrics.all_hours") == [(200,)]
    assert large.ask("SELECT kind FROM meta.models WHERE model = 'staging.hour'") == [("partitioned",)]


def test_a_view_lists_the_files_of_its_own_build_alone(large: Tiny) -> None:
    """Beside them lie parts of kept builds, of builds that run, and whatever else somebody puts there."""
    large.made()
    first = large.ask("FROM staging.hour ORDER BY ALL")
    own = sorted((large.target / "parts" / "staging.hour").rglob("*.parquet"))
    assert len(own) == 2
    for path in own:
        foreign = f"SELECT hour_utc, port || ' foreign' AS port, 10^9::BIGINT AS bytes FROM {literal(str(path))}"
        for place in (path.with_name(f"{'f' * 32}.parquet"), path.parent.with_name("hour_utc=2000-01-01") / path.name):
            place.parent.mkdir(exist_ok=True)
            duckdb.execute(f"COPY ({foreign}) TO {literal(str(place))} (FORMAT parquet)")
    assert large.ask("FROM staging.hour ORDER BY ALL") == first
    of_hour = "EXPLAIN SELECT bytes FROM staging.hour WHERE hour_utc = TIMESTAMP '2024-05-23 16:00:00'"
    assert re.search(r"Scanning Files: *1/2", str(large.ask(of_hour))), "a query of an hour opens its file alone"
    [kept] = large.target.glob("builds/*/catalog.duckdb")
    large.file(1, "1,101,2,200,0,0.5")
    assert large.made() == {"staging.hour 2024-05-23T17", "metrics.all_hours"}
    assert large.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (101,)]
    with duckdb.connect(str(kept), read_only=True) as connection:
        assert connection.execute("FROM staging.hour ORDER BY ALL").fetchall() == first
