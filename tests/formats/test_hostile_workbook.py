"""Damaged and malicious topology workbooks."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.formats.topology_book import BOOK, SHEET1, TOPOLOGY, MakeFile, SwapPart, rows_of
from warehouse.base.errors import DataError
from warehouse.formats.base import READ, SKIPPED
from warehouse.formats.zhejiang import workbook, xlsx
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import WriteBook


def skipped(path: Path, make: MakeFile) -> str:
    file = WORKBOOK.inspect(make(path))
    assert file.status == SKIPPED
    assert file.reason
    assert "\n" not in file.reason
    with pytest.raises(DataError, match=re.escape(path.name)):
        rows_of(file, "gpu_nics")
    return file.reason


def zipped(parts: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return held.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"accessport,serverIP\n", "not a zip file, so not a workbook"),
        (b"", "empty file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "encrypted, or an old .xls workbook"),
        (zipped({"readme.txt": b"hello"}), "not a readable workbook: "),
    ],
)
def test_a_file_that_is_not_a_workbook_is_skipped(
    tmp_path: Path, raw_file: MakeFile, content: bytes, reason: str
) -> None:
    path = tmp_path / "cluster.xlsx"
    path.write_bytes(content)
    assert skipped(path, raw_file).startswith(reason)


def test_truncated_and_damaged_zips_are_skipped(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    whole = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as package:
        at = package.getinfo(SHEET1).header_offset + 120
    for content in (whole[:10], whole[: len(whole) // 2], whole[:-30], whole[:at] + bytes(8) + whole[at + 8 :]):
        path.write_bytes(content)
        assert skipped(path, raw_file).startswith("truncated or damaged: ")


def test_encrypted_parts_are_skipped(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert skipped(path, raw_file) == "encrypted"


def test_a_zip_bomb_is_refused_by_ratio(write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart) -> None:
    path = write_book(BOOK)
    swap_part(path, "xl/media/image1.png", bytes(4 * 2**20))
    assert skipped(path, raw_file) == "part 'xl/media/image1.png' unpacks to more than 200 times its size"


def test_a_zip_bomb_is_refused_by_size(
    write_book: WriteBook, raw_file: MakeFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert xlsx.MAX_BYTES == 256 * 2**20
    path = write_book(BOOK)
    with zipfile.ZipFile(path) as package:
        total = sum(part.file_size for part in package.infolist())
    monkeypatch.setattr(xlsx, "MAX_BYTES", total)
    assert WORKBOOK.inspect(raw_file(path)).status == READ
    workbook._tables.cache_clear()
    monkeypatch.setattr(xlsx, "MAX_BYTES", total - 1)
    assert skipped(path, raw_file).startswith("unpacks to more than ")


def test_a_zip_bomb_is_refused_by_number(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    with zipfile.ZipFile(path, "a") as package:
        for number in range(2_001 - len(package.infolist())):
            package.writestr(f"xl/media/{number}.png", b"")
    assert skipped(path, raw_file) == "2,001 parts, more than 2,000"


def test_a_part_longer_than_the_directory_says_is_refused(write_book: WriteBook, raw_file: MakeFile) -> None:
    path = write_book(BOOK)
    with zipfile.ZipFile(path) as package:
        part = package.getinfo("xl/styles.xml")
    content = path.read_bytes()
    true, lie = part.file_size.to_bytes(4, "little"), (10).to_bytes(4, "little")
    entry = content.index(b"xl/styles.xml", content.index(b"PK\x01\x02")) - 46
    assert content[entry + 24 : entry + 28] == true
    path.write_bytes(content[: entry + 24] + lie + content[entry + 28 :])
    assert skipped(path, raw_file).startswith("truncated or damaged: ")


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("part", "encoding", "before"),
    [
        ("xl/sharedStrings.xml", "utf-8", ""),
        (SHEET1, "utf-16", ""),
        ("xl/styles.xml", "utf-8", f"<!-- {'x' * 100_000} -->"),
        ("[Content_Types].xml", "utf-16", ""),
        ("xl/x.bin", "utf-8", ""),
    ],
)
def test_entities_are_refused(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart, part: str, encoding: str, before: str
) -> None:
    path = write_book(BOOK)
    bomb = f'<?xml version="1.0" encoding="{encoding}"?>{before}{LAUGHS}<x>&b;</x>'
    swap_part(path, part, bomb.encode(encoding))
    assert skipped(path, raw_file) == f"part {part!r} declares a document type, and so entities"


def test_a_damaged_sheet_keeps_the_rows_before_the_damage(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart
) -> None:
    path = write_book(BOOK)
    swap_part(path, SHEET1, lambda part: part.replace(b'<row r="3"', b'<row r="3" <'))
    file = WORKBOOK.inspect(raw_file(path))
    rows, rejected = rows_of(file, "cluster_topology")
    assert [row["sysname"] for row in rows] == ["NH-GPU-1"]
    assert [one.line for one in rejected] == [3]
    assert "cannot be read from here on" in rejected[0].reason


def test_a_forged_row_number_ends_the_sheet(
    write_book: WriteBook, raw_file: MakeFile, swap_part: SwapPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert xlsx.LAST_ROW == 2**20
    monkeypatch.setattr(xlsx, "LAST_ROW", 1_000)
    path = write_book(BOOK)
    swap_part(path, SHEET1, lambda part: part.replace(b'<row r="3"', b'<row r="99999999999"'))
    rows, rejected = rows_of(WORKBOOK.inspect(raw_file(path)), "cluster_topology")
    assert [row["sysname"] for row in rows] == ["NH-GPU-1"]
    assert [one.line for one in rejected] == [1_001]


def test_a_workbook_that_changed_since_it_was_inspected_is_an_error(write_book: WriteBook, raw_file: MakeFile) -> None:
    file = WORKBOOK.inspect(raw_file(write_book(BOOK)))
    write_book({"cluster topology": TOPOLOGY})
    with pytest.raises(DataError, match=r"cluster\.xlsx: changed while it was read: no sheet"):
        rows_of(file, "gpu_nics")
