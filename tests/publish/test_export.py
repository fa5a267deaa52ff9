"""Exports as CSV and Parquet: complete, byte-identical, and never in the place of other files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

import warehouse
from warehouse.base.errors import QueryError
from warehouse.publish.export import export
from warehouse.reader.user_query import run_query

BUILD = "7f3a91c2d0e1f2a3"
Publish = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, bytes]]


def test_an_export_holds_tables_a_manifest_and_checksums(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["build"] == BUILD
    assert manifest["time_zone"] == "UTC"
    with warehouse.open(target) as asked:
        listed = asked.execute("SELECT model FROM meta.models WHERE kind <> 'raw' ORDER BY model").fetchall()
    tables = sorted({file["table"] for file in manifest["files"] if file["table"]})
    assert tables == [name for (name,) in listed if not name.startswith("staging.")]
    assert len(manifest["files"]) == 2 * len(tables) + 1
    for file in manifest["files"]:
        content = (folder / file["path"]).read_bytes()
        assert file["bytes"] == len(content)
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
    [ports] = [file for file in manifest["files"] if file["path"] == "metrics.port_hour.csv"]
    assert (ports["rows"], ports["grain"]) == (5, ["cluster", "switch", "port", "hour_utc"])
    about = {"name": "in_bytes", "type": "BIGINT", "unit": "B", "about": "meaning of in_bytes"}
    assert ports["columns"][6] == about
    lines = (line.split("  ") for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    assert {name: digest for digest, name in lines} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }


def test_csv_matches_query_output_except_json_lists(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", formats=["csv"])
    for table in ("metrics.port_hour", "metrics.port_minute", "topology.ports", "topology.nic_ports"):
        stream = io.StringIO()
        lists = "REPLACE (to_json(flags) AS flags) " if table == "metrics.port_hour" else ""
        run_query(target, f"SELECT * {lists}FROM {table} ORDER BY ALL", format="csv", stream=stream)
        assert (folder / f"{table}.csv").read_text(encoding="utf-8") == stream.getvalue()
    with (folder / "metrics.port_hour.csv").open(encoding="utf-8", newline="") as lines:
        flags = [json.loads(row["flags"]) for row in csv.DictReader(lines)]
    assert [] in flags
    assert any(isinstance(one, str) for listed in flags for one in listed)


def test_parquet_metadata_has_table_units_descriptions_grain_and_build(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", tables=["metrics.port_hour"], formats=["parquet"])
    path = folder / "metrics.port_hour.parquet"
    names = {"SHA256SUMS", "datapackage.json", "manifest.json", "metrics.port_hour.parquet"}
    assert {one.name for one in folder.iterdir()} == names
    schema = pyarrow.parquet.read_schema(path)
    told = {key.decode(): text.decode() for key, text in schema.metadata.items()}
    with warehouse.open(target) as asked:
        about = asked.execute("SELECT about FROM meta.models WHERE model = 'metrics.port_hour'").fetchone()
        rows = asked.execute("FROM metrics.port_hour ORDER BY cluster, switch, port, hour_utc").fetchall()
    assert told == {
        "table": "metrics.port_hour",
        "about": about[0] if about else "",
        "grain": '["cluster", "switch", "port", "hour_utc"]',
        "build": BUILD,
        "time_zone": "UTC",
    }
    assert schema.field("in_bytes").metadata == {b"unit": b"B", b"about": b"meaning of in_bytes", b"type": b"BIGINT"}
    assert b"unit" not in schema.field("switch").metadata
    table = pyarrow.parquet.read_table(path)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_staging_is_exported_on_request(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", everything=True, formats=["csv"])
    assert (folder / "staging.port_counters.csv").is_file()
    assert not list(folder.glob("raw.*"))


def test_exports_of_one_build_are_byte_identical(tmp_path: Path, publish: Publish, snapshot: Snapshot) -> None:
    first = export(publish(tmp_path / "a", tmp_path / "data"), tmp_path / "one", threads=1)
    second = export(publish(tmp_path / "deep" / "b", tmp_path / "data2"), tmp_path / "x" / "two", threads=4)
    assert snapshot(first) == snapshot(second)


def test_exports_do_not_depend_on_the_number_of_threads(own_target: Path, tmp_path: Path) -> None:
    catalog = own_target / "warehouse.duckdb"
    catalog.chmod(0o644)
    with duckdb.connect(catalog) as connection:
        connection.execute(
            "CREATE OR REPLACE TABLE topology.ports AS "
            "SELECT 'demo' AS cluster, 'Leaf-' || i % 24 AS switch, 'port-' || hash(i) AS port, "
            "i AS n, i / 7 AS ratio, [i, i + 1] AS flags FROM range(130000) t(i)"
        )
    digests = set()
    for threads in (1, 4):
        folder = export(own_target, tmp_path / "out", tables=["topology.ports"], threads=threads)
        digests.add((folder / "SHA256SUMS").read_bytes())
    assert len(digests) == 1


def test_folders_other_than_exports_are_not_replaced(target: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    def refused(folder: Path) -> str:
        before = snapshot(tmp_path)
        with pytest.raises(QueryError) as error:
            export(target, folder)
        assert snapshot(tmp_path) == before
        return error.value.message

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    assert "holds files that no export wrote: notes.txt" in refused(tmp_path / "mine")
    (tmp_path / "mine" / "manifest.json").write_text("{}", encoding="utf-8")
    assert "holds files that no export wrote: manifest.json" in refused(tmp_path / "mine")
    out = export(target, tmp_path / "out", tables=["topology.ports"])
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    assert "holds files that no export wrote: notes.txt" in refused(out)
    assert "is a file" in refused(out / "notes.txt")
    assert "lies in the target" in refused(target / "out")
    assert "lies in the target" in refused(target)
    assert "lies in the target" in refused(target / "builds" / BUILD)
    (tmp_path / "empty").mkdir()
    export(target, tmp_path / "empty", tables=["topology.ports"])


def test_an_export_is_replaced_completely_and_a_failed_one_keeps_the_old(
    own_target: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    export(own_target, tmp_path / "out")
    folder = export(own_target, tmp_path / "out", tables=["metrics.port_hour"], formats=["csv"])
    names = {"SHA256SUMS", "datapackage.json", "manifest.json", "metrics.port_hour.csv"}
    assert {path.name for path in folder.iterdir()} == names
    before = snapshot(folder)
    shutil.rmtree(own_target / "parts")
    with pytest.raises(QueryError, match=r"metrics\.port_hour cannot be exported"):
        export(own_target, folder)
    assert snapshot(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_unknown_tables_and_formats_are_errors(target: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError) as error:
        export(target, tmp_path / "out", tables=["metrics.prot_hour"])
    assert str(error.value) == "no table metrics.prot_hour to export\nnearest: metrics.port_hour"
    with pytest.raises(QueryError, match="no export format ods"):
        export(target, tmp_path / "out", formats=["ods"])
    assert not list(tmp_path.iterdir())
