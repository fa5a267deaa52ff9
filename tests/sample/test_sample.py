"""The sample: in the published form, reproducible, and consistent with itself.

`tests/models/test_sample_truth.py` compares the tables that are built from it with its truth.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

from warehouse.sample import SampleOptions, write_sample
from warehouse.sample.clock import START_MS

HEADER = ["SaveTime", "SaveTimeUTC", "DeviceName", "PortName", "InPkts", "InOctets", "OutPkts", "OutOctets"]
HEADER += ["InRatio", "OutRatio"]
SPINES = 3

Key = tuple[str, str, str]
Series = dict[Key, list[list[str]]]


@pytest.fixture(scope="module")
def truth(sample: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample / "truth.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def cluster(sample: Path) -> Path:
    return sample / "zhejiang" / "cluster_sample"


@pytest.fixture(scope="module")
def series(cluster: Path, truth: dict[str, Any]) -> Series:
    """Return the rows of each port CSV file, read only with the csv module."""
    hours = {hour["folder"]: hour["hour_utc"] for hour in truth["hours"]}
    found = {}
    for path in sorted(cluster.glob("trafficinfo/*/*_GPU_S9825/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        device = rows[0][2]
        assert (header, device.replace(".", "_")) == (HEADER, path.parent.name)
        switch = device.removesuffix(".GPU.S9825").rpartition("ROCE-")[2]
        found[switch, rows[0][3], hours[path.parent.parent.name]] = rows
    return found


@pytest.fixture(scope="module")
def seconds(sample: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW second AS SELECT * FROM read_parquet('{sample}/truth/second.parquet')")
    return connection


def _digests(directory: Path) -> dict[str, str]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _traps(truth: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [trap for trap in truth["traps"] if trap["kind"] == kind]


def _bytes(series: Series, switch: str, port: str, hour: str) -> tuple[int, int]:
    rows = series[switch, port, hour]
    return sum(int(row[5]) for row in rows), sum(int(row[7]) for row in rows)


def _sheets(cluster: Path) -> list[list[tuple[Any, ...]]]:
    book = openpyxl.load_workbook(cluster / "cluster_sample.xlsx")
    assert book.sheetnames == ["cluster topology", "GPU NIC info"]
    return [list(book[name].iter_rows(values_only=True)) for name in book.sheetnames]


def test_equal_options_give_equal_bytes_and_another_seed_other_traffic(tmp_path: Path) -> None:
    small = SampleOptions(seconds=60, hours=1, spines=1)
    for name, options in (("a", small), ("again", small), ("b", replace(small, seed=8))):
        write_sample(tmp_path / name, options)
    a, b = _digests(tmp_path / "a"), _digests(tmp_path / "b")
    assert a == _digests(tmp_path / "again")
    assert a.keys() - b.keys() <= {name for name in a if "Leaf" in name or "taskinfo" in name}
    assert a["truth/second.parquet"] != b["truth/second.parquet"]


def test_port_files_have_the_published_form(cluster: Path, series: Series, truth: dict[str, Any]) -> None:
    for path in list(cluster.glob("trafficinfo/*/*/*.csv"))[::17]:
        content = path.read_bytes()
        assert not content.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in content
        assert b'"' not in content
        assert content.endswith(b"\n")
    assert len(series) == truth["files"]["count"]
    for rows in series.values():
        times = [int(row[1]) for row in rows]
        assert all(a < b for a, b in itertools.pairwise(times))
        assert {row[0].rpartition(" ")[0] for row in rows} == {"2024/05/24 星期五"}
        for row, time in zip(rows[::50], times[::50], strict=True):
            hour, minute, second = row[0].rpartition(" ")[2].split(":")
            local = (int(hour) * 60 + int(minute)) * 60_000 + round(float(second) * 1000)
            assert time == START_MS + local
        assert all(len(text.partition(".")[2]) <= 2 for row in rows for text in row[8:])


def test_ratios_follow_the_published_formula_and_no_200g_row_passes_line_rate(series: Series) -> None:
    checked = 0
    last: dict[tuple[str, str], int] = {}
    for switch, port, hour in sorted(series):
        rate = 200e9 if port.startswith("TwoHundredGigE") else 640e9
        before = last.get((switch, port), START_MS)
        for row in series[switch, port, hour]:
            milliseconds, before = int(row[1]) - before, int(row[1])
            for delta, text in ((int(row[5]), row[8]), (int(row[7]), row[9])):
                units = int(abs(delta) // 10**7) * (1 if delta >= 0 else -1)
                expected = 100 * min(1, units * 10**7 * 8e3 / milliseconds / rate)
                assert abs(float(text) - expected) <= 0.00501
                assert rate > 200e9 or delta <= 25_000_000 * milliseconds + 10**7
                checked += units != 0
        last[switch, port] = before
    assert checked > 10_000


def test_physical_bytes_balance_and_stored_ones_lack_the_last_second(
    seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]
) -> None:
    unbalanced, over, planted = (
        seconds.execute(query).fetchall()
        for query in (
            "SELECT switch, second_utc FROM second GROUP BY ALL HAVING sum(in_bytes) <> sum(out_bytes)",
            "FROM second WHERE greatest(in_bytes, out_bytes) > CASE WHEN port LIKE 'Two%' THEN 25e9 ELSE 50e9 END",
            "SELECT switch, port, sum(in_bytes)::BIGINT, sum(out_bytes)::BIGINT FROM second GROUP BY ALL",
        )
    )
    assert seconds.execute("SELECT count(*) FROM second").fetchone() == (truth["second_rows"],)
    assert unbalanced == over == []
    spine_of = {(row["leaf"], row["leaf_port"]): row["spine"] for row in truth["uplinks"]}
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    stored: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in truth["ports"]:
        stored[row["switch"], row["port"]][0] += row["in_bytes"]
        stored[row["switch"], row["port"]][1] += row["out_bytes"]
    for switch, port, *real in planted:
        for way, moved in enumerate(real):
            assert 0 <= moved - stored[switch, port][way] <= 3 * 25_000_000_000
            if (switch, port) in spine_of:
                sums[spine_of[switch, port]][way] += moved
    assert len(sums) == SPINES
    assert all(abs(into / out - 1) < 1e-6 for into, out in sums.values())


def test_the_workbook_has_the_published_form_and_its_traps(cluster: Path, truth: dict[str, Any]) -> None:
    topology, nics = _sheets(cluster)
    assert topology[0] == ("accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname")
    assert nics[0] == ("GPU IP", "NIC name1", "NIC name 2")
    assert all(isinstance(cell, str) or cell is None for row in topology for cell in row)
    assert all(isinstance(cell, str) for row in nics for cell in row)
    assert len({(row[3], row[5]) for row in topology[1:]}) == len(topology) - 1 == 4 * 12
    addresses = [tuple(map(int, str(row[0]).split("."))) for row in nics[1:]]
    assert addresses == sorted(addresses)
    assert len(addresses) == 4 * 15

    pairs = {(row[0], row[1]): row[2] for row in nics}
    empty = [row for row in topology if row[1] is None]
    assert topology[-4:] == empty
    assert {row[6] for row in empty} == {"NH-DC-NM129-A01-12U-GPU-3"}
    assert all(row[4] is None for row in empty)
    assert sum(row[2] is None for row in empty) == 2
    leaves = [int(str(row[5]).rpartition("Leaf-")[2].partition(".")[0]) for row in topology[1:]]
    stray = _traps(truth, "row_out_of_order")[0]["sheet_row"]
    assert leaves[stray - 3 : stray] == [1, 8, 1]
    assert (pairs["10.107.254.2", "mlx5_3"], pairs["10.107.254.2", "mlx5_8"]) == ("ens18np0", "ens11np0")
    assert {hca for address, hca in pairs if address == "10.107.254.7"} == {"mlx5_2", "mlx5_3", "mlx5_4", "mlx5_7"}
    assert ("10.107.255.1", "mlx5_2") in pairs
    assert next(row[0] for row in topology if str(row[6]).endswith("GPU-61")) == "FourHundredGigE1/0/64"
    assert not any(address == "10.107.254.64" for address, _ in pairs)


def test_every_suspect_can_be_seen_in_the_files(series: Series, truth: dict[str, Any]) -> None:
    hours = [hour["hour_utc"] for hour in truth["hours"]]
    kinds = [row["kind"] for row in truth["suspects"]]
    assert kinds.count("server_in_other_group") == 4 + 2 * 4  # one server alone, and two that are exchanged
    for kind, hour in itertools.product(("access_on_idle_400g", "uplink_silent_in", "uplink_no_data_out"), hours):
        row = truth["suspects"][kinds.index(kind)]
        both = _bytes(series, row["switch"], row["port"], hour)
        if kind == "access_on_idle_400g":
            assert both == (0, 0)
            assert min(_bytes(series, row["switch"], row["candidate_port"], hour)) > 10**9
            continue
        side = 0 if kind == "uplink_silent_in" else 1
        assert both[side] == 0 if kind == "uplink_silent_in" else 0 < both[side] < 1e-6 * both[1 - side]
        others = [_bytes(series, row["switch"], port, hour)[side] for port in _traps(truth, kind)[0]["neighbours"]]
        weight = _traps(truth, "spine_favored")[0]["weight"]  # of the spine of these ports
        usual = [_bytes(series, row["switch"], f"FourHundredGigE1/0/{p}", hour)[side] for p in (39, 40, 41)]
        assert all(1.35 < other / (sum(usual) / 3 / weight) < 1.65 for other in others)


def test_the_decoy_is_wired_as_the_sheet_says(seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]) -> None:
    decoys = {trap["server"]: trap for trap in _traps(truth, "decoy_exchanged_slots")}
    assert {(server, trap["switch"]) for server, trap in decoys.items()} == {("GPU-62", "Leaf-6"), ("GPU-63", "Leaf-6")}
    for server, trap in decoys.items():
        sibling = next(row for row in truth["nic_ports"] if row["server"] == server and row["switch"] == "Leaf-7")
        correlations = {
            port: seconds.execute(
                "SELECT corr(a.in_bytes, b.in_bytes) FROM second a JOIN second b USING (second_utc)"
                " WHERE a.switch = 'Leaf-6' AND a.port = ? AND b.switch = 'Leaf-7' AND b.port = ?",
                [port, sibling["port"]],
            ).fetchall()[0][0]
            for port in (other["port"] for other in decoys.values())
        }
        assert max(correlations, key=lambda port: float(correlations[port])) == trap["port"]


def test_counters_behave_like_the_real_ones(series: Series, truth: dict[str, Any]) -> None:
    assert len(_traps(truth, "counter_wrap")) == 1
    [(key, row)] = [(key, row) for key, rows in series.items() for row in rows if int(row[7]) < 0]
    assert key[0] == "Leaf-5"
    assert 0 < int(row[7]) + 2**32 < 10**6
    assert float(row[9]) < 0
    assert sum(row["missing_polls"] for row in truth["ports"]) > 100
    assert all(row["port"].startswith("Two") for row in truth["ports"] if row["missing_polls"])
    counts = [(int(row[4]), int(row[5])) for rows in series.values() for row in rows]
    assert any(packets and not moved for packets, moved in counts)
    assert any(moved and not packets for packets, moved in counts)
    for trap in _traps(truth, "opening_gap"):
        assert 1 <= trap["polls_before"] <= 3
        assert trap["begin_ms"] < 1600
        assert 248_592 <= trap["end_ms"] <= 254_378
    job = [row for rows in series.values() for row in rows if row[3] == "FourHundredGigE1/0/40"]
    assert 0.3 < sum(row[5] == row[7] == "0" for row in job) / len(job) < 0.55


def test_idle_and_unconnected_ports(truth: dict[str, Any]) -> None:
    unconnected = {(trap["switch"], port) for trap in _traps(truth, "never_connected") for port in trap["ports"]}
    zero = {(row["switch"], row["port"]) for row in truth["ports"] if row["rows"] == row["zero_rows"]}
    idle = {server for trap in _traps(truth, "idle_servers") for server in trap["servers"]}

    assert zero == unconnected
    assert {"FourHundredGigE1/0/31", "FourHundredGigE1/0/64"} <= {port for _, port in unconnected}
    visited = {(row["switch"], row["port"]) for row in truth["suspects"] if row["server"] in idle}
    for row in truth["ports"]:
        if (row["switch"], row["port"]) in visited:
            assert 9_000 < row["in_bytes"] < 16_000
            assert 30_000 < row["out_bytes"] < 42_000


def test_names_differ_by_case_only_and_stray_files_exist(sample: Path, cluster: Path, truth: dict[str, Any]) -> None:
    hour = cluster / "trafficinfo" / "2024052400"
    for folder, start in (("NM224-J05-ROCE-ST-leaf-1", "leaf-1"), ("NM129-B03-ROCE-Leaf-1", "Leaf-1")):
        found = {path.name.partition("_")[0] for path in (hour / f"NH-DC-{folder}_GPU_S9825").iterdir()}
        assert found == {start}
    strays = {trap["path"] for trap in _traps(truth, "stray_file")}
    assert "cluster_sample/taskinfo/.DS_Store" in strays
    assert all((sample / "zhejiang" / path).is_file() for path in {*strays, "README.md"})


def test_the_second_hour_differs(truth: dict[str, Any]) -> None:
    hours = [hour["hour_utc"] for hour in truth["hours"]]
    assert {tuple(job["hours"]) for job in truth["jobs"]} == {tuple(hours), (hours[0],), (hours[1],)}
    hot = _traps(truth, "uplink_hot_out")[0]
    sent = {
        (row["port"], row["hour_utc"]): row["out_bytes"] for row in truth["ports"] if row["switch"] == hot["switch"]
    }
    bundle = [hot["port"], *hot["neighbours"]]
    shares = [sent[hot["port"], hour] / sum(sent[port, hour] for port in bundle) for hour in hours]
    assert 0.31 < shares[0] < 0.36
    assert 0.47 < shares[1] < 0.53


def test_hour_tables_have_the_published_form(cluster: Path, truth: dict[str, Any]) -> None:
    def rows(name: str) -> list[list[str]]:
        path = cluster / "trafficinfo" / "2024052400" / f"2024052400_{name}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    def short(device: str) -> str:
        return device.partition(".")[0].rpartition("ROCE-")[2]

    for row in rows("nic")[1:]:
        assert (row[4][-4:], row[6][-2:]) == ("e+16", ".0")
    header, *link = rows("link")
    assert header[-1] == header[19] == "OutBrdcastPkts"
    assert any(row[3] == "" for row in link)
    ends = {(short(row[0]), row[1].replace("400GE", "FourHundredGigE")): (short(row[2]), row[3]) for row in link}
    for uplink in truth["uplinks"]:
        leaf, spine = (uplink["leaf"], uplink["leaf_port"]), (uplink["spine"], uplink["spine_port"])
        assert (ends[leaf], ends[spine]) == (spine, leaf)
    others = [one for one in truth["uplinks"] if one["spine_port_by_formula"] not in (None, one["spine_port"])]
    assert [(row["leaf"], row["leaf_port"]) for row in others] == [("Leaf-3", "FourHundredGigE1/0/36")]


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
