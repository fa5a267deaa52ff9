"""The published file: complete, documented, read-only, and replaced atomically."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR the port", "speed": "BIGINT [bit/s] line rate"}


@pytest.fixture
def published(tiny: Tiny) -> Tiny:
    """A model of every kind, built."""
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "sources: a 'book'")
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 20", COLUMNS, "materialize: view")
    tiny.model(
        "metrics.hour",
        "SELECT hour_utc, count(*) AS files FROM raw.files WHERE hour_utc IS NOT NULL GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP the hour", "files": "BIGINT"},
        "partition: hour_utc",
        "checks:",
        "  - files > 0",
        "  - 'warn: files > 1'",
    )
    assert tiny.build().status == 0
    return tiny


def test_the_file_is_read_only_and_of_a_version_that_older_engines_read(published: Tiny) -> None:
    path = published.target / "warehouse.duckdb"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS w (READ_ONLY)")
        tags = connection.execute("SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'w'")
        assert "v1.4" in str(tags.fetchone())


def test_no_temporary_file_remains_in_the_target(published: Tiny) -> None:
    names = sorted(path.name for path in published.target.iterdir())
    assert names == ["builds", "cache", "lock", "parts", "state.sqlite", "tmp", "warehouse.duckdb"]
    hidden = [path for path in published.target.rglob(".*") if path.name != ".gitignore"]
    assert hidden == []


def test_tables_and_columns_have_comments(published: Tiny) -> None:
    assert published.ask("SELECT comment FROM duckdb_tables() WHERE table_name = 'ports'") == [("A model.",)]
    assert published.ask("SELECT comment FROM duckdb_views() WHERE view_name = 'fast'") == [("A model.",)]
    for table in ("ports", "fast"):
        assert published.ask(
            f"SELECT column_name, comment FROM duckdb_columns() WHERE table_name = '{table}' ORDER BY column_index"
        ) == [("port", "the port"), ("speed", "[bit/s] line rate")]


def test_meta_describes_the_build_and_its_tables(published: Tiny) -> None:
    ((build, version, engine, folders, target),) = published.ask(
        "SELECT build_id, version, engine, data_folders, target FROM meta.build"
    )
    assert build == (published.target / "builds" / "current").read_text(encoding="utf-8").strip()
    assert version == warehouse.__version__
    assert engine == f"duckdb {duckdb.__version__}"
    assert folders == [str(published.data)]
    assert target == str(published.target)
    assert published.ask(
        "SELECT model, kind, rows, grain, partition_column, file, sources, reads FROM meta.models "
        "WHERE regexp_matches(model, '^(staging|topology|metrics|reference)') ORDER BY model"
    ) == [
        ("metrics.hour", "table", 2, ["hour_utc"], "hour_utc", "models/metrics/hour.sql", None, ["raw.files"]),
        ("metrics.total", "table", 1, ["name"], None, "models/metrics/total.sql", None, ["staging.ports"]),
        ("reference.speeds", "reference", None, [], None, "data/speeds.csv", None, []),
        ("staging.ports", "table", 2, ["port"], None, "models/staging/ports.sql", "a 'book'", ["reference.speeds"]),
        ("topology.fast", "view", None, ["port"], None, "models/topology/fast.sql", None, ["staging.ports"]),
    ]
    assert published.ask("SELECT * FROM meta.columns WHERE model = 'staging.ports' ORDER BY position") == [
        ("staging.ports", 1, "port", "VARCHAR", None, "the port"),
        ("staging.ports", 2, "speed", "BIGINT", "bit/s", "line rate"),
    ]
    assert published.ask(
        "SELECT check_text, severity, status, failures, count(*) FROM meta.checks WHERE model = 'metrics.hour' "
        "GROUP BY ALL ORDER BY ALL"
    ) == [
        ("files > 0", "error", "passed", 0, 2),
        ("files > 1", "warn", "warned", 1, 2),
        ("grain(hour_utc)", "error", "passed", 0, 2),
    ]


def test_every_relation_can_be_read(published: Tiny) -> None:
    relations = published.ask("SELECT schema || '.' || name FROM (SHOW ALL TABLES)")
    counts = {str(name): published.ask(f"SELECT count(*) FROM {name}")[0][0] for (name,) in relations}
    assert counts["raw.port_counters"] == counts["raw.files"] == counts["metrics.hour"] == 2
    assert counts["reference.speeds"] == counts["staging.ports"] == 2
    assert counts["topology.fast"] == counts["metrics.total"] == 1


def test_every_relation_of_the_sample_can_be_read(built: Path) -> None:
    with warehouse.open(built) as connection:
        for (name,) in connection.execute("SELECT schema || '.' || name FROM (SHOW ALL TABLES)").fetchall():
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() is not None


def test_a_reader_keeps_the_build_that_it_opened_and_the_next_one_sees_the_new(published: Tiny) -> None:
    sql = "SELECT speed FROM metrics.total"
    with warehouse.open(published.target) as before:
        assert before.execute(sql).fetchall() == [(50,)]
        published.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,1")
        assert published.build().status == 0
        assert before.execute(sql).fetchall() == [(50,)]
        assert published.ask(sql) == [(1,)]
        assert before.execute("SELECT count(*) FROM metrics.hour").fetchall() == [(2,)]


def test_another_process_can_read_while_builds_run(published: Tiny) -> None:
    script = (
        "import sys, warehouse\n"
        "for _ in range(5):\n"
        "    with warehouse.open(sys.argv[1]) as connection:\n"
        "        print(connection.sql('SELECT speed FROM metrics.total').fetchall()[0][0])"
    )
    command = [sys.executable, "-c", script, str(published.target)]
    extra = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as reader:
        while reader.poll() is None:
            extra += 1
            published.model("staging.ports", f"SELECT port, speed + {extra} AS speed FROM reference.speeds", COLUMNS)
            assert published.build().status == 0
        assert reader.stdout is not None
        said = reader.stdout.read()
    assert reader.returncode == 0, said
    answers = [int(line) for line in said.split()]
    assert len(answers) == 5
    assert answers == sorted(answers)  # each reader sees the old or the new build, and none goes back
    assert set(answers) <= {50 + 2 * step for step in range(extra + 1)}


def test_a_build_of_equal_rows_is_the_same_build(published: Tiny) -> None:
    before = published.ask("SELECT build_id FROM meta.build")
    assert json.loads(published.build("--json").out)["changed"] is False
    assert published.ask("SELECT build_id FROM meta.build") == before
    assert len(list((published.target / "builds").glob("*/manifest.json"))) == 1


def test_the_last_builds_are_kept_and_can_be_opened(published: Tiny) -> None:
    builds = []
    for speed in range(5):
        published.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, f"eth0,{speed}")
        assert published.build("--keep", "2").status == 0
        builds += [row[0] for row in published.ask("SELECT build_id FROM meta.build")]
    kept = {path.parent.name for path in (published.target / "builds").glob("*/catalog.duckdb")}
    assert kept == set(builds[-2:])


def test_all_is_on_disk_before_it_is_published(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the order of fsync calls with the files and folders that the published file needs."""
    synced: list[int] = []
    published: list[int] = []
    fsync, replace = os.fsync, os.replace

    def noted(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    def replaced(source: Path, target: Path) -> None:
        replace(source, target)
        if Path(target).name == "warehouse.duckdb":
            published.append(len(synced))

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", replaced)
    assert tiny.build().status == 0
    before = set(synced[: published[0]])
    build = tiny.target / "builds" / (tiny.target / "builds" / "current").read_text(encoding="utf-8").strip()
    parts = list((tiny.target / "parts").glob("[!r]*/*/*.parquet"))
    needed = [*parts, *(path.parent for path in parts), *build.glob("*"), build.parent]
    assert parts
    assert {path.stat().st_ino for path in needed} <= before
    assert tiny.target.stat().st_ino in synced[published[0] :]


def test_a_stale_log_of_a_reader_is_removed(published: Tiny) -> None:
    stale = published.target / "warehouse.duckdb.wal"
    stale.write_bytes(b"left behind by an engine that could write")
    assert published.build().status == 0
    assert not stale.exists()
    assert published.ask("SELECT count(*) FROM staging.ports") == [(2,)]


def test_a_moved_target_is_republished_by_the_next_build(published: Tiny) -> None:
    published.target = published.target.rename(published.base / "moved")
    assert published.made() == set()
    assert published.ask("SELECT count(*) FROM metrics.hour") == [(2,)]


def test_empty_tables_are_published(tiny: Tiny) -> None:
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"})
    tiny.model("metrics.total", "SELECT port AS name, speed FROM staging.ports", {"name": "VARCHAR", "speed": "BIGINT"})
    assert tiny.build().status == 0
    assert tiny.ask("SELECT count(*) FROM metrics.total") == [(0,)]


def test_sql_words_and_keywords_are_quoted(tiny: Tiny) -> None:
    columns = {
        "name": "VARCHAR",
        "order": 'BIGINT [%] it\'s "quoted"; DROP TABLE x; --',
    }
    tiny.model("metrics.select", 'SELECT port AS name, speed AS "order" FROM staging.ports', columns)
    assert tiny.build().status == 0
    assert tiny.ask('SELECT name, "order" FROM metrics."select"') == [("eth0", 10), ("eth1", 40)]
    assert tiny.ask("SELECT about FROM meta.columns WHERE column_name = 'order'") == [
        ('it\'s "quoted"; DROP TABLE x; --',)
    ]
