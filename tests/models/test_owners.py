"""Bytes of access ports have owners whatever the workbook lacks: a missing sheet costs names, never bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import openpyxl
import pytest

import warehouse
from tests.release import keep_switches
from warehouse.sample import SampleOptions, write_sample

MODELS = (
    "metrics.nic_second",
    "metrics.port_hour",
    "metrics.server_hour",
    "topology.port_owners",
    "staging.rejected_rows",
)
pytestmark = pytest.mark.usefixtures("only_own_models")
CLUSTER = "zhejiang/cluster_sample"
TOPOLOGY, NICS = "cluster topology", "GPU NIC info"
BOTH = {"workbook", "inferred:slot", "inferred:port"}


@pytest.fixture(scope="module")
def minute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One hour of two leaves with a minute of traffic."""
    root = tmp_path_factory.mktemp("minute")
    write_sample(root, SampleOptions(hours=1, seconds=60, jobs=False, utilization=False, hour_tables=False))
    for hour in root.rglob("trafficinfo/*"):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-Leaf-5_")
    return root / CLUSTER


@pytest.mark.parametrize(
    ("missing", "evidence"),
    [
        ((NICS,), {"workbook", "inferred:port"}),
        ((TOPOLOGY,), {"inferred:port"}),
        ((TOPOLOGY, NICS), {"inferred:port"}),
    ],
)
def test_without_a_sheet_no_byte_is_lost(
    minute: Path, tmp_path: Path, missing: tuple[str, ...], evidence: set[str]
) -> None:
    root = tmp_path / CLUSTER
    shutil.copytree(minute, root)
    workbook = root / "cluster_sample.xlsx"
    if len(missing) == len((TOPOLOGY, NICS)):
        workbook.unlink()
    else:
        book = openpyxl.load_workbook(workbook)
        for name in missing:
            del book[name]
        book.save(workbook)

    warehouse.build(tmp_path, tmp_path / "target")

    with warehouse.open(tmp_path / "target") as asked:
        found = asked.execute("SELECT DISTINCT evidence FROM topology.hour_owners").fetchall()
        ports = "SELECT sum(in_bytes), sum(out_bytes) FROM metrics.port_hour WHERE port_class = 'access'"
        moved = asked.execute(ports).fetchall()
        owned = asked.execute("SELECT sum(tx_bytes), sum(rx_bytes) FROM metrics.server_hour").fetchall()
        seconds = asked.execute("SELECT sum(tx_bytes), sum(rx_bytes) FROM metrics.nic_second").fetchall()
    assert {word for (word,) in found} == evidence
    assert moved == owned == seconds
    assert moved[0][0] > 0


def test_a_port_that_two_rows_claim_keeps_its_first_server_and_its_bytes(minute: Path, tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    shutil.copytree(minute, root)
    book = openpyxl.load_workbook(root / "cluster_sample.xlsx")
    sheet = book[TOPOLOGY]
    first, second = (next(row for row in sheet.iter_rows(min_row=at, max_row=at)) for at in (2, 3))
    sheet.append([first[0].value, *(cell.value for cell in second[1:])])
    book.save(root / "cluster_sample.xlsx")

    warehouse.build(tmp_path, tmp_path / "target")

    with warehouse.open(tmp_path / "target") as asked:
        rejected = asked.execute("SELECT reason FROM staging.rejected_rows WHERE file LIKE '%.xlsx'").fetchall()
        owner = asked.execute(
            "SELECT server FROM topology.port_owners WHERE port = ? AND switch = 'Leaf-1'", [first[0].value]
        ).fetchall()
    assert len(rejected) == 1
    assert owner == [("GPU-" + str(first[6].value).rpartition("-")[2],)]


def test_a_nic_on_two_ports_of_the_sheet_costs_a_row_and_no_byte(minute: Path, tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    shutil.copytree(minute, root)
    book = openpyxl.load_workbook(root / "cluster_sample.xlsx")
    header, first, *others = book[TOPOLOGY].iter_rows()
    nic, sysname = ([cell.value for cell in header].index(name) for name in ("nicname", "sysname"))
    second = next(row for row in others if row[sysname].value == first[sysname].value)
    second[nic].value = first[nic].value
    book.save(root / "cluster_sample.xlsx")

    warehouse.build(tmp_path, tmp_path / "target")

    with warehouse.open(tmp_path / "target") as asked:
        rejected = asked.execute("SELECT reason FROM staging.rejected_rows WHERE file LIKE '%.xlsx'").fetchall()
        ports = "SELECT sum(in_bytes), sum(out_bytes) FROM metrics.port_hour WHERE port_class = 'access'"
        servers = "SELECT sum(tx_bytes), sum(rx_bytes) FROM metrics.server_hour"
        assert asked.execute(ports).fetchall() == asked.execute(servers).fetchall()
    assert [reason.partition(" stands")[0] for (reason,) in rejected] == [f"the NIC GPU-1 {first[nic].value}"]
