"""Bytes of access ports have owners whatever the workbook lacks: a missing sheet costs names, never bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import openpyxl
import pytest

import warehouse
from tests.release import keep_switches
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, write_sample

MODELS = (
    "metrics.nic_second",
    "metrics.port_hour",
    "metrics.server_hour",
    "topology.port_owners",
    "staging.rejected_rows",
)
TOPOLOGY, NICS = "cluster topology", "GPU NIC info"
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


CHANGES: dict[str, Callable[[Book], None] | None] = {
    "no_nics": without(NICS),
    "no_topology": without(TOPOLOGY),
    "no_book": None,
    "port_twice": claim_twice,
    "nic_twice": plug_twice,
}
"""Clusters with the same minute of two leaves, and what is wrong with the workbook of each."""


@pytest.fixture(scope="module")
def asked(own_models: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    base = tmp_path_factory.mktemp("owners")
    write_sample(base, SampleOptions(hours=1, seconds=60, jobs=False, utilization=False, hour_tables=False))
    for hour in base.rglob("trafficinfo/*"):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-Leaf-5_")
    for name, change in CHANGES.items():
        root = shutil.copytree(base / "zhejiang" / "cluster_sample", base / "release" / name)
        path = root / "cluster_sample.xlsx"
        if change is None:
            path.unlink()
            continue
        book = openpyxl.load_workbook(path)
        change(book)
        book.save(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(base / "release", base / "target")
    with warehouse.open(base / "target") as connection:
        yield connection


@pytest.mark.parametrize("cluster", CHANGES)
def test_no_byte_is_lost(asked: duckdb.DuckDBPyConnection, cluster: str) -> None:
    ports = "SELECT sum(in_bytes), sum(out_bytes) FROM metrics.port_hour WHERE port_class = 'access' AND cluster = $1"
    moved = asked.execute(ports, [cluster]).fetchall()
    for table in ("server_hour", "nic_second"):
        owned = f"SELECT sum(tx_bytes), sum(rx_bytes) FROM metrics.{table} WHERE cluster = $1"
        assert asked.execute(owned, [cluster]).fetchall() == moved, table
    assert moved[0][0] > 0


@pytest.mark.parametrize(
    ("cluster", "evidence"),
    [
        ("no_nics", {"workbook", "inferred:port"}),
        ("no_topology", {"inferred:port"}),
        ("no_book", {"inferred:port"}),
    ],
)
def test_owners_without_a_sheet_are_inferred(
    asked: duckdb.DuckDBPyConnection, cluster: str, evidence: set[str]
) -> None:
    found = "SELECT DISTINCT evidence FROM topology.hour_owners WHERE cluster = $1"
    assert {word for (word,) in asked.execute(found, [cluster]).fetchall()} == evidence


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
