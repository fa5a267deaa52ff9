"""Exports as Excel and as one DuckDB file: no value is rounded."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import duckdb
import openpyxl
import pytest

import warehouse
from tests.publish.postgres_server import change
from warehouse.publish import excel
from warehouse.publish.export import export

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

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
    left_out = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["left_out"]
    assert {one["format"] for one in left_out} == {"xlsx"}
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
    [entry] = [
        file for file in json.loads((folder / "manifest.json").read_text())["files"] if file["format"] == "duckdb"
    ]
    assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
