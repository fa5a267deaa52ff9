"""Exports: complete, described, byte-identical, and never in the place of other files."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

import warehouse
from tests.conftest import Command, answered
from tests.publish.postgres_server import change
from tests.small_target import BUILD
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.publish.descriptions import ForeignKey, foreign_keys, required
from warehouse.publish.export import export
from warehouse.reader.table_info import Check, Relation, Table

Publish = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, bytes]]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_an_export_holds_tables_a_manifest_and_checksums(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", everything=True)
    manifest = read_json(folder / "manifest.json")
    assert (manifest["build"], manifest["time_zone"]) == (BUILD, "UTC")
    with warehouse.open(target) as asked:
        listed = asked.execute("SELECT model FROM meta.models WHERE kind <> 'raw' ORDER BY model").fetchall()
    tables = sorted({file["table"] for file in manifest["files"] if file["table"]})
    assert tables == [name for (name,) in listed]
    assert len(manifest["files"]) == 2 * len(tables) + 1
    for file in manifest["files"]:
        path = folder / file["path"]
        assert (file["bytes"], file["sha256"]) == (path.stat().st_size, sha256(path))
    [ports] = [file for file in manifest["files"] if file["path"] == "metrics.port_hour.csv"]
    assert (ports["rows"], ports["grain"]) == (5, ["cluster", "switch", "port", "hour_utc"])
    about = {"name": "in_bytes", "type": "BIGINT", "unit": "B", "about": "meaning of in_bytes"}
    assert ports["columns"][6] == about
    lines = (line.split("  ") for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    others = [path for path in folder.iterdir() if path.name != "SHA256SUMS"]
    assert {name: digest for digest, name in lines} == {path.name: sha256(path) for path in others}
    names = {path.name for path in export(target, folder, formats=["csv"]).iterdir()}
    assert not {name for name in names if name.startswith("staging.") or name.endswith(".parquet")}


def test_csv_matches_query_output_except_json_lists(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", formats=["csv"])
    for table in ("metrics.port_hour", "metrics.port_minute", "topology.nic_ports"):
        lists = "REPLACE (to_json(flags) AS flags) " if table == "metrics.port_hour" else ""
        said = answered(target, f"SELECT * {lists}FROM {table} ORDER BY ALL", format="csv")
        assert (folder / f"{table}.csv").read_text(encoding="utf-8") == said
    with (folder / "metrics.port_hour.csv").open(encoding="utf-8", newline="") as lines:
        flags = [json.loads(row["flags"]) for row in csv.DictReader(lines)]
    assert [] in flags
    assert ["gap", "wrapped"] in flags


def test_parquet_metadata_has_table_units_descriptions_grain_and_build(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", tables=["metrics.port_hour"], formats=["parquet"])
    table = pyarrow.parquet.read_table(folder / "metrics.port_hour.parquet")
    with warehouse.open(target) as asked:
        rows = asked.execute("FROM metrics.port_hour ORDER BY cluster, switch, port, hour_utc").fetchall()
    assert {key.decode(): text.decode() for key, text in table.schema.metadata.items()} == {
        "table": "metrics.port_hour",
        "about": "What metrics.port_hour is.",
        "grain": '["cluster", "switch", "port", "hour_utc"]',
        "build": BUILD,
        "time_zone": "UTC",
    }
    field = table.schema.field("in_bytes")
    assert field.metadata == {b"unit": b"B", b"about": b"meaning of in_bytes", b"type": b"BIGINT"}
    assert b"unit" not in table.schema.field("switch").metadata
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_exports_of_one_build_are_byte_identical_at_any_place_and_number_of_threads(
    own_target: Path, tmp_path: Path, publish: Publish, snapshot: Snapshot
) -> None:
    first = export(publish(tmp_path / "a", tmp_path / "data"), tmp_path / "one", threads=1)
    second = export(publish(tmp_path / "deep" / "b", tmp_path / "data2"), tmp_path / "x" / "two", threads=4)
    assert snapshot(first) == snapshot(second)
    change(
        own_target,
        "CREATE OR REPLACE TABLE topology.ports AS "
        "SELECT 'demo' AS cluster, 'Leaf-' || i % 24 AS switch, 'port-' || hash(i) AS port, "
        "i AS n, i / 7 AS ratio, [i, i + 1] AS flags FROM range(130000) t(i)",
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
    for inside in (target / "out", target, target / "builds" / BUILD):
        assert "lies in the target" in refused(inside)
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
    with pytest.raises(QueryError, match=r"no table metrics\.prot_hour to export"):
        export(own_target, folder, tables=["metrics.prot_hour"])
    assert snapshot(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# foreign keys and the data package ---------------------------------------------------------------


def test_checks_that_passed_and_whose_table_is_there_give_keys() -> None:
    statuses = {
        "references(a, b) -> m.two(c, d)": "passed",
        "references(a) -> m.two(c)": "failed",
        "references(a) -> m.none(c)": "passed",
        "not null(b)": "passed",
    }
    checks = tuple(Check(text, "error", status, 0) for text, status in statuses.items())
    one = Relation(Table("m.one", "table", 1, 1, ""), ("a",), None, None, None, (), checks)
    assert foreign_keys(one, {"m.two"}, []) == [ForeignKey(("a", "b"), "m.two", ("c", "d"))]
    assert required(one) == {"a", "b"}


@pytest.fixture(scope="module")
def exported(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables of the sample as one file, as CSV, and their semantics."""
    return export(built, tmp_path_factory.mktemp("all") / "out", formats=["duckdb", "csv"], semantics=True)


