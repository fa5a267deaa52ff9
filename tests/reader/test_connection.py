"""Connections: read-only, isolated, to one build, and one sentence for a file that is no warehouse."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars
import pytest

from warehouse.base.errors import QueryError
from warehouse.reader import connection as module
from warehouse.reader.connection import connect

Publish = Callable[..., Path]


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    [(value,)] = connection.execute(sql).fetchall()
    return value


def test_tables_parts_and_raw_views_are_read_also_by_a_cursor(target: Path) -> None:
    with connect(target) as connection:
        assert one(connection, "SELECT count(*) FROM topology.ports") == 5
        assert one(connection, "SELECT count(*) FROM metrics.port_hour") == 5
        assert one(connection, "SELECT count(*) FROM warehouse.metrics.port_minute") == 300
        assert one(connection, "SELECT sum(bytes)::BIGINT FROM raw.port_counters") == 30
        cursor = connection.cursor()
        assert one(cursor, "SELECT count(*) FROM metrics.port_hour") == 5
        assert one(cursor, "SELECT current_setting('TimeZone')") == "UTC"


def test_files_elsewhere_are_refused_nothing_is_changed_and_settings_stay(own_target: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n", encoding="utf-8")
    (own_target / "link.csv").symlink_to(outside)
    beside = own_target.parent / f"{own_target.name}2"
    beside.mkdir()
    (beside / "x.csv").write_text("a\n1\n", encoding="utf-8")
    secret = polars.DataFrame({"a": [1]})  # a variable is not a table
    tries = [
        f"FROM read_csv('{outside}')",
        f"FROM '{outside}'",
        f"FROM read_csv('{own_target}/../{beside.name}/x.csv')",
        f"FROM '{beside}/x.csv'",
        f"FROM glob('{tmp_path}/*')",
        f"FROM '{own_target}/link.csv'",
        "FROM read_text('/etc/passwd')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "CREATE TABLE metrics.x AS SELECT 1",
        "DELETE FROM topology.ports",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "LOAD httpfs",
        "ATTACH ':memory:' AS x; CREATE TABLE x.main.t (i INTEGER); DETACH warehouse",
        "FROM secret",
    ]
    with connect(own_target) as connection:
        for sql in tries:
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
    assert secret.height == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.csv"]


def test_more_folders_can_be_read_by_the_connection_that_is_given_them(own_target: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.csv").write_text("a\n1\n", encoding="utf-8")
    data = own_target.with_name("data")
    (data / "linked").symlink_to(tmp_path / "other")
    asked = [f"SELECT a FROM '{place}/x.csv'" for place in (tmp_path / "other", data / "linked")]
    with connect(own_target) as first, connect(own_target, [tmp_path / "other"], memory="1GB", threads=1) as second:
        for sql in asked:
            assert one(second, sql) == 1
            with pytest.raises(duckdb.PermissionException):
                first.execute(sql)
        assert one(second, "SELECT current_setting('threads')") == 1
        assert one(second, "SELECT current_setting('memory_limit')") == "953.6 MiB"
    with pytest.raises(QueryError, match="the engine does not start"):
        connect(own_target, memory="4 parsecs")


def test_a_file_replaced_while_opening_is_opened_again(
    own_target: Path, tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = module._file_at
    seen: list[object] = []

    def find_and_replace(path: Path) -> object:
        if len(seen) == 1:  # after the first ATTACH
            publish(own_target, tmp_path / "data", build="0123456789abcdef")
        seen.append(find(path))
        return seen[-1]

    monkeypatch.setattr(module, "_file_at", find_and_replace)
    with connect(own_target) as connection:
        assert one(connection, "SELECT build_id FROM meta.build") == "0123456789abcdef"
    assert len(seen) == 4


def test_large_sorts_spill_outside_the_target(own_target: Path) -> None:
    sql = "SELECT count(*) FROM (SELECT i, hash(i) h, repeat('x', 40) FROM range(600000) t(i) ORDER BY h)"
    with connect(own_target, memory="40MB", threads=1) as connection:
        assert one(connection, sql) == 600000
        folder = Path(str(one(connection, "SELECT current_setting('temp_directory')")))
        assert not folder.is_relative_to(own_target)
    assert not folder.exists()
    assert not list(own_target.glob("*.tmp"))


def of_version(content: bytes, version: int) -> bytes:
    """Return a file of another storage version, with the checksum of its changed header."""
    changed = bytearray(content)
    changed[12:20] = struct.pack("<Q", version)
    checksum = 5381
    for at in range(8, 4096, 8):
        checksum ^= struct.unpack_from("<Q", changed, at)[0] * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    changed[:8] = struct.pack("<Q", checksum)
    return bytes(changed)


def test_an_invalid_warehouse_is_one_sentence(own_target: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="there is no such folder") as nowhere:
        connect(tmp_path / "nowhere")
    assert nowhere.value.hint == f"warehouse build -d DIR -t {tmp_path / 'nowhere'}"
    with pytest.raises(QueryError, match="keeps no build 123"):
        connect(own_target, build="123")
    file, other = own_target / "warehouse.duckdb", tmp_path / "other.duckdb"
    content = file.read_bytes()
    with duckdb.connect(other) as connection:
        connection.execute("CREATE TABLE x AS SELECT 1")
    for written, message in {
        content[:20_000]: "is damaged",
        b"not a database " * 1000: "is not a warehouse: it is no DuckDB file",
        of_version(content, 999): f"is of another version of DuckDB than this one \\({duckdb.__version__}\\)",
        other.read_bytes(): "not a warehouse: it has no meta.build",
        b"": "no warehouse in .*: it holds no warehouse.duckdb",
    }.items():
        file.unlink()
        if written:
            file.write_bytes(written)
        with pytest.raises(QueryError, match=message) as error:
            connect(own_target)
        assert "\n" not in error.value.message
        if "meta.build" not in message:
            assert f"warehouse build -d DIR -t {own_target}" in (error.value.hint or "")
