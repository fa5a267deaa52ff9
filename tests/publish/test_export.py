"""Exports: complete, described, byte-identical, no value rounded, and never in the place of other files."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow.parquet
import pytest

import warehouse
from tests.conftest import Command, answered
from tests.publish.postgres_server import change
from tests.small_target import BUILD
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.publish import excel
from warehouse.publish.descriptions import ForeignKey, foreign_keys, required
from warehouse.publish.export import export
from warehouse.reader.table_info import Check, Relation

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
    tmp_path: Path, publish: Publish, snapshot: Snapshot
) -> None:
    found = []
    for threads, place in ((1, "a"), (4, "deep/b")):
        target = publish(tmp_path / place, tmp_path / f"data{threads}")
        change(
            target,
            "CREATE OR REPLACE TABLE topology.ports AS "
            "SELECT 'demo' AS cluster, 'Leaf-' || i % 24 AS switch, 'port-' || hash(i) AS port, "
            "i AS n, i / 7 AS ratio, [i, i + 1] AS flags FROM range(130000) t(i)",
        )
        found.append(snapshot(export(target, tmp_path / f"out{threads}", threads=threads)))
    assert found[0] == found[1]


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
    with pytest.raises(QueryError, match=r"metrics\.port_hour cannot be copied"):
        export(own_target, folder)
    with pytest.raises(QueryError, match=r"no table metrics\.prot_hour"):
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
    one = Relation("m.one", "table", 1, 1, "", ("a",), None, None, None, (), checks)
    assert foreign_keys([one], {"m.two"}) == {"m.one": [ForeignKey("m.two", ("a", "b"), ("c", "d"))]}
    assert required(one) == {"a", "b"}


PACKAGE = (
    "metrics.port_hour", "metrics.spine_hour", "metrics.suspect_links", "metrics.uplink_balance",
    "reference.dim_cluster", "reference.dim_hour", "reference.dim_port", "reference.dim_switch", "staging.itp_jobs",
    "topology.nic_ports", "topology.ports", "topology.switches",
)  # fmt: skip


@pytest.fixture(scope="module")
def exported(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some tables of the sample as one file, as CSV, and their semantics."""
    folder = tmp_path_factory.mktemp("some") / "out"
    return export(built, folder, tables=PACKAGE, formats=["duckdb", "csv"], semantics=True)


def test_the_data_package_is_valid_with_types_units_keys_and_licenses(exported: Path) -> None:
    frictionless = pytest.importorskip("frictionless")
    said = read_json(exported / "datapackage.json")
    assert {one["name"] for one in said["licenses"]} == {"CC-BY-4.0", "MIT"}
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


def test_semantics_match_every_model_and_their_schema_which_rejects_wrong_ones(
    built: Path, exported: Path, tmp_path: Path
) -> None:
    found = read_json(export(built, tmp_path / "all", formats=(), semantics=True) / "semantics.json")
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
    written = read_json(exported / "semantics.json")
    assert not list(validator.iter_errors(written))
    assert {one["name"] for one in written["tables"]} <= set(PACKAGE)
    measure = next(one for table in found["tables"] for one in table["measures"] if one["aggregate"] == "sum")
    kept = dict(measure)
    for wrong in ({"aggregate": "total"}, {"numerator": "in_bytes"}, {"shown_factor": 0}, {"more": 1}):
        measure.update(wrong)
        assert list(validator.iter_errors(found)), wrong
        measure.clear()
        measure.update(kept)


# Excel, and one DuckDB file ------------------------------------------------------------------------

