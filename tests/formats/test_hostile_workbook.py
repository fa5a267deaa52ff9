"""Damaged and malicious topology workbooks: each is skipped in one sentence, or read up to its damage."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.formats.topology_book import BOOK, SHEET1, TOPOLOGY, MakeFile, SwapPart, rows_of
from warehouse.base.errors import DataError
from warehouse.formats.base import READ, SKIPPED, RawFile
from warehouse.formats.zhejiang import workbook, xlsx
from warehouse.formats.zhejiang.workbook import WORKBOOK

if TYPE_CHECKING:
    from tests.formats.conftest import WriteBook

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
    "another zip": (lambda _: zipped({"readme.txt": b"hello"}), "not a readable workbook: "),
    "its begin": (lambda book: book[:10], DAMAGED),
    "its first half": (lambda book: book[: len(book) // 2], DAMAGED),
    "without its end": (lambda book: book[:-30], DAMAGED),
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
    "late entities": (
        with_entities("xl/styles.xml", before=f"<!-- {'x' * 100_000} -->"), ENTITIES.format("xl/styles.xml"),
    ),
    "entities anywhere": (with_entities("xl/x.bin", "utf-16"), ENTITIES.format("xl/x.bin")),
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
    assert xlsx.MAX_BYTES == 256 * 2**20
    path = write_book(BOOK)
    with zipfile.ZipFile(path) as package:
        total = sum(part.file_size for part in package.infolist())
    monkeypatch.setattr(xlsx, "MAX_BYTES", total)
    assert WORKBOOK.inspect(raw_file(path)).status == READ
    workbook._tables.cache_clear()
    monkeypatch.setattr(xlsx, "MAX_BYTES", total - 1)
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
    assert xlsx.LAST_ROW == 2**20
    monkeypatch.setattr(xlsx, "LAST_ROW", 1_000)
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
