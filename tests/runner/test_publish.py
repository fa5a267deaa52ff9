"""The published file: complete, documented, read-only, synced before its rename, and replaced atomically."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.tiny import Tiny
from warehouse.runner import publish
from warehouse.store import atomic
from warehouse.store.manifest import CATALOG

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
    for kind, table in (("table", "ports"), ("view", "fast")):
        about = f"SELECT comment FROM duckdb_{kind}s() WHERE {kind}_name = '{table}' UNION ALL SELECT comment FROM "
        columns = f"(FROM duckdb_columns() WHERE table_name = '{table}' ORDER BY column_index)"
        assert published.ask(about + columns) == [("A model.",), ("the port",), ("[bit/s] line rate",)]
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


def test_sql_words_and_keywords_are_quoted(tiny: Tiny) -> None:
    columns = {"name": "VARCHAR", "order": 'BIGINT [%] it\'s "quoted"; DROP TABLE x; --'}
    tiny.model("metrics.select", 'SELECT port AS name, speed AS "order" FROM staging.ports', columns)
    assert tiny.build().status == 0
    assert tiny.ask('SELECT name, "order" FROM metrics."select"') == [("eth0", 10), ("eth1", 40)]
    about = "SELECT about FROM meta.columns WHERE column_name = 'order'"
    assert tiny.ask(about) == [('it\'s "quoted"; DROP TABLE x; --',)]


def test_all_is_on_disk_before_it_is_published(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the order of fsync calls with the files and folders that the published file needs."""
    synced: list[int] = []
    published: list[int] = []
    renamed: dict[str, int] = {}
    fsync, replace = os.fsync, os.replace

    def noted(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    def replaced(source: Path, target: Path) -> None:
        replace(source, target)
        renamed.setdefault(Path(target).name, len(synced))
        if Path(target).name == "warehouse.duckdb":
            published.append(len(synced))

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", replaced)
    assert tiny.build().status == 0
    before = set(synced[: published[0]])
    build = tiny.target / "builds" / (tiny.target / "builds" / "current").read_text(encoding="utf-8").strip()
    parts = list((tiny.target / "parts").glob("[!r]*/*/*.parquet"))
    folders = [folder for path in parts for folder in path.parents[:3]]
    needed = [*parts, *folders, *build.glob("*"), build.parent]
    assert (tiny.target / "parts") in folders
    assert {path.stat().st_ino for path in needed} <= before
    assert tiny.target.stat().st_ino in synced[published[0] :]
    order = [build.name, "warehouse.duckdb", "current"]
    assert [name for name in renamed if name in order] == order
    assert build.parent.stat().st_ino in synced[renamed[build.name] : published[0]]


# files of builds ----------------------------------------------------------------------------------


def builds(tiny: Tiny, count: int, first: int = 1) -> list[Path]:
    """Build so many times, each time with other rows; return the folders of the builds."""
    found = []
    for speed in range(first, first + count):
        tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, f"eth0,{speed}")
        assert tiny.build("--keep", "9").status == 0
        found.append(tiny.target / "builds" / current(tiny))
    return found


def current(tiny: Tiny) -> str:
    return (tiny.target / "builds" / "current").read_text(encoding="utf-8").strip()


def test_a_target_has_complete_builds_and_no_temporary_file(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    [folder] = builds(tiny, 1)
    assert sorted(path.name for path in folder.iterdir()) == [CATALOG, "files.json", "manifest.json"]
    assert (tiny.target / "warehouse.duckdb").samefile(folder / CATALOG)
    assert stat.S_IMODE((tiny.target / "warehouse.duckdb").stat().st_mode) == 0o444
    names = sorted(path.name for path in tiny.target.iterdir())
    assert names == ["builds", "cache", "lock", "parts", "state.sqlite", "tmp", "warehouse.duckdb"]
    assert [path for path in tiny.target.rglob(".*") if path.name != ".gitignore"] == []
    assert list((tiny.target / "tmp").iterdir()) == []
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError))  # a file system without hard links
    [folder] = builds(tiny, 1, first=2)
    assert not (tiny.target / "warehouse.duckdb").samefile(folder / CATALOG)
    assert (tiny.target / "warehouse.duckdb").read_bytes() == (folder / CATALOG).read_bytes()


def test_a_leftover_link_to_the_catalog_of_another_build_is_not_written_through(tiny: Tiny) -> None:
    first, second = builds(tiny, 2)
    before = (first / CATALOG).read_bytes()
    os.link(first / CATALOG, atomic.temporary_path(tiny.target / "warehouse.duckdb"))
    (tiny.target / "warehouse.duckdb.wal").touch()  # of an engine that could write
    builds(tiny, 1, first=3)
    assert (first / CATALOG).read_bytes() == before
    assert not (tiny.target / "warehouse.duckdb.wal").exists()
    for _ in range(2):  # the second time both names are links to one file
        publish.make_current(tiny.target, second.name)
    assert (tiny.target / "warehouse.duckdb").samefile(second / CATALOG)


def test_the_newest_builds_and_the_current_one_are_kept(tiny: Tiny) -> None:
    folders = builds(tiny, 3)
    publish.make_current(tiny.target, folders[0].name)
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,4")
    assert tiny.build("--keep", "2").status == 0
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert (tiny.target / "builds" / current(tiny) / CATALOG).exists()
