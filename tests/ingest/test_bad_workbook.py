"""Odd topology workbooks: many bad rows, or two workbooks of one sheet, end a build."""

from __future__ import annotations

import shutil
from pathlib import Path

import openpyxl
import pytest

from tests.release import Release, done, fails

TOPOLOGY = "cluster topology"
Change = tuple[str, int, int, object]
"""Sheet, row, column from 1, and the replacement value."""


def change(path: Path, *changes: Change) -> None:
    book = openpyxl.load_workbook(path)
    for sheet, row, column, value in changes:
        book[sheet].cell(row, column).value = value
    book.save(path)
    book.close()


@pytest.fixture
def sheet(release: Release) -> Release:
    """A release of topology alone."""
    shutil.rmtree(release.cluster / "trafficinfo")
    return release


def test_too_many_bad_rows_stop_the_build_unless_more_are_allowed(sheet: Release) -> None:
    """Up to ten bad rows never do: 1 % of a sheet as published."""
    change(sheet.workbook, *((TOPOLOGY, row, 2, "n/a") for row in range(5, 16)))
    fails(
        sheet.build(),
        f"{sheet.workbook}: 11 of 76 rows cannot be read, more than --max-rejected allows (0.01 of them)",
        "line 5: serverIP is 'n/a', not like 10.107.222.1",
    )
    done(sheet.build("--max-rejected", "50%"))
    assert sheet.ask("SELECT count(*) FROM staging.rejected_rows") == [(11,)]
    fails(sheet.build(), "11 of 76 rows cannot be read")


def test_two_different_workbooks_are_an_error_that_names_both(sheet: Release) -> None:
    copy = sheet.workbook.with_name("newer.xlsx")
    copy.write_bytes(sheet.workbook.read_bytes())
    change(copy, (TOPOLOGY, 5, 2, "10.107.222.9"))
    what = "two different workbooks of cluster have the sheet 'cluster topology'"
    fails(sheet.build(), what, str(copy), str(sheet.workbook))
