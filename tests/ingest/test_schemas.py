"""The columns and rows of `raw.files`, and which of them enter fingerprints."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from warehouse.formats.base import RawFile
from warehouse.ingest.schemas import FILES_COLUMNS, file_identity, file_row


def test_a_row_has_the_columns_of_the_contract_in_order(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "a.csv", "c/a.csv", 3, 0)
    assert list(file_row(file)) == [column.name for column in FILES_COLUMNS]


def test_location_and_mtime_do_not_enter_fingerprints(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "a.csv", "c/a.csv", 3, 0).but(hour_utc=datetime(2024, 5, 23, 16), digest="d")  # noqa: DTZ001
    elsewhere = RawFile(tmp_path / "b" / "a.csv", "c/a.csv", 3, 10**9).but(hour_utc=file.hour_utc, digest="d")
    assert file_identity(file) == file_identity(elsewhere)
    assert file_identity(file) != file_identity(file.but(digest="e"))
    assert file_identity(file) != file_identity(file.but(status="partial"))
