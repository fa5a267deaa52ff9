"""The four hour tables as sheets of a workbook."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.formats.hour_examples import CSV, EXAMPLES, HOUR_UTC, PORT_HEADER, MakeFile, WriteCsv, port_line, rows_of
from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.hour_workbook import HOUR_WORKBOOK
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import WriteBook


def sheets(**changes: Sequence[Sequence[object]]) -> dict[str, Sequence[Sequence[object]]]:
    return {name: [list(row), list(row.values())] for name, row in EXAMPLES.items()} | changes


@pytest.mark.parametrize("prefix", ["", "2024052400_", "2024052400 "])
def test_sheets_feed_the_same_relations(
    write_book: WriteBook, raw_file: MakeFile, write_csv: WriteCsv, prefix: str
) -> None:
    book = {f"{prefix}{name.upper()}": rows for name, rows in sheets().items()}
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(book, "2024052400/2024052400.xlsx")))
    assert (file.status, file.reason, file.hour_utc) == (READ, None, HOUR_UTC)
    for name, example in EXAMPLES.items():
        ours, rejected = rows_of(file, name)
        csv = write_csv(",".join(example), ",".join(example.values()), name=f"2024052400_{name}.csv")
        theirs, _ = rows_of(csv)
        assert not rejected
        assert [row | {"filename": ""} for row in ours] == [row | {"filename": ""} for row in theirs]
        assert list(ours[0]) == [*CSV[name].relations[0].columns, "filename"]


def test_numbers_and_times_of_a_sheet_are_exact(write_book: WriteBook, raw_file: MakeFile) -> None:
    moment = datetime(2024, 5, 24, 0, 0, 4)  # noqa: DTZ001 - a cell has no zone
    row = ["GPU-1", "10.107.254.1", "mlx5_3", 1.826184052268872e16, 12.0, 3, 3, 3, 3]
    header = [*list(EXAMPLES["nic"])[1:], "SaveTime"]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book({"nic": [header, [*row, moment]]}, "2024052400.xlsx")))
    (read,), rejected = rows_of(file, "nic")
    assert not rejected
    assert read["time_utc"] == HOUR_UTC + timedelta(seconds=4)
    assert (read["received_bytes"], read["transmitted_bytes"]) == (18_261_840_522_688_720, 12)
    assert (read["SaveTime"], read["TransmittedBytes"]) == ("2024-05-24 00:00:04", "12")


def test_units_of_a_sheet_are_checked_like_those_of_a_file(write_book: WriteBook, raw_file: MakeFile) -> None:
    flow = [list(EXAMPLES["flow"]), list({**EXAMPLES["flow"], "Rtt": "6"}.values())]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(flow=flow), "2024052400.xlsx")))
    assert file.status == PARTIAL
    assert "sheet 'flow': column Rtt: the median of the first rows is 6 ns" in str(file.reason)
    assert rows_of(file, "flow") == ([], [])
    assert len(rows_of(file, "port")[0]) == 1


def test_bad_rows_of_a_sheet_are_rejected_by_their_row(write_book: WriteBook, raw_file: MakeFile) -> None:
    good = list(EXAMPLES["port"].values())
    rows = [list(EXAMPLES["port"]), good, [], ["only a name"], [*good[:3], "=1+1", *good[4:]], [*good[:-1], "1"]]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(port=rows), "2024052400.xlsx")))
    read, rejected = rows_of(file, "port")
    assert [row["line"] for row in read] == [2, 6]
    assert [(one.line, one.reason) for one in rejected] == [
        (4, "Time: '' is not a time (sheet 'port')"),
        (5, "cell D5 holds a formula without a stored value (sheet 'port')"),
    ]


def test_a_sheet_of_bad_rows_is_not_read_to_its_end(
    write_book: WriteBook, raw_file: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [list(EXAMPLES["port"]), *(["only a name"] for _ in range(5))]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(port=rows), "2024052400.xlsx")))
    assert len(rows_of(file, "port")[1]) == 5
    monkeypatch.setattr(xlsx, "MOST_BAD", 4)
    with pytest.raises(DataError, match="more than 4 rows of sheet 'port' cannot be read"):
        rows_of(file, "port")


def test_missing_and_unknown_sheets_are_named(write_book: WriteBook, raw_file: MakeFile) -> None:
    book = sheets(notes=[["x"]])
    del book["link"]
    book["2024052401_link"] = [list(EXAMPLES["link"])]
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(book, "2024052400.xlsx")))
    assert (file.status, file.reason) == (READ, "no sheet 'link'; sheets ignored: notes, 2024052401_link")
    assert rows_of(file, "link") == ([], [])


def test_an_unreadable_sheet_leaves_the_others(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(flow=[["Time"], ["x"]]), "2024052400.xlsx")))
    assert file.status == PARTIAL
    assert str(file.reason).startswith("sheet 'flow': no column SourceServer, ")
    assert rows_of(file, "flow") == ([], [])
    assert len(rows_of(file, "nic")[0]) == 1
    with pytest.raises(DataError, match=r"2024052400\.xlsx: changed while it was read"):
        rows_of(file.but(status=READ), "flow")


def test_a_table_is_never_counted_twice(write_book: WriteBook, raw_file: MakeFile, write_csv: WriteCsv) -> None:
    write_csv(PORT_HEADER, port_line(), name="2024052400_port.csv.gz")
    file = HOUR_WORKBOOK.inspect(raw_file(write_book(sheets(), "2024052400.xlsx")))
    assert (file.status, file.reason) == (SKIPPED, "the same rows lie beside it: 2024052400_port.csv.gz")


def test_the_content_of_a_workbook_decides_its_format(write_book: WriteBook, raw_file: MakeFile) -> None:
    hour = raw_file(write_book(sheets(), "2024052400.xlsx"))
    assert WORKBOOK.inspect(hour).status == SKIPPED
    assert HOUR_WORKBOOK.inspect(hour).status == READ
    nics = {"GPU NIC info": [["GPU IP", "NIC name1", "NIC name 2"]]}
    topology = raw_file(write_book(nics, "2024052401.xlsx"))
    assert WORKBOOK.inspect(topology).status == PARTIAL
    file = HOUR_WORKBOOK.inspect(topology)
    assert file.status == SKIPPED
    assert str(file.reason).startswith("not a workbook of hour tables: no sheet 'flow', ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2024052400.xlsx", "not a zip file, so not a workbook"),
        ("2024052499.xlsx", "'2024-05-24 99:00' is not a time that exists"),
        ("2024052401/2024052400.xlsx", "its name says hour 2024052400, its folder 2024052401"),
    ],
)
def test_a_workbook_that_cannot_be_read_is_skipped(tmp_path: Path, raw_file: MakeFile, name: str, reason: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hello")
    file = HOUR_WORKBOOK.inspect(raw_file(path))
    assert (file.status, file.reason) == (SKIPPED, reason)
