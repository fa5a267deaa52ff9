"""The topology workbook: columns, cells and rows of usual and unusual ones."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.formats.topology_book import BOOK, FIRST, LEAF, NICS, SECOND, SHEET1, TOPOLOGY, MakeFile, SwapPart, rows_of
from warehouse.formats.base import PARTIAL, READ, SKIPPED
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import Sheets, WriteBook

TITLES = {"cluster topology": "cluster_topology", "GPU NIC info": "gpu_nics"}


def test_claims_goes_by_name() -> None:
    names = ("a.xlsx", "A.XLSX", "~$a.xlsx", "a.xls", "a.xlsx.csv")
    assert [name for name in names if WORKBOOK.claims(Path(name))] == ["a.xlsx", "A.XLSX"]


def test_rows_come_as_declared(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    file = WORKBOOK.inspect(raw_file(path))
    assert (file.status, file.reason, file.hour_utc) == (READ, None, None)
    rows, rejected = rows_of(file, "cluster_topology")
    assert not rejected
    assert list(rows[0]) == [*WORKBOOK.relations[0].columns, "filename"]
    assert list(rows[1].values()) == [SECOND, None, None, SECOND, None, LEAF, "NH-GPU-2", 3, str(path)]
    nics, _ = rows_of(file, "gpu_nics")
    assert list(nics[0].values())[:4] == ["10.107.254.1", "mlx5_2", "ens10np0", 2]


def test_columns_are_found_by_name(write_book: WriteBook, raw_file: MakeFile) -> None:
    names = ["note", "SYS NAME", "Port_Name", " accessport ", "SwitchName", "nic name", "switch IP", "SERVER_IP"]
    shuffled = [names, *(["note", *(row[at] for at in (6, 3, 0, 5, 2, 4, 1))] for row in TOPOLOGY[1:])]
    nics: list[list[object]] = [["nic_name 2", "server IP", "NIC NAME 1"], ["ens10np0", "10.107.254.1", "mlx5_2"]]
    file = WORKBOOK.inspect(raw_file(write_book({"Cluster_Topology": shuffled, "server NIC info": nics})))
    assert (file.status, file.reason) == (READ, "columns ignored: note")
    plain = WORKBOOK.inspect(raw_file(write_book(BOOK, "plain.xlsx")))
    for relation in TITLES.values():
        ours, theirs = rows_of(file, relation)[0], rows_of(plain, relation)[0]
        assert [row | {"filename": ""} for row in ours] == [row | {"filename": ""} for row in theirs]


BOTH = "sheets 'GPU NIC info' and 'server NIC info'"
SHORT, TWICE = [row[:5] for row in TOPOLOGY], [[*row, row[0]] for row in NICS]
TOPOLOGY_ONLY, NICS_ONLY = "only sheet 'cluster topology' is read; ", "only sheet 'GPU NIC info' is read; "
NO_TOPOLOGY, NO_NICS = "no sheet 'cluster topology'", "no sheet 'GPU NIC info'"
BOOKS: dict[str, tuple[Sheets, str, list[str]]] = {
    "no NICs": ({"cluster topology": TOPOLOGY}, TOPOLOGY_ONLY + NO_NICS, ["cluster_topology"]),
    "no topology": ({"GPU NIC info": NICS}, NICS_ONLY + NO_TOPOLOGY, ["gpu_nics"]),
    "something else": ({"budget": [["a"], [1]]}, f"not a topology workbook: {NO_TOPOLOGY}, {NO_NICS}", []),
    "a missing column": (
        {**BOOK, "cluster topology": SHORT},
        f"{NICS_ONLY}sheet 'cluster topology': no column switchname, sysname", ["gpu_nics"],
    ),
    "a repeated column": (
        {**BOOK, "GPU NIC info": TWICE},
        f"{TOPOLOGY_ONLY}sheet 'GPU NIC info': column GPU IP stands twice", ["cluster_topology"],
    ),
    "two sheets for one": (
        {**BOOK, "server NIC info": NICS},
        f"{TOPOLOGY_ONLY}{BOTH} both stand for 'GPU NIC info'", ["cluster_topology"],
    ),
    "an empty sheet": (
        {**BOOK, "cluster topology": []}, f"{NICS_ONLY}sheet 'cluster topology' is empty", ["gpu_nics"],
    ),
}  # fmt: skip
"""Sheets of a workbook, its reason, and the relations that are read."""


@pytest.mark.parametrize("case", BOOKS)
def test_a_bad_sheet_leaves_the_other(write_book: WriteBook, raw_file: MakeFile, case: str) -> None:
    sheets, reason, read = BOOKS[case]
    file = WORKBOOK.inspect(raw_file(write_book(sheets)))
    assert (file.status, file.reason) == (PARTIAL if read else SKIPPED, reason)
    if read:
        assert [name for name in TITLES.values() if rows_of(file, name)[0]] == read


# Cells


def test_cells_become_text_without_the_blanks_around_it(write_book: WriteBook, raw_file: MakeFile) -> None:
    padded = [f" {FIRST} ", "\t", "ens10np0 ", None, " ", LEAF, "NH-GPU-1\n"]
    topology = [[], TOPOLOGY[0], padded, [], [" ", None, "\t"], TOPOLOGY[2]]
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, "cluster topology": topology})))
    rows, rejected = rows_of(file, "cluster_topology")
    assert not rejected
    assert [list(row.values())[:8] for row in rows] == [
        [FIRST, None, "ens10np0", None, None, LEAF, "NH-GPU-1", 3],
        [SECOND, None, None, SECOND, None, LEAF, "NH-GPU-2", 6],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.0, "12"), (7, "7"), (1.5, "1.5"), (True, "TRUE"), (1.826184052268872e16, "18261840522688720"), ("\t", None)],
)
def test_numbers_are_written_as_they_would_be_typed(value: object, text: str | None) -> None:
    assert xlsx.cell_text(value) == text


ODD: list[tuple[str, int, object, str]] = [
    ("cluster topology", 1, "n/a", "serverIP is 'n/a', not like 10.107.222.1"),
    ("cluster topology", 6, "NH-DC-NM129-A01-28U", "sysname is 'NH-DC-NM129-A01-28U', not like"),
    ("cluster topology", 6, None, "sysname is blank"),
    ("cluster topology", 5, "NH-ROCE-spine-1.GPU", "switchname is 'NH-ROCE-spine-1.GPU', not like"),
    ("cluster topology", 0, "200GE1/0/1:1", "accessport is '200GE1/0/1:1', not like"),
    ("cluster topology", 3, SECOND, f"accessport {FIRST} and portname {SECOND} differ"),
    ("cluster topology", 2, "n/a", "nicname is 'n/a', not like ens10np0"),
    ("GPU NIC info", 0, "n/a", "GPU IP is 'n/a', not like 10.107.254.1 to .240, or 10.107.255.1 to .255"),
    *(
        ("GPU NIC info", 0, f"10.107.{end}", f"GPU IP is '10.107.{end}', not like")
        for end in ("253.1", "254.241", "255.0")
    ),
    ("GPU NIC info", 1, None, "NIC name1 is blank"),
    ("GPU NIC info", 1, "eth0", "NIC name1 is 'eth0', not like mlx5_2"),
]


@pytest.mark.parametrize(("title", "column", "value", "reason"), ODD, ids=[reason[:40] for *_, reason in ODD])
def test_a_row_with_an_odd_cell_is_rejected_and_the_others_are_read(
    write_book: WriteBook, raw_file: MakeFile, title: str, column: int, value: object, reason: str
) -> None:
    header, good, *more = BOOK[title]
    other = more[0] if more else ["10.107.255.255", *good[1:]]
    odd = [value if at == column else cell for at, cell in enumerate(good)]
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, title: [header, odd, other]})))
    rows, (rejected,) = rows_of(file, TITLES[title])
    assert [row["sheet_row"] for row in rows] == [3]
    assert (rejected.file, rejected.line) == ("cluster/cluster.xlsx", 2)
    assert rejected.reason.startswith(reason)
    assert str(good[-1 if column != len(good) - 1 else 0]) in rejected.text


def test_the_first_of_repeated_rows_counts(write_book: WriteBook, raw_file: MakeFile) -> None:
    topology = [
        *TOPOLOGY,
        TOPOLOGY[1],
        [FIRST, None, None, FIRST, None, "elsewhere-Leaf-1", "NH-GPU-3"],
        ["TwoHundredGigE1/0/2:1", None, "ens10np0", None, None, LEAF, "NH-GPU-1"],
        ["TwoHundredGigE1/0/2:2", None, None, None, None, LEAF, "NH-GPU-2"],  # a second nameless NIC is no double
    ]
    nics = [*NICS, NICS[1], ["10.107.254.1", "mlx5_2", "ens11np0"], ["10.107.254.1", "mlx5_3", "ens10np0"]]
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": topology, "GPU NIC info": nics})))
    port, adapter = f"the port Leaf-1 {FIRST}", "the adapter 10.107.254.1 mlx5_2"
    for title, good, bad in (
        ("cluster topology", [2, 3, 7], [(4, port), (5, port), (6, "the NIC GPU-1 ens10np0")]),
        ("GPU NIC info", [2], [(3, adapter), (4, adapter), (5, "the NIC 10.107.254.1 ens10np0")]),
    ):
        rows, rejected = rows_of(file, TITLES[title])
        assert [row["sheet_row"] for row in rows] == good
        assert [(one.line, one.reason) for one in rejected] == [
            (line, f"{what} stands in row 2 already (sheet {title!r})") for line, what in bad
        ]


def test_formulas_are_read_with_their_stored_value_or_rejected(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart
) -> None:
    formulas = [("2", "=1+1", "ens11np0"), ("3", '="mlx5_"&3', "ens18np0"), ("4", "#N/A", None)]
    nics = [*NICS, *([f"10.107.254.{last}", *cells] for last, *cells in formulas)]
    path = write_book({"GPU NIC info": nics, "cluster topology": TOPOLOGY})
    stored = rb'\1 t="str"\2<v>mlx5_3</v>'
    swap_part(path, SHEET1, lambda part: re.sub(rb'(<c r="B4")(><f>.*?</f>)<v ?/>', stored, part))
    file = WORKBOOK.inspect(raw_file(path))
    rows, rejected = rows_of(file, "gpu_nics")
    assert file.status == READ
    assert [(row["gpu_ip"], row["nic_name1"]) for row in rows] == [
        ("10.107.254.1", "mlx5_2"), ("10.107.254.3", "mlx5_3"),
    ]  # fmt: skip
    assert [(one.line, one.reason) for one in rejected] == [
        (3, "cell B3 holds a formula without a stored value (sheet 'GPU NIC info')"),
        (5, "cell B5 holds the error #N/A (sheet 'GPU NIC info')"),
    ]


def test_the_stated_size_of_a_sheet_is_ignored(write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart) -> None:
    for stated in (b"A1", b"C3:C4", b"A1:XFD1048576"):
        path = write_book(BOOK, f"{stated.hex()}.xlsx")
        size = b'<dimension ref="' + stated + b'"'
        with zipfile.ZipFile(path) as package:
            part = package.read(SHEET1)
        swap_part(path, SHEET1, re.sub(rb'<dimension ref="[^"]*"', size, part))
        file = WORKBOOK.inspect(raw_file(path))
        assert file.status == READ
        assert [row["sysname"] for row in rows_of(file, "cluster_topology")[0]] == ["NH-GPU-1", "NH-GPU-2"]


def test_a_sheet_of_bad_rows_is_not_read_to_its_end(
    write_book: WriteBook, raw_file: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warehouse.formats.zhejiang.workbook.MOST_BAD", 2)
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, "GPU NIC info": [NICS[0], *[["x"]] * 9, NICS[1]]})))
    rows, rejected = rows_of(file, "gpu_nics")
    assert rows == []
    assert [one.line for one in rejected] == [2, 3, 4]
    assert rejected[-1].reason == "not read from here on: too many rows are bad"
