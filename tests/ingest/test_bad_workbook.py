"""Odd topology workbooks: rows that are there twice count once, many bad rows end a build."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from tests.release import Release, done, fails, lay_out

TOPOLOGY = "cluster topology"
Change = tuple[str, int, int, object]
"""Sheet, row, column from 1, and the replacement value."""


def change(path: Path, *changes: Change) -> None:
    book = openpyxl.load_workbook(path)
    for sheet, row, column, value in changes:
        book[sheet].cell(row, column).value = value
    book.save(path)
    book.close()


def double_rows(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    for sheet in book.worksheets:
        for row in list(sheet.iter_rows(min_row=2, max_row=4, values_only=True)):
            sheet.append(row)
    book.save(path)


def add_a_nameless_row(path: Path) -> None:
    """Give a server two rows on ports of one leaf: the rail order would give both one name."""
    book = openpyxl.load_workbook(path)
    sheet = book[TOPOLOGY]
    row = next(row for row in sheet.iter_rows(min_row=2, values_only=True) if row[2])
    free = "TwoHundredGigE1/0/30:2"
    sheet.append([free, None, None, free, None, row[5], row[6]])
    book.save(path)


def give_groups_one_base(path: Path) -> None:
    """Give a second group wrong addresses throughout: two groups claim the same numbers."""
    book = openpyxl.load_workbook(path)
    for row in book[TOPOLOGY].iter_rows(min_row=2):
        server, address = int(str(row[6].value).rpartition("-")[2]), str(row[1].value)
        row[1].value = f"{address.rpartition('.')[0]}.{min(server, 255)}" if row[1].value else None
    book.save(path)


CLUSTERS: dict[str, Callable[[Path], object]] = {
    "intact": lambda _: None,
    "doubled": double_rows,
    "nameless": add_a_nameless_row,
    "copied": lambda path: shutil.copy(path, path.with_name("cluster (1).xlsx")),
}
"""Clusters without traffic, and what their workbooks have."""


@pytest.fixture(scope="module")
def built(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Release:
    """A release of such clusters, built."""
    release = lay_out(sample, tmp_path_factory.mktemp("workbooks"))
    for name, spoil in CLUSTERS.items():
        (release.root / name / "trafficinfo").mkdir(parents=True)
        spoil(Path(shutil.copy(release.workbook, release.root / name / "cluster.xlsx")))
    release.cluster.rename(release.root / "grouped")
    give_groups_one_base(release.root / "grouped" / "cluster.xlsx")
    done(release.build())
    return release


def rejected(release: Release, cluster: str) -> list[str]:
    asked = (
        f"SELECT DISTINCT line, reason FROM staging.rejected_rows WHERE starts_with(file, '{cluster}/') ORDER BY ALL"
    )
    return [str(reason) for _, reason in release.ask(asked)]


def test_rows_that_are_there_twice_change_no_nic(built: Release) -> None:
    nic_ports = "SELECT * EXCLUDE (cluster) FROM topology.nic_ports WHERE cluster = '{}' ORDER BY ALL"
    for cluster in ("doubled", "nameless", "copied"):
        assert built.ask(nic_ports.format(cluster)) == built.ask(nic_ports.format("intact")), cluster
    reasons = rejected(built, "doubled")
    assert len(reasons) == 6
    assert all(" already (sheet " in reason for reason in reasons)
    assert rejected(built, "nameless") == []
    assert rejected(built, "copied") == ["not read: the same file as copied/cluster (1).xlsx"]


def test_groups_of_one_base_make_no_suspects(built: Release) -> None:
    assert built.ask(
        "SELECT count(DISTINCT group_base), count(DISTINCT leaf_group) > 1 FROM topology.sheet_servers "
        "WHERE cluster = 'grouped'"
    ) == [(1, True)]
    suspects = "SELECT count(*) FROM metrics.suspect_links WHERE kind = 'server_in_other_group' AND cluster = 'grouped'"
    assert built.ask(suspects) == [(0,)]


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
