"""The topology workbook: columns, cells and rows of usual and unusual ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.formats.topology_book import BOOK, FIRST, LEAF, NICS, SECOND, SHEET1, TOPOLOGY, MakeFile, SwapPart, rows_of
from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED, Rejected, TableFormat
from warehouse.formats.zhejiang import xlsx
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import WriteBook


def test_it_is_a_table_format_with_unique_columns() -> None:
    assert isinstance(WORKBOOK, TableFormat)
    assert [relation.name for relation in WORKBOOK.relations] == ["cluster_topology", "gpu_nics"]
    for relation in WORKBOOK.relations:
        folded = [name.lower() for name in (*relation.columns, "filename")]
        assert len(set(folded)) == len(folded)


@pytest.mark.parametrize(
    ("name", "claimed"),
    [("a.xlsx", True), ("A.XLSX", True), ("~$a.xlsx", False), ("a.xls", False), ("a.xlsx.csv", False)],
)
def test_claims_goes_by_name(name: str, claimed: bool) -> None:
    assert WORKBOOK.claims(Path(name)) is claimed


def test_rows_come_as_declared(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    file = WORKBOOK.inspect(raw_file(path))
    assert (file.status, file.reason, file.hour_utc) == (READ, None, None)
    rows, rejected = rows_of(file, "cluster_topology")
    assert not rejected
    assert list(rows[0]) == [*WORKBOOK.relations[0].columns, "filename"]
    assert rows[1] == {
        "accessport": SECOND,
        "serverIP": None,
        "nicname": None,
        "portname": SECOND,
        "switchIP": None,
        "switchname": LEAF,
        "sysname": "NH-GPU-2",
        "sheet_row": 3,
        "filename": str(path),
    }
    nics, _ = rows_of(file, "gpu_nics")
    assert list(nics[0].values())[:4] == ["10.107.254.1", "mlx5_2", "ens10np0", 2]


def test_columns_are_found_by_name(write_book: WriteBook, raw_file: MakeFile) -> None:
    order = [6, 3, 0, 5, 2, 4, 1]
    shuffled = [["note", *(row[at] for at in order)] for row in TOPOLOGY]
    shuffled[0] = [
        "note",
        "SYS NAME",
        "Port_Name",
        " accessport ",
        "SwitchName",
        "nic name",
        "switch IP",
        "SERVER_IP",
    ]
    nics = [["nic_name 2", "server IP", "NIC NAME 1"], ["ens10np0", "10.107.254.1", "mlx5_2"]]
    path = write_book({"Cluster_Topology": shuffled, "server NIC info": nics})
    file = WORKBOOK.inspect(raw_file(path))
    assert (file.status, file.reason) == (READ, "columns ignored: note")
    plain = WORKBOOK.inspect(raw_file(write_book(BOOK, "plain.xlsx")))
    for relation in ("cluster_topology", "gpu_nics"):
        ours, theirs = rows_of(file, relation)[0], rows_of(plain, relation)[0]
        assert [row | {"filename": ""} for row in ours] == [row | {"filename": ""} for row in theirs]


@pytest.mark.parametrize(
    ("left_out", "kept", "relation"),
    [
        ("GPU NIC info", "cluster topology", "cluster_topology"),
        ("cluster topology", "GPU NIC info", "gpu_nics"),
    ],
)
def test_one_sheet_alone_is_read(
    write_book: WriteBook, raw_file: MakeFile, left_out: str, kept: str, relation: str
) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({kept: BOOK[kept]})))
    assert (file.status, file.reason) == (PARTIAL, f"only sheet {kept!r} is read; no sheet {left_out!r}")
    read = {name: len(rows_of(file, name)[0]) for name in ("cluster_topology", "gpu_nics")}
    assert read == {"cluster_topology": 0, "gpu_nics": 0} | {relation: len(BOOK[kept]) - 1}


def test_a_workbook_of_something_else_is_skipped(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({"budget": [["a", "b"], [1, 2]]})))
    assert file.status == SKIPPED
    assert file.reason == "not a topology workbook: no sheet 'cluster topology', no sheet 'GPU NIC info'"


def test_missing_and_repeated_columns_affect_only_their_sheet(write_book: WriteBook, raw_file: MakeFile) -> None:
    short = [row[:5] for row in TOPOLOGY]
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": short, "GPU NIC info": NICS})))
    assert file.status == PARTIAL
    assert file.reason == ("only sheet 'GPU NIC info' is read; sheet 'cluster topology': no column switchname, sysname")
    twice = [[*row, row[0]] for row in NICS]
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": TOPOLOGY, "GPU NIC info": twice})))
    assert file.reason == ("only sheet 'cluster topology' is read; sheet 'GPU NIC info': column GPU IP stands twice")


def test_two_sheets_of_one_name_are_a_problem(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, "server NIC info": NICS})))
    assert file.status == PARTIAL
    assert "sheets 'GPU NIC info' and 'server NIC info' both stand for 'GPU NIC info'" in str(file.reason)
    assert rows_of(file, "gpu_nics") == ([], [])


def test_an_empty_sheet_is_reported(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": [], "GPU NIC info": NICS})))
    assert (file.status, file.reason) == (
        PARTIAL,
        "only sheet 'GPU NIC info' is read; sheet 'cluster topology' is empty",
    )


# Cells


def test_cells_become_text_without_the_blanks_around_it(write_book: WriteBook, raw_file: MakeFile) -> None:
    topology = [
        [],
        TOPOLOGY[0],
        [f" {FIRST} ", "\t", "ens10np0 ", None, " ", LEAF, "NH-GPU-1\n"],
        [],
        [" ", None, "\t"],
        TOPOLOGY[2],
    ]
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": topology, "GPU NIC info": NICS})))
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


ODD_TOPOLOGY: dict[str, tuple[int, object, str]] = {
    "an address that is none": (1, "n/a", "serverIP is 'n/a', not like 10.107.222.1"),
    "an octet too large": (1, "10.107.222.256", "serverIP is '10.107.222.256', not like"),
    "a switch's address that is none": (4, "-", "switchIP is '-', not like 10.107.208.111"),
    "a server without number": (6, "NH-DC-NM129-A01-28U", "sysname is 'NH-DC-NM129-A01-28U', not like"),
    "a server with too large a number": (6, "GPU-1234567890", "sysname is 'GPU-1234567890', not like"),
    "a server's number with a zero before it": (6, "NH-GPU-01", "sysname is 'NH-GPU-01', not like"),
    "no server": (6, None, "sysname is blank"),
    "a switch that is no leaf": (5, "core-router", "switchname is 'core-router', not like"),
    "a spine": (5, "NH-ROCE-spine-1.GPU", "switchname is 'NH-ROCE-spine-1.GPU', not like"),
    "no switch": (5, None, "switchname is blank"),
    "a port of another kind": (0, "HundredGigE1/0/1", "accessport is 'HundredGigE1/0/1', not like"),
    "a short name of a port": (0, "200GE1/0/1:1", "accessport is '200GE1/0/1:1', not like"),
    "SQL for a port": (0, "'; DROP TABLE x; --", 'accessport is "\'; DROP TABLE x; --", not like'),
    "a number for a port": (0, 7, "accessport is '7', not like"),
    "no port": (0, " ", "accessport is blank"),
    "another port beside it": (3, SECOND, f"accessport {FIRST} and portname {SECOND} differ"),
    "a NIC that is none": (2, "n/a", "nicname is 'n/a', not like ens10np0"),
}


@pytest.mark.parametrize("case", ODD_TOPOLOGY)
def test_a_row_with_an_odd_cell_is_rejected_and_the_others_are_read(
    write_book: WriteBook, raw_file: MakeFile, case: str
) -> None:
    column, value, reason = ODD_TOPOLOGY[case]
    odd = [*TOPOLOGY[1]]
    odd[column] = value
    topology = [TOPOLOGY[0], odd, TOPOLOGY[2]]
    file = WORKBOOK.inspect(raw_file(write_book({"cluster topology": topology, "GPU NIC info": NICS})))
    rows, (rejected,) = rows_of(file, "cluster_topology")
    assert [row["sheet_row"] for row in rows] == [3]
    assert (rejected.file, rejected.line) == ("cluster/cluster.xlsx", 2)
    assert rejected.reason.startswith(reason)
    assert LEAF in rejected.text or column == 5


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["n/a", "mlx5_2", "ens10np0"], "GPU IP is 'n/a', not like 10.107.254.1 to .240, or 10.107.255.1 to .255"),
        (["10.107.253.1", "mlx5_2", "ens10np0"], "GPU IP is '10.107.253.1', not like"),
        (["10.107.254.241", "mlx5_2", "ens10np0"], "GPU IP is '10.107.254.241', not like"),
        (["10.107.255.0", "mlx5_2", "ens10np0"], "GPU IP is '10.107.255.0', not like"),
        ([None, "mlx5_3", "ens11np0"], "GPU IP is blank"),
        (["10.107.254.2", None, "ens10np0"], "NIC name1 is blank"),
        (["10.107.254.2", "eth0", "ens10np0"], "NIC name1 is 'eth0', not like mlx5_2"),
        (["10.107.254.2", "mlx5_2", None], "NIC name 2 is blank"),
    ],
)
def test_an_odd_row_of_nics_is_rejected(
    write_book: WriteBook, raw_file: MakeFile, row: list[object], reason: str
) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, "GPU NIC info": [NICS[0], row, NICS[1]]})))
    rows, rejected = rows_of(file, "gpu_nics")
    assert [one["sheet_row"] for one in rows] == [3]
    assert [(one.line, one.reason.startswith(reason)) for one in rejected] == [(2, True)], rejected


@pytest.mark.parametrize(
    "address", ["10.107.254.1", "10.107.254.99", "10.107.254.240", "10.107.255.1", "10.107.255.255"]
)
def test_addresses_of_servers_are_read(write_book: WriteBook, raw_file: MakeFile, address: str) -> None:
    file = WORKBOOK.inspect(raw_file(write_book({**BOOK, "GPU NIC info": [NICS[0], [address, "mlx5_2", "ens10np0"]]})))
    assert rows_of(file, "gpu_nics")[1] == []


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
    rows, rejected = rows_of(file, "cluster_topology")
    assert [row["sheet_row"] for row in rows] == [2, 3, 7]
    assert [(one.line, one.reason) for one in rejected] == [
        (4, f"the port Leaf-1 {FIRST} stands in row 2 already (sheet 'cluster topology')"),
        (5, f"the port Leaf-1 {FIRST} stands in row 2 already (sheet 'cluster topology')"),
        (6, "the NIC GPU-1 ens10np0 stands in row 2 already (sheet 'cluster topology')"),
    ]
    rows, rejected = rows_of(file, "gpu_nics")
    assert [row["sheet_row"] for row in rows] == [2]
    assert [(one.line, one.reason) for one in rejected] == [
        (3, "the adapter 10.107.254.1 mlx5_2 stands in row 2 already (sheet 'GPU NIC info')"),
        (4, "the adapter 10.107.254.1 mlx5_2 stands in row 2 already (sheet 'GPU NIC info')"),
        (5, "the NIC 10.107.254.1 ens10np0 stands in row 2 already (sheet 'GPU NIC info')"),
    ]


def test_the_same_workbook_under_two_names_is_read_once(write_book: WriteBook, raw_file: MakeFile) -> None:
    first = raw_file(write_book(BOOK)).but(status=READ, cluster="cluster", digest="d1")
    copy = raw_file(write_book(BOOK, "cluster (1).xlsx")).but(status=READ, cluster="cluster", digest="d1")
    rejected: list[Rejected] = []
    assert len(list(WORKBOOK.read([first, copy], "gpu_nics", rejected))) == 1
    assert rejected == [Rejected("cluster/cluster (1).xlsx", 1, "not read: the same file as cluster/cluster.xlsx", "")]
    other = copy.but(digest="d2")
    with pytest.raises(DataError, match="two different workbooks of cluster have the sheet 'GPU NIC info'"):
        list(WORKBOOK.read([first, other], "gpu_nics", rejected))
    elsewhere = copy.but(cluster="another")
    assert len(list(WORKBOOK.read([first, elsewhere], "gpu_nics", rejected))) == 2


def test_formulas_are_read_with_their_stored_value_or_rejected(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart
) -> None:
    nics = [
        *NICS,
        ["10.107.254.2", "=1+1", "ens11np0"],
        ["10.107.254.3", '="mlx5_"&3', "ens18np0"],
        ["10.107.254.4", "#N/A", None],
    ]
    path = write_book({"GPU NIC info": nics, "cluster topology": TOPOLOGY})
    swap_part(
        path,
        SHEET1,
        lambda part: re.sub(rb'(<c r="B4")(><f>.*?</f>)<v ?/>', rb'\1 t="str"\2<v>mlx5_3</v>', part),
    )
    file = WORKBOOK.inspect(raw_file(path))
    rows, rejected = rows_of(file, "gpu_nics")
    assert file.status == READ
    assert [(row["gpu_ip"], row["nic_name1"]) for row in rows] == [
        ("10.107.254.1", "mlx5_2"),
        ("10.107.254.3", "mlx5_3"),
    ]
    assert [(one.line, one.reason) for one in rejected] == [
        (3, "cell B3 holds a formula without a stored value (sheet 'GPU NIC info')"),
        (5, "cell B5 holds the error #N/A (sheet 'GPU NIC info')"),
    ]


@pytest.mark.parametrize("stated", [b"A1", b"A1:B2", b"C3:C4", b"A1:XFD1048576"])
def test_the_stated_size_of_a_sheet_is_ignored(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart, stated: bytes
) -> None:
    path = write_book(BOOK)
    swap_part(
        path,
        SHEET1,
        lambda part: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="' + stated + b'"', part),
    )
    file = WORKBOOK.inspect(raw_file(path))
    assert file.status == READ
    assert [row["sysname"] for row in rows_of(file, "cluster_topology")[0]] == ["NH-GPU-1", "NH-GPU-2"]
