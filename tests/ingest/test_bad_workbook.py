"""Damaged topology workbooks: an odd row is rejected with its sheet row, a bad file is skipped, the build continues."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import openpyxl
import pytest

from tests.release import Release, Rows, done, fails, lay_out

if TYPE_CHECKING:
    from pathlib import Path

TOPOLOGY, NICS = "cluster topology", "GPU NIC info"
Change = tuple[str, int, int, object]
"""Sheet, row, column from 1, and the replacement value."""

ODD: dict[str, tuple[Change, str]] = {
    "an address that is none": ((TOPOLOGY, 5, 2, "n/a"), "serverIP is 'n/a', not like 10.107.222.1"),
    "a server without number": ((TOPOLOGY, 6, 7, "storage-a"), "sysname is 'storage-a', not like"),
    "a switch that is no leaf": ((TOPOLOGY, 7, 6, "core"), "switchname is 'core', not like"),
    "a port of another kind": ((TOPOLOGY, 8, 1, "eth0"), "accessport is 'eth0', not like TwoHundredGigE1/0/1:1"),
    "a server's address that is none": ((NICS, 5, 1, "10.107.254"), "GPU IP is '10.107.254', not like"),
    "a NIC without adapter": ((NICS, 6, 2, None), "NIC name1 is blank"),
}


def change(path: Path, *changes: Change) -> None:
    book = openpyxl.load_workbook(path)
    for sheet, row, column, value in changes:
        book[sheet].cell(row, column).value = value
    book.save(path)
    book.close()


ROWS = (
    "SELECT 'cluster topology', sheet_row FROM staging.cluster_topology UNION ALL "
    "SELECT 'GPU NIC info', sheet_row FROM staging.gpu_nics"
)


@pytest.fixture(scope="module")
def odd(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> tuple[Release, Rows]:
    """A workbook with all odd rows, built, and the rows before."""
    release = lay_out(sample, tmp_path_factory.mktemp("odd"))
    done(release.build())
    before = release.ask(ROWS)
    change(release.workbook, *(one for one, _ in ODD.values()))
    done(release.build())
    return release, before


@pytest.mark.parametrize("case", ODD)
def test_an_odd_row_is_rejected_with_its_number(odd: tuple[Release, Rows], case: str) -> None:
    (sheet, row, _, _), reason = ODD[case]
    found = odd[0].ask(f"SELECT file, reason FROM staging.rejected_rows WHERE line = {row}")
    assert [file for file, why in found if str(why).startswith(reason)] == ["cluster/cluster.xlsx"]
    assert (sheet, row) in odd[1]


def test_the_other_rows_are_loaded(odd: tuple[Release, Rows]) -> None:
    release, before = odd
    rejected = {(sheet, row) for (sheet, row, _, _), _ in ODD.values()}
    assert sorted(release.ask(ROWS), key=str) == sorted((one for one in before if one not in rejected), key=str)
    assert release.ask("SELECT count(*) FROM staging.rejected_rows") == [(len(ODD),)]
    assert f"{len(ODD)} lines could not be read" in release.doctor().out


def test_too_many_bad_rows_stop_the_build_unless_more_are_allowed(release: Release) -> None:
    """Up to ten bad rows never do: 1 % of a sheet as published."""
    change(release.workbook, *((TOPOLOGY, row, 2, "n/a") for row in range(5, 15)))
    done(release.build())
    change(release.workbook, (TOPOLOGY, 15, 2, "n/a"))
    fails(
        release.build(),
        f"{release.workbook}: 11 of 48 rows cannot be read, more than --max-rejected allows (0.01 of them)",
        "line 5: serverIP is 'n/a', not like 10.107.222.1",
    )
    done(release.build("--max-rejected", "50%"))
    assert release.ask("SELECT count(*) FROM staging.rejected_rows") == [(11,)]
    fails(release.build(), "11 of 48 rows cannot be read")


def test_a_sheet_of_bad_rows_is_not_read_to_its_end(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warehouse.formats.zhejiang.workbook.MOST_BAD", 3)
    change(release.workbook, *((TOPOLOGY, row, 2, "n/a") for row in range(5, 15)))
    done(release.build("--max-rejected", "100%"))
    assert release.ask("SELECT line, reason LIKE 'not read from here%' FROM staging.rejected_rows ORDER BY line") == [
        (5, False), (6, False), (7, False), (8, True)
    ]  # fmt: skip


def give_both_sheets_an_error(path: Path) -> None:
    change(path, (TOPOLOGY, 4, 1, "=A1"), (NICS, 4, 1, "=A1"))


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


def copy_beside(path: Path) -> None:
    shutil.copy(path, path.with_name("cluster (1).xlsx"))


SAME: dict[str, Callable[[Path], None]] = {
    "intact": lambda _: None,
    "both": give_both_sheets_an_error,
    "doubled": double_rows,
    "nameless": add_a_nameless_row,
    "copied": copy_beside,
}
"""Clusters, and what their workbooks have that changes no other row."""
NIC_PORTS = "SELECT * EXCLUDE (cluster) FROM topology.nic_ports WHERE cluster = '{}' ORDER BY ALL"


@pytest.fixture(scope="module")
def same(sample: Path, tmp_path_factory: pytest.TempPathFactory, small_project: None) -> Release:
    """A release of such clusters, built."""
    release = lay_out(sample, tmp_path_factory.mktemp("same"))
    for name, spoil in SAME.items():
        cluster = shutil.copytree(release.cluster, release.root / name)
        spoil(cluster / "cluster.xlsx")
    shutil.rmtree(release.cluster)
    done(release.build())
    return release


def rejected(release: Release, cluster: str) -> Rows:
    asked = "SELECT DISTINCT file, line, reason FROM staging.rejected_rows"
    return release.ask(f"{asked} WHERE starts_with(file, '{cluster}/') ORDER BY ALL")


def test_the_same_error_in_both_sheets_is_two_rejected_rows(same: Release) -> None:
    assert [reason for *_, reason in rejected(same, "both")] == [
        f"cell A4 holds a formula without a stored value (sheet {sheet!r})" for sheet in sorted((TOPOLOGY, NICS))
    ]


def test_doubled_rows_change_nothing(same: Release) -> None:
    assert same.ask(NIC_PORTS.format("doubled")) == same.ask(NIC_PORTS.format("intact"))
    assert same.ask(
        "SELECT count(*), bool_and(reason LIKE '% stands in row % already (sheet %)') FROM staging.rejected_rows "
        "WHERE file = 'doubled/cluster.xlsx'"
    ) == [(6, True)]


def test_a_nameless_row_gets_no_name_that_its_server_already_has(same: Release) -> None:
    assert rejected(same, "nameless") == []
    assert same.ask(NIC_PORTS.format("nameless")) == same.ask(NIC_PORTS.format("intact"))


def test_a_copy_of_the_workbook_is_not_read_twice(same: Release) -> None:
    assert same.ask(NIC_PORTS.format("copied")) == same.ask(NIC_PORTS.format("intact"))
    assert rejected(same, "copied") == [
        ("copied/cluster.xlsx", 1, "not read: the same file as copied/cluster (1).xlsx")
    ]


def test_two_different_workbooks_are_an_error_that_names_both(published: Release) -> None:
    before = published.state()
    copy = published.workbook.with_name("newer.xlsx")
    copy.write_bytes(published.workbook.read_bytes())
    change(copy, (TOPOLOGY, 5, 2, "10.107.222.9"))
    fails(
        published.build(),
        "two different workbooks of cluster have the sheet 'cluster topology'",
        str(copy),
        str(published.workbook),
    )
    assert published.state() == before


def test_groups_of_one_base_make_no_suspects(published: Release) -> None:
    """If a second group has wrong addresses throughout, two groups claim the same numbers."""
    book = openpyxl.load_workbook(published.workbook)
    sheet = book[TOPOLOGY]
    for row in sheet.iter_rows(min_row=2):
        server, address = int(str(row[6].value).rpartition("-")[2]), str(row[1].value)
        row[1].value = f"{address.rpartition('.')[0]}.{min(server, 255)}" if row[1].value else None
    book.save(published.workbook)
    done(published.build())
    assert published.ask(
        "SELECT count(DISTINCT group_base), count(DISTINCT leaf_group) > 1 FROM topology.sheet_servers"
    ) == [(1, True)]
    assert published.ask("SELECT count(*) FROM metrics.suspect_links WHERE kind = 'server_in_other_group'") == [(0,)]


def test_a_workbook_that_is_no_workbook_is_skipped(release: Release) -> None:
    release.workbook.write_bytes(b"PK\x03\x04 and then nothing")
    done(release.build())
    assert release.listed(release.workbook)[0] == "skipped"
    assert "cluster/cluster.xlsx" in release.doctor().out