def test_the_data_package_is_valid_with_types_units_keys_and_licenses(exported: Path) -> None:
    frictionless = pytest.importorskip("frictionless")
    said = read_json(exported / "datapackage.json")
    assert {one["name"] for one in said["licenses"]} == {"CC-BY-4.0", "MIT"}
    assert any("AcmeTrace" in one["title"] for one in said["sources"])
    for one in said["resources"]:
        path = exported / one["path"]
        assert (one["bytes"], one["hash"]) == (path.stat().st_size, f"sha256:{sha256(path)}")
    tables = {one["name"]: one["schema"] for one in said["resources"] if "schema" in one}
    balance = tables["metrics.uplink_balance"]
    fields = {one["name"]: one for one in balance["fields"]}
    assert (fields["mean_bytes"]["type"], fields["mean_bytes"]["unit"]) == ("number", "B")
    assert fields["switch"]["constraints"] == {"required": True}
    assert balance["primaryKey"] == ["cluster", "switch", "hour_utc", "direction"]
    keys = {
        name: {(tuple(key["fields"]), key["reference"]["resource"]) for key in schema["foreignKeys"]}
        for name, schema in tables.items()
        if "foreignKeys" in schema
    }
    assert len(keys) > 40
    port, hour = (("cluster", "switch", "port"), "reference.dim_port"), (("hour_utc",), "reference.dim_hour")
    assert keys["metrics.port_hour"] == {port, hour}
    assert keys["metrics.suspect_links"] == {port}
    assert keys["metrics.spine_hour"] >= {(("cluster", "spine"), "reference.dim_switch")}
    assert "topology.nic_ports" not in keys, "its ports may be unknown"
    with duckdb.connect(exported / "tables.duckdb", read_only=True) as file:
        told = "SELECT comment FROM duckdb_tables() WHERE schema_name = 'metrics' AND table_name = 'suspect_links'"
        [(comment,)] = file.execute(told).fetchall()
    assert "(cluster, switch, port) -> reference.dim_port(cluster, switch, port)" in comment

    said["resources"] = [one for one in said["resources"] if one["name"] in ("topology.switches", "topology.ports",
                         "reference.dim_switch", "reference.dim_port", "reference.dim_cluster")]  # fmt: skip
    package = exported / "some.json"
    package.write_text(json.dumps(said), encoding="utf-8")
    report = frictionless.validate(str(package))
    assert report.valid, report.flatten(["name", "message"])
    path = exported / "topology.switches.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("Leaf-1", "Leaf-2", 1), encoding="utf-8")
    assert not frictionless.validate(str(package)).valid


def test_the_data_package_of_one_table_names_its_own_sources(built: Path, tmp_path: Path) -> None:
    for table, licenses, trace in (
        ("metrics.uplink_balance", {"CC-BY-4.0"}, "Zhejiang"),
        ("staging.itp_jobs", {"MIT"}, "ITP"),
        ("reference.finding_kinds", set(), None),
    ):
        folder = export(built, tmp_path / "out", tables=[table], formats=["csv"])
        said = read_json(folder / "datapackage.json")
        assert {one["name"] for one in said.get("licenses", [])} == licenses
        assert [trace in one["title"] for one in said.get("sources", [])] == ([True] if trace else [])


# semantics ---------------------------------------------------------------------------------------


def test_semantics_match_every_model_and_their_schema_which_rejects_wrong_ones(exported: Path) -> None:
    found = read_json(exported / "semantics.json")
    tables = {one["name"]: one for one in found["tables"]}
    models = {name: one for name, one in Project.open().models.items() if one.layer == "metrics"}
    assert {name for name in tables if name.startswith("metrics.")} == set(models)
    for name, model in models.items():
        table, semantics = tables[name], model.semantics
        assert (table["about"], table["grain"], table["time"]) == (model.about, list(model.grain), semantics.time)
        assert [one["name"] for one in table["dimensions"]] == [n for n in semantics.dimensions if n != semantics.time]
        assert {one.column: (one.how, list(one.not_over), one.unit, one.factor) for one in semantics.measures} == {
            one["name"]: (one["aggregate"], one["not_over"], one["shown_in"], one["shown_factor"])
            for one in table["measures"]
        }
        told = {one["name"] for part in ("dimensions", "measures", "attributes") for one in table[part]}
        assert told | {table["time"]} >= {column.name for column in model.columns}
    leaf = {one["name"]: one for one in tables["metrics.leaf_hour"]["measures"]}
    assert [leaf["in_bytes"][key] for key in ("unit", "shown_in", "shown_factor")] == ["B", "TB", 1e12]
    assert leaf["leaving_share"]["denominator"] == "access_in_bytes"
    assert {"reference.dim_switch", "reference.dim_port", "reference.dim_cluster"} <= tables.keys()

    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(read_json(exported / "semantics.schema.json"))
    assert not list(validator.iter_errors(found))
    measure = next(one for table in found["tables"] for one in table["measures"] if one["aggregate"] == "sum")
    kept = dict(measure)
    for wrong in ({"aggregate": "total"}, {"numerator": "in_bytes"}, {"shown_factor": 0}, {"more": 1}):
        measure.update(wrong)
        assert list(validator.iter_errors(found)), wrong
        measure.clear()
        measure.update(kept)


def test_semantics_are_printed_and_other_exports_need_a_folder(built: Path, command: Command) -> None:
    words = ("export", "--semantics", "json", "-t", built)
    done = command(*words, "-s", "metrics.leaf_hour")
    assert (done.status, done.err) == (0, "")
    assert {one["name"] for one in json.loads(done.out)["tables"]} == {"metrics.leaf_hour"}
    unknown = command(*words, "-s", "metrics.leafhour")
    assert (unknown.status, unknown.out) == (2, "")
    assert "no table metrics.leafhour to export" in unknown.err
    missing = command("export", "-t", built)
    assert (missing.status, "the folder to write is missing" in missing.err) == (2, True)
