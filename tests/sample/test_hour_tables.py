"""Hour tables of the sample."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest


def _hour_tables(cluster: Path, folder: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the four tables of an hour."""
    root = cluster / "trafficinfo" / folder
    names = ("flow", "nic", "link", "port")
    tables = {}
    for name in names:
        with (root / f"{folder}_{name}.csv").open(encoding="utf-8", newline="") as file:
            tables[name] = [tuple(row) for row in csv.reader(file)]
    return tables


@pytest.mark.parametrize("hour", [0, 1])
def test_hour_tables_match_their_truth(cluster: Path, truth: dict[str, Any], hour: int) -> None:
    planted = truth["hour_tables"][hour]
    tables = _hour_tables(cluster, planted["folder"])
    assert all(len(rows) - 1 == planted[name]["rows"] for name, rows in tables.items())

    flow = [dict(zip(tables["flow"][0], row, strict=True)) for row in tables["flow"][1:]]
    for locality, total in planted["flow"]["localities"].items():
        rows = [row for row in flow if _locality(row) == locality]
        assert len(rows) == total["rows"] > 0
        assert total["packets"] == sum(
            int(row["ReadPkts"]) + int(row["WritePkts"]) + int(row["SendPkts"]) for row in rows
        )
        assert total["nak_packets"] == sum(int(row["NakPkts"]) for row in rows)
        ends = ("SourceIp", "DestIp", "SourceQp", "DestQp")
        assert total["flows"] == len({tuple(row[end] for end in ends) for row in rows})
    for nic in planted["flow"]["nics"]:
        mine = [row for row in flow if row["SourceIp"] == nic["ip"]]
        assert nic["queue_pairs_as_source"] == len({row["SourceQp"] for row in mine})
        assert nic["peers_as_source"] == len({row["DestIp"] for row in mine})

    counters: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in tables["nic"][1:]:
        counters[str(row[1]).rpartition("-GPU-")[2], row[3]].append((float(row[4]), float(row[5])))
    for nic in planted["nic"]["nics"]:
        values = counters[nic["server"].removeprefix("GPU-"), nic["hca"]]
        assert nic["rx_bytes"] == values[-1][0] - values[0][0]
        assert nic["tx_bytes"] == values[-1][1] - values[0][1]

    marked: dict[tuple[str, str], int] = defaultdict(int)
    for row in tables["link"][1:]:
        name = row[1].replace("400GE", "FourHundredGigE").replace("200GE", "TwoHundredGigE")
        marked[_short(row[0]), name] += int(row[23])
    assert marked == {(row["switch"], row["port"]): row["ecn_marked"] for row in planted["link"]["ports"]}
    assert sum(marked.values()) > 0
    lost: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in tables["port"][1:]:
        lost[_short(row[0]), row[1]][0] += int(row[6])
        lost[_short(row[0]), row[1]][1] += int(row[10])
    assert lost == {
        (row["switch"], row["port"]): [row["in_loss_packets"], row["out_loss_packets"]]
        for row in planted["port"]["ports"]
    }


def _short(device: str) -> str:
    return device.partition(".")[0].rpartition("ROCE-")[2]


def _locality(row: dict[str, Any]) -> str:
    leaves = [int(_short(row[end]).rpartition("-")[2]) for end in ("SourceSwitch", "DestSwitch")]
    if leaves[0] == leaves[1]:
        return "same_leaf"
    return "same_group" if (leaves[0] - 1) // 4 == (leaves[1] - 1) // 4 else "across_groups"


def test_link_rows_agree_with_the_uplinks(cluster: Path, truth: dict[str, Any]) -> None:
    link = _hour_tables(cluster, "2024052400")["link"]
    assert link[0][-1] == link[0][19] == "OutBrdcastPkts"
    spine_ports = {
        (_short(row[0]), row[1].replace("400GE", "FourHundredGigE")): (_short(row[2]), row[3])
        for row in link[1:]
        if row[3]
    }
    for uplink in truth["uplinks"]:
        leaf, spine = (uplink["leaf"], uplink["leaf_port"]), (uplink["spine"], uplink["spine_port"])
        assert spine_ports[leaf] == spine
        assert spine_ports[spine] == leaf
    others = [
        row
        for row in truth["uplinks"]
        if row["spine_port_by_formula"] and row["spine_port"] != row["spine_port_by_formula"]
    ]
    assert [(row["leaf"], row["leaf_port"]) for row in others] == [("Leaf-3", "FourHundredGigE1/0/36")]
    assert any(row[3] == "" for row in link[1:])


def test_nic_counters_are_written_as_floats(cluster: Path) -> None:
    for row in _hour_tables(cluster, "2024052400")["nic"][1:]:
        assert row[4].endswith("e+16")
        assert row[6].endswith(".0")


def test_nic_counters_count_what_the_switch_port_carries(
    seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]
) -> None:
    hour = truth["hour_tables"][0]
    ports = {(row["server"], row["hca"]): (row["switch"], row["port"]) for row in truth["nic_ports"]}
    checked = 0
    for nic in hour["nic"]["nics"]:
        switch, port = ports[nic["server"], nic["hca"]]
        if port and port.startswith("Two"):
            into, out = seconds.execute(
                "SELECT sum(in_bytes)::BIGINT, sum(out_bytes)::BIGINT FROM second"
                " WHERE switch = ? AND port = ? AND second_utc >= ?::TIMESTAMP"
                " AND second_utc < ?::TIMESTAMP + to_seconds(?)",
                [switch, port, hour["hour_utc"], hour["hour_utc"], nic["covered_seconds"]],
            ).fetchall()[0]
            assert abs(nic["rx_bytes"] - out) <= 4
            assert abs(nic["tx_bytes"] - into) <= 4
            checked += 1
    assert checked == 35 + 8  # with the two exchanged servers
