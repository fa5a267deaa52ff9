"""The published topology workbook."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.formats.topology_book import SHEET1, rows_of
from warehouse.formats.base import READ, RawFile
from warehouse.formats.zhejiang.workbook import WORKBOOK


@pytest.fixture(scope="module")
def published(real: Path) -> RawFile:
    path = real / "zhejiang" / "cluster_2000_A100" / "cluster_2000_A100.xlsx"
    return WORKBOOK.inspect(RawFile(path, "cluster_2000_A100/cluster_2000_A100.xlsx", path.stat().st_size, 0))


@pytest.mark.real
def test_the_published_workbook_is_read_whole(published: RawFile) -> None:
    assert (published.status, published.reason) == (READ, None)
    topology, rejected = rows_of(published, "cluster_topology")
    nics, more = rows_of(published, "gpu_nics")
    assert (len(topology), len(nics)) == (1_012, 1_040)
    assert not rejected
    assert not more
    assert [row["sheet_row"] for row in topology] == list(range(2, 1_014))
    assert {row["filename"] for row in (*topology, *nics)} == {str(published.path)}


@pytest.mark.real
def test_published_topology_has_the_measured_shape(published: RawFile) -> None:
    rows, _ = rows_of(published, "cluster_topology")
    measured = {
        "accessport": (61, 0), "serverIP": (1_004, 8), "nicname": (8, 2), "portname": (61, 0), "switchIP": (20, 8),
        "switchname": (20, 0), "sysname": (253, 0),
    }  # fmt: skip
    for column, (distinct, nulls) in measured.items():
        values = [row[column] for row in rows]
        assert len(set(values) - {None}) == distinct, column
        assert values.count(None) == nulls, column
    assert all(row["accessport"] == row["portname"] for row in rows)
    assert set(Counter(row["sysname"] for row in rows).values()) == {4}
    assert [row["sheet_row"] for row in rows if row["serverIP"] is None] == list(range(1_006, 1_014))
    assert {str(row["sysname"]).split("-")[-1] for row in rows if row["nicname"] is None} == {"153"}
    assert "Leaf-16" in str(rows[44 - 2]["switchname"])
    assert sum(row["accessport"] == "FourHundredGigE1/0/64" for row in rows) == 1


@pytest.mark.real
def test_published_nics_have_the_measured_shape(published: RawFile) -> None:
    rows, _ = rows_of(published, "gpu_nics")
    topology, _ = rows_of(published, "cluster_topology")
    addresses = Counter(str(row["gpu_ip"]) for row in rows)
    assert len(addresses) == 260
    assert set(addresses.values()) == {4}
    assert Counter(address.rsplit(".", 1)[0] for address in addresses) == {
        "10.107.254": 236,
        "10.107.255": 24,
    }
    assert not addresses.keys() & {row["serverIP"] for row in topology}
    odd = {row["sheet_row"]: (row["gpu_ip"], row["nic_name1"], row["nic_name2"]) for row in rows}
    assert odd[139] == ("10.107.254.35", "mlx5_3", "ens18np0")
    assert odd[140] == ("10.107.254.35", "mlx5_8", "ens11np0")
    assert {odd[524][1:], odd[525][1:]} == {("mlx5_4", "ens18np0"), ("mlx5_7", "ens19np0")}


@pytest.mark.real
def test_published_cells_agree_with_the_bare_xml(published: RawFile) -> None:
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(published.path) as package:
        strings = [
            "".join(text.text or "" for text in item.iter(f"{space}t"))
            for item in ET.fromstring(package.read("xl/sharedStrings.xml"))
        ]
        for part, relation in ((SHEET1, "cluster_topology"), ("xl/worksheets/sheet2.xml", "gpu_nics")):
            bare = []
            for row in ET.fromstring(package.read(part)).iter(f"{space}row"):
                cells = {}
                for cell in row:
                    value = cell.findtext(f"{space}v")
                    letter = str(cell.get("r")).rstrip("0123456789")
                    cells[letter] = strings[int(value)] if value is not None else None
                bare.append([cells.get(letter) for letter in "ABCDEFG"])
            read = [list(row.values()) for row in rows_of(published, relation)[0]]
            width = len(read[0]) - 2
            assert [row[:width] for row in read] == [row[:width] for row in bare[1:]]
