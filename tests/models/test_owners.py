"""Bytes of access ports have owners whatever the workbook lacks: a missing sheet costs names, never bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

import warehouse
from tests.conftest import MadeOnce
from tests.release import only

TOPOLOGY, NICS = "cluster topology", "GPU NIC info"
PORTS = ("Leaf-1_GPU_*/Leaf-1_[1-4]_*.csv", "Leaf-5_GPU_*/Leaf-5_1_*.csv")
"""Port files of each cluster: with and without rows in the workbook."""
Book = Any


def without(sheet: str) -> Callable[[Book], None]:
    def change(book: Book) -> None:
        del book[sheet]

    return change


def claim_twice(book: Book) -> None:
    """Give the first port to the server of the second row, too."""
    first, second = (next(row for row in book[TOPOLOGY].iter_rows(min_row=at, max_row=at)) for at in (2, 3))
    book[TOPOLOGY].append([first[0].value, *(cell.value for cell in second[1:])])


def plug_twice(book: Book) -> None:
    """Give the second NIC of a server the name of its first."""
    header, first, *others = book[TOPOLOGY].iter_rows()
    nic, sysname = ([cell.value for cell in header].index(name) for name in ("nicname", "sysname"))
    second = next(row for row in others if row[sysname].value == first[sysname].value)
    second[nic].value = first[nic].value


CHANGES: dict[str, tuple[Callable[[Book], None] | None, set[str]]] = {
    "no_nics": (without(NICS), {"workbook", "inferred:port"}),
    "no_topology": (without(TOPOLOGY), {"inferred:port"}),
    "no_book": (None, {"inferred:port"}),
    "port_twice": (claim_twice, {"workbook", "inferred:port", "inferred:slot"}),
    "nic_twice": (plug_twice, {"workbook", "inferred:port", "inferred:slot"}),
}
"""Clusters with the same ports, what is wrong with the workbook of each, and how owners are known."""


@pytest.fixture(scope="module")
def asked(sample: Path, made_once: MadeOnce) -> Iterator[duckdb.DuckDBPyConnection]:
    def make(base: Path) -> None:
        cluster = sample / "zhejiang" / "cluster_sample"
        for name, (change, _) in CHANGES.items():
            root = base / "release" / name
            for path in (path for ports in PORTS for path in cluster.glob(f"trafficinfo/2024052400/*-{ports}")):
                place = root / path.relative_to(cluster)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
            if change:
                book = openpyxl.load_workbook(cluster / "cluster_sample.xlsx")
                change(book)
                book.save(root / "cluster_sample.xlsx")
        with only(base / "project", "metrics.nic_second", "metrics.server_hour", "staging.rejected_rows"):
            warehouse.build(base / "release", base / "target")

    with warehouse.open(made_once("owners", make) / "target") as connection:
        yield connection


@pytest.mark.parametrize("cluster", CHANGES)
def test_no_byte_is_lost_and_owners_without_a_sheet_are_inferred(
    asked: duckdb.DuckDBPyConnection, cluster: str
) -> None:
    ports = "SELECT sum(in_bytes), sum(out_bytes) FROM metrics.port_hour WHERE port_class = 'access' AND cluster = $1"
    moved = asked.execute(ports, [cluster]).fetchall()
    for table in ("server_hour", "nic_second"):
        owned = f"SELECT sum(tx_bytes), sum(rx_bytes) FROM metrics.{table} WHERE cluster = $1"
        assert asked.execute(owned, [cluster]).fetchall() == moved, table
    assert moved[0][0] > 0
    found = asked.execute("SELECT DISTINCT evidence FROM topology.hour_owners WHERE cluster = $1", [cluster])
    assert {word for (word,) in found.fetchall()} == CHANGES[cluster][1]


def test_a_row_that_claims_a_port_or_nic_again_is_rejected(asked: duckdb.DuckDBPyConnection) -> None:
    """The first row counts."""
    rejected = asked.execute("SELECT file, reason FROM staging.rejected_rows WHERE file LIKE '%.xlsx' ORDER BY ALL")
    reasons = [(file.split("/")[0], reason.partition(" stands")[0]) for file, reason in rejected.fetchall()]
    assert [file for file, _ in reasons] == ["nic_twice", "port_twice"]
    assert reasons[0][1].startswith("the NIC GPU-1 ")
    owners = "SELECT cluster, port, server FROM topology.port_owners WHERE switch = 'Leaf-1' AND evidence = 'workbook'"
    of = {(cluster, port): server for cluster, port, server in asked.execute(owners).fetchall()}
    same = [server == of["no_nics", port] for (cluster, port), server in of.items() if cluster == "port_twice"]
    assert len(same) > 3
    assert all(same)