BIG = 2**53 + 1
HUGE = 3 * 10**37 + 1
HARD = f"""
    SELECT * FROM (VALUES
        (1, {BIG}::BIGINT, {HUGE}::HUGEINT, 0.5::DOUBLE, '=1+1',
            TIMESTAMP '2024-05-23 16:00:00.000001', 1.25::DECIMAL(38,2)),
        (2, -5::BIGINT, 7::HUGEINT, 'inf'::DOUBLE, 'http://x.example', NULL, 3::DECIMAL(38,2)),
        (3, NULL, NULL, NULL, '', TIMESTAMP '2024-05-23 17:30:00', NULL)
    ) t(n, big, huge, ratio, name, moment, price)
"""
SHOWN = {
    "in_bytes": ("BIGINT", "B", 690_470_524_122_738, "#,##0", "690,470,524,122,738"),
    "mean_bps": ("DOUBLE", "bit/s", 14_833_333_027.48, "#,##0", "14,833,333,027"),
    "in_utilization": ("DOUBLE", "1", 0.1861, "0.0##%", "18.61%"),
    "lost_share": ("DOUBLE", "1", 0.00004, "0.0##%", "0.004%"),
    "learning_rate": ("DOUBLE", "1", 0.00006, "General", "0.00006"),
    "seconds": ("DOUBLE", "s", 45.713, "General", "45.713"),
    "polls": ("INTEGER", "1", 5096, "#,##0", "5,096"),
    "number": ("INTEGER", None, 5096, "0", "5096"),
    "a_time": ("TIMESTAMP", None, "2024-05-23 16:00:00", "yyyy-mm-dd hh:mm:ss", "2024-05-23 16:00:00"),
    "a_day": ("DATE", None, "2024-05-23", "yyyy-mm-dd", "2024-05-23"),
    "words": ("VARCHAR", None, "a text that is longer than its name", "General", "a text that is longer than its name"),
}
"""Columns of a workbook: type, unit, value, number format and the text in the cell."""


def with_ports(target: Path, select: str, key: str, units: dict[str, str | None]) -> Path:
    """Let `topology.ports` have other columns, with these units."""
    unit = " ".join(f"WHEN '{name}' THEN '{unit}'" for name, unit in units.items() if unit)
    change(
        target,
        f"CREATE OR REPLACE TABLE topology.ports AS {select}; DELETE FROM meta.columns WHERE model = 'topology.ports'; "
        "INSERT INTO meta.columns SELECT 'topology.ports', column_index, column_name, data_type, "
        f"CASE column_name {unit} END, 'meaning of ' || column_name FROM duckdb_columns() "
        "WHERE schema_name = 'topology' AND table_name = 'ports'; "
        f"UPDATE meta.models SET grain = ['{key}'] WHERE model = 'topology.ports'",
    )
    return target


@pytest.fixture
def hard(own_target: Path) -> Path:
    """A warehouse with values that spreadsheets and other tools alter."""
    return with_ports(own_target, HARD, "n", {"big": "B"})


def test_a_workbook_has_rows_and_column_descriptions(target: Path, tmp_path: Path) -> None:
    folder = export(target, tmp_path / "out", tables=["metrics.port_hour"], formats=["xlsx"])
    book = openpyxl.load_workbook(folder / "metrics.port_hour.xlsx")
    assert book.sheetnames == ["about", "rows"]
    about = [[cell.value for cell in row] for row in book["about"].iter_rows()]
    assert ["table", None, None, "metrics.port_hour"] in [row[:4] for row in about]
    assert ["in_bytes", "BIGINT", "B", "meaning of in_bytes"] in [row[:4] for row in about]
    head, *rows = book["rows"].iter_rows(values_only=True)
    assert "in_bytes [B]" in head
    with warehouse.open(target) as asked:
        found = asked.execute("FROM metrics.port_hour ORDER BY cluster, switch, port, hour_utc").fetchall()
    assert len(rows) == len(found) > 0
    for row, expected in zip(rows, found, strict=True):
        for cell, value in zip(row, expected, strict=True):
            if isinstance(value, float):
                assert cell == pytest.approx(value, rel=1e-15)  # xlsx stores 16 digits
            else:
                assert cell == (f"[{', '.join(value)}]" if isinstance(value, list) else value)
    again = export(target, tmp_path / "again", tables=["metrics.port_hour"], formats=["xlsx"])
    assert (again / "metrics.port_hour.xlsx").read_bytes() == (folder / "metrics.port_hour.xlsx").read_bytes()


def test_values_beyond_excels_limits_are_text(hard: Path, tmp_path: Path) -> None:
    folder = export(hard, tmp_path / "out", tables=["topology.ports"], formats=["xlsx"])
    book = openpyxl.load_workbook(folder / "topology.ports.xlsx")
    head, *rows = book["rows"].iter_rows(values_only=True)
    assert head == ("n", "big [B] (text)", "huge (text)", "ratio (text)", "name", "moment (text)", "price")
    assert rows[0] == (1, str(BIG), str(HUGE), "0.5", "=1+1", "2024-05-23 16:00:00.000001", 1.25)
    assert rows[1] == (2, "-5", "7", "inf", "http://x.example", None, 3)
    assert rows[2] == (3, None, None, None, "", "2024-05-23 17:30:00", None)
    assert book["rows"]["E2"].data_type == "s"
    notes = {row[0].value: row[4].value for row in book["about"].iter_rows() if len(row) > 4}
    assert "15 digits" in str(notes["big"])
    assert not notes["n"]


