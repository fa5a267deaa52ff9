"""Shared fixtures of the tests of raw formats."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import zstandard
from openpyxl import Workbook

from tests.formats.hour_examples import MakeFile, csv_format
from warehouse.formats.base import RawFile

Sheets = Mapping[str, Sequence[Sequence[object]]]
WriteBook = Callable[..., Path]


@pytest.fixture
def write_book(tmp_path: Path) -> WriteBook:
    """Return a function that writes a workbook of rows per sheet: `write_book(sheets, "name.xlsx")`."""

    def write(sheets: Sheets, name: str = "cluster.xlsx") -> Path:
        book = Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(list(row))
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        book.save(path)
        return path

    return write


@pytest.fixture
def swap_part() -> Callable[[Path, str, bytes | Callable[[bytes], bytes]], None]:
    """Return a function that replaces or adds one part of a zip: `swap_part(path, name, content)`."""

    def swap(path: Path, name: str, content: bytes | Callable[[bytes], bytes]) -> None:
        with zipfile.ZipFile(path) as package:
            parts = {part.filename: package.read(part) for part in package.infolist()}
        parts[name] = content if isinstance(content, bytes) else content(parts[name])
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
            for part, body in parts.items():
                package.writestr(part, body)

    return swap


@pytest.fixture
def raw_file() -> Callable[[Path], RawFile]:
    """Return a function that makes a `RawFile` in the state in which a scan passes it to a format."""

    def make(path: Path) -> RawFile:
        return RawFile(path, f"cluster/{path.name}", path.stat().st_size, path.stat().st_mtime_ns)

    return make


@pytest.fixture
def write_csv(tmp_path: Path, raw_file: MakeFile) -> Callable[..., RawFile]:
    """Return a function that writes `2024052400_port.csv` with these lines and inspects it."""

    def write(*lines: str | bytes, name: str = "2024052400_port.csv", end: bytes = b"\n") -> RawFile:
        content = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + end
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pack = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}.get(path.suffix, bytes)
        path.write_bytes(pack(content))
        return csv_format(path).inspect(raw_file(path))

    return write
