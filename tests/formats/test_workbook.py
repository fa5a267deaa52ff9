"""The topology workbook: usual and odd cells, harmed and malicious files, and the published one."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openpyxl.worksheet.formula import ArrayFormula

from warehouse.base.errors import DataError
from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, Rejected
from warehouse.formats.zhejiang import workbook
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import Sheets, WriteBook

Row = dict[str, object]
MakeFile = Callable[[Path], RawFile]


SwapPart = Callable[[Path, str, bytes | Callable[[bytes], bytes]], None]

FIRST, SECOND, LEAF = "TwoHundredGigE1/0/1:1", "TwoHundredGigE1/0/1:2", "NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825"
TOPOLOGY: list[list[object]] = [
    ["accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname"],
    [FIRST, "10.107.222.1", "ens10np0", FIRST, "10.107.208.111", LEAF, "NH-GPU-1"],
    [SECOND, None, None, SECOND, None, LEAF, "NH-GPU-2"],
]
NICS: list[list[object]] = [["GPU IP", "NIC name1", "NIC name 2"], ["10.107.254.1", "mlx5_2", "ens10np0"]]
BOOK: dict[str, list[list[object]]] = {"cluster topology": TOPOLOGY, "GPU NIC info": NICS}
SHEET1 = "xl/worksheets/sheet1.xml"


def rows_of(file: RawFile, relation: str) -> tuple[list[Row], list[Rejected]]:
    rejected: list[Rejected] = []
    return [dict(row) for row in WORKBOOK.read([file], relation, rejected)], rejected


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


ODD: list[tuple[str, int, object, str]] = [
    ("cluster topology", 1, "=A1", "serverIP is '=A1', not like"),
    ("cluster topology", 1, ArrayFormula("B3", "=A1"), "serverIP is '=', not like"),
    ("GPU NIC info", 2, "#N/A", "NIC name 2 is '#N/A', not like"),
    ("cluster topology", 1, "n/a", "serverIP is 'n/a', not like 10.107.222.1"),
    ("cluster topology", 6, None, "sysname is blank"),
    ("cluster topology", 5, "NH-ROCE-spine-1.GPU", "switchname is 'NH-ROCE-spine-1.GPU', not like"),
    ("cluster topology", 0, "200GE1/0/1:1", "accessport is '200GE1/0/1:1', not like"),
    ("cluster topology", 3, SECOND, f"accessport {FIRST} and portname {SECOND} differ"),
    ("GPU NIC info", 0, "n/a", "GPU IP is 'n/a', not like 10.107.254.1 to .240, or 10.107.255.1 to .255"),
    *(
        ("GPU NIC info", 0, f"10.107.{end}", f"GPU IP is '10.107.{end}', not like")
        for end in ("253.1", "254.241", "255.0")
    ),
    ("GPU NIC info", 1, None, "NIC name1 is blank"),
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


# harmed and malicious files

Harm = Callable[[bytes], bytes]
"""Function from the bytes of a good workbook to other ones."""


def zipped(parts: dict[str, bytes], book: bytes = b"") -> bytes:
    """Return a zip file of the parts of a workbook, with these instead of or beside its own."""
    held = io.BytesIO()
    if book:
        with zipfile.ZipFile(io.BytesIO(book)) as package:
            parts = {part: package.read(part) for part in package.namelist()} | parts
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return held.getvalue()


def with_entities(part: str, encoding: str = "utf-8", before: str = "") -> Harm:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    bomb = f'<?xml version="1.0" encoding="{encoding}"?>{before}{laughs}<x>&b;</x>'
    return lambda book: zipped({part: bomb.encode(encoding)}, book)


def encrypted(book: bytes) -> bytes:
    content = bytearray(book)
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def zeros_inside(book: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(book)) as package:
        at = package.getinfo(SHEET1).header_offset + 120
    return book[:at] + bytes(8) + book[at + 8 :]


def longer_than_stated(book: bytes) -> bytes:
    entry = book.index(b"xl/styles.xml", book.index(b"PK\x01\x02")) - 46
    return book[: entry + 24] + (10).to_bytes(4, "little") + book[entry + 28 :]


DAMAGED, ENTITIES = "truncated or damaged: ", "part {!r} declares a document type, and so entities"
HARMS: dict[str, tuple[Harm, str]] = {
    "no zip": (lambda _: b"accessport,serverIP\n", "not a zip file, so not a workbook"),
    "nothing": (lambda _: b"", "empty file"),
    "an old workbook": (lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "encrypted, or an old .xls"),
    "its first half": (lambda book: book[: len(book) // 2], DAMAGED),
    "zeros inside": (zeros_inside, DAMAGED),
    "longer than stated": (longer_than_stated, DAMAGED),
    "encrypted": (encrypted, "encrypted"),
    "a bomb": (
        lambda book: zipped({"xl/media/image1.png": bytes(4 * 2**20)}, book),
        "part 'xl/media/image1.png' unpacks to more than 200 times its size",
    ),
    "many parts": (lambda book: zipped({f"xl/{one}.png": b"" for one in range(2_000)}, book), "2,0"),
    "entities": (with_entities("xl/sharedStrings.xml"), ENTITIES.format("xl/sharedStrings.xml")),
    "entities in UTF-16": (with_entities(SHEET1, "utf-16"), ENTITIES.format(SHEET1)),
}  # fmt: skip
"""Harm, and the begin of its reason."""


def skipped(path: Path, make: MakeFile) -> str:
    file = WORKBOOK.inspect(make(path))
    assert file.status == SKIPPED
    assert file.reason
    assert "\n" not in file.reason
    with pytest.raises(DataError, match=re.escape(path.name)):
        rows_of(file, "gpu_nics")
    return file.reason


@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_workbook_is_skipped_with_the_reason(write_book: WriteBook, raw_file: MakeFile, harm: str) -> None:
    path = write_book(BOOK)
    make, reason = HARMS[harm]
    path.write_bytes(make(path.read_bytes()))
    assert skipped(path, raw_file).startswith(reason)


def test_a_missing_workbook_is_skipped(tmp_path: Path) -> None:
    file = WORKBOOK.inspect(RawFile(tmp_path / "gone.xlsx", "cluster/gone.xlsx", 0, 0))
    assert (file.status, file.reason) == (SKIPPED, "cannot be read: No such file or directory")


def test_a_workbook_is_refused_by_size(
    write_book: WriteBook, raw_file: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workbook.MAX_BYTES == 256 * 2**20
    path = write_book(BOOK)
    with zipfile.ZipFile(path) as package:
        total = sum(part.file_size for part in package.infolist())
    monkeypatch.setattr(workbook, "MAX_BYTES", total)
    assert WORKBOOK.inspect(raw_file(path)).status == READ
    workbook._tables.cache_clear()
    monkeypatch.setattr(workbook, "MAX_BYTES", total - 1)
    assert skipped(path, raw_file).startswith("unpacks to more than ")


@pytest.mark.parametrize(
    ("forged", "line"), [(b'<row r="3" <', 3), (b'<row r="99999999999"', 1_001)], ids=["XML", "row"]
)
def test_a_damaged_sheet_keeps_the_rows_before_the_damage(
    write_book: WriteBook,
    raw_file: MakeFile,
    swap_part: SwapPart,
    monkeypatch: pytest.MonkeyPatch,
    forged: bytes,
    line: int,
) -> None:
    assert workbook.LAST_ROW == 2**20
    monkeypatch.setattr(workbook, "LAST_ROW", 1_000)
    path = write_book(BOOK)
    swap_part(path, SHEET1, lambda part: part.replace(b'<row r="3"', forged))
    rows, rejected = rows_of(WORKBOOK.inspect(raw_file(path)), "cluster_topology")
    assert [row["sysname"] for row in rows] == ["NH-GPU-1"]
    assert [one.line for one in rejected] == [line]
    assert ("below the last row" if line > 1_000 else "cannot be read from here on") in rejected[0].reason


def test_a_workbook_that_changed_since_it_was_inspected_is_an_error(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = WORKBOOK.inspect(raw_file(write_book(BOOK)))
    write_book({"cluster topology": TOPOLOGY})
    with pytest.raises(DataError, match=r"cluster\.xlsx: changed while it was read: no sheet"):
        rows_of(file, "gpu_nics")


# the published workbook


@pytest.mark.real
def test_the_published_workbook_is_read_whole(real: Path) -> None:
    path = real / "zhejiang" / "cluster_2000_A100" / "cluster_2000_A100.xlsx"
    published = WORKBOOK.inspect(RawFile(path, "cluster_2000_A100/cluster_2000_A100.xlsx", path.stat().st_size, 0))
    assert (published.status, published.reason) == (READ, None)
    topology, rejected = rows_of(published, "cluster_topology")
    nics, more = rows_of(published, "gpu_nics")
    assert (len(topology), len(nics)) == (1_012, 1_040)
    assert not rejected
    assert not more
    assert [row["sheet_row"] for row in topology] == list(range(2, 1_014))
    assert {row["filename"] for row in (*topology, *nics)} == {str(published.path)}