def test_numbers_are_shown_by_their_units_and_never_cut(own_target: Path, tmp_path: Path) -> None:
    row = ", ".join(f"'{value}'::{kind} AS {name}" for name, (kind, _, value, *_) in SHOWN.items())
    with_ports(own_target, f"SELECT {row}", "number", {name: unit for name, (_, unit, *_) in SHOWN.items()})
    folder = export(own_target, tmp_path / "out", tables=["topology.ports"], formats=["xlsx"])
    sheet = openpyxl.load_workbook(folder / "topology.ports.xlsx")["rows"]
    assert sheet.freeze_panes == "A2"
    shown = {str(head.value).partition(" ")[0]: cell for head, cell in zip(sheet[1], sheet[2], strict=True)}
    assert {name: cell.number_format for name, cell in shown.items()} == {name: one[3] for name, one in SHOWN.items()}
    assert shown["in_bytes"].value == 690_470_524_122_738
    width = {name: sheet.column_dimensions[cell.column_letter].width for name, cell in shown.items()}
    assert {name for name, one in SHOWN.items() if width[name] <= len(one[4])} == set()


def test_large_tables_become_workbooks_only_if_named_and_only_as_far_as_a_sheet_can_hold_them(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setattr(excel, "LARGE", 100)
    words = ("export", "out", "--format", "xlsx", "-t", target)
    said = command(*words)
    assert said.status == 0, said.err
    assert "not metrics.port_minute.xlsx: 300 rows; -s metrics.port_minute writes it" in said.out
    folder = tmp_path / "out"
    assert not (folder / "metrics.port_minute.xlsx").exists()
    assert (folder / "metrics.port_hour.xlsx").exists()
    assert command(*words, "-s", "metrics.port_minute").status == 0
    assert (folder / "metrics.port_minute.xlsx").exists()

    monkeypatch.setattr(excel, "MOST_ROWS", 100)
    monkeypatch.setattr(excel, "LONGEST_TEXT", 20)
    said = command(*words)
    assert said.status == 0, said.err
    more = "300 rows, more than the 100 of an Excel sheet; --format csv or parquet"
    assert f"not metrics.port_minute.xlsx: {more}" in said.out
    assert "not metrics.port_hour.xlsx: a text in port is longer than the 20 characters of an Excel cell" in said.out
    assert (folder / "metrics.leaf_hour.xlsx").exists()
    assert {one["format"] for one in read_json(folder / "manifest.json")["left_out"]} == {"xlsx"}
    alone = command(*words, "-s", "metrics.port_minute")
    assert (alone.status, "metrics.port_minute cannot be a workbook: 300 rows" in alone.err) == (2, True)


def test_one_duckdb_file_holds_all_tables_unchanged(hard: Path, tmp_path: Path) -> None:
    folder = export(hard, tmp_path / "out", formats=["duckdb"])
    path = folder / "tables.duckdb"
    assert path.read_bytes()[8:12] == b"DUCK"
    assert int.from_bytes(path.read_bytes()[12:20], "little") == 67, "DuckDB 1.4 and later read it"
    assert str(hard).encode() not in path.read_bytes()
    with warehouse.open(hard) as ours, duckdb.connect(path, read_only=True) as theirs:
        names = [row[0] for row in theirs.execute("SELECT model FROM meta.models ORDER BY model").fetchall()]
        assert "topology.ports" in names
        for name in names:
            order = "ORDER BY n" if name == "topology.ports" else "ORDER BY ALL"
            mine, other = (one.execute(f"FROM {name} {order}") for one in (ours, theirs))
            assert [column[:2] for column in mine.description] == [column[:2] for column in other.description]
            assert mine.fetchall() == other.fetchall(), name
        comments = dict(
            theirs.execute("SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'ports'").fetchall()
        )
        assert comments["big"] == "[B] meaning of big"
        assert theirs.execute("SELECT data_folders FROM meta.build").fetchall() == [([],)]
    assert not list(folder.glob("*.wal"))
    [entry] = [file for file in read_json(folder / "manifest.json")["files"] if file["format"] == "duckdb"]
    assert entry["sha256"] == sha256(path)
