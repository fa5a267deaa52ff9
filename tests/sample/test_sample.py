"""The sample: in the published form, reproducible, and consistent with its own truth."""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import openpyxl

from tests.sample.conftest import OPTIONS, START, Key
from warehouse.sample import SampleOptions, write_sample


def _digests(directory: Path) -> dict[str, str]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _traps(truth: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [trap for trap in truth["traps"] if trap["kind"] == kind]


def _bytes(series: dict[Key, list[list[str]]], switch: str, port: str, hour: str) -> tuple[int, int]:
    rows = series[switch, port, hour]
    return sum(int(row[5]) for row in rows), sum(int(row[7]) for row in rows)


def test_two_runs_are_byte_identical(sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path / "again", OPTIONS)

    assert _digests(sample) == _digests(tmp_path / "again")


def test_another_seed_changes_the_traffic(tmp_path: Path) -> None:
    small = SampleOptions(seconds=60, hours=1, spines=1)
    write_sample(tmp_path / "a", small)
    write_sample(tmp_path / "b", replace(small, seed=8))

    a, b = _digests(tmp_path / "a"), _digests(tmp_path / "b")

    assert a.keys() - b.keys() <= {name for name in a if "Leaf" in name or "taskinfo" in name}
    assert a["truth/second.parquet"] != b["truth/second.parquet"]


def test_port_files_have_the_published_form(
    cluster: Path, series: dict[Key, list[list[str]]], truth: dict[str, Any]
) -> None:
    for path in list(cluster.glob("trafficinfo/*/*/*.csv"))[::17]:
        content = path.read_bytes()
        assert not content.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in content
        assert b'"' not in content
        assert content.endswith(b"\n")
    assert len(series) == truth["files"]["count"]
    weekdays = {"2024/05/24 星期五"}
    for rows in series.values():
        times = [int(row[1]) for row in rows]
        assert all(a < b for a, b in itertools.pairwise(times))
        assert {row[0].rpartition(" ")[0] for row in rows} == weekdays
        for row, time in zip(rows[::50], times[::50], strict=True):
            hour, minute, second = row[0].rpartition(" ")[2].split(":")
            local = (int(hour) * 60 + int(minute)) * 60_000 + round(float(second) * 1000)
            assert time == START + local
        assert all(len(text.partition(".")[2]) <= 2 for row in rows for text in row[8:])


def test_totals_equal_the_sums_of_the_files(series: dict[Key, list[list[str]]], truth: dict[str, Any]) -> None:
    polls: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (switch, _, hour), rows in series.items():
        polls[switch, hour] |= {row[1] for row in rows}

    assert sum(map(len, series.values())) == truth["files"]["rows"]
    assert len(truth["ports"]) == len(series)
    for port in truth["ports"]:
        key = (port["switch"], port["port"], port["hour_utc"])
        rows = series[key]
        raw = _bytes(series, *key)
        wraps = sum(int(row[7]) < 0 for row in rows)
        assert (port["rows"], port["wraps"]) == (len(rows), wraps)
        assert (port["in_bytes_raw"], port["out_bytes_raw"]) == raw
        assert (port["in_bytes"], port["out_bytes"]) == (raw[0], raw[1] + wraps * 2**32)
        assert port["in_packets"] == sum(int(row[4]) for row in rows)
        assert port["out_packets"] == sum(int(row[6]) for row in rows)
        assert port["polls"] == len(polls[key[0], key[2]])
        assert port["missing_polls"] == port["polls"] - len(rows)


def test_ratios_follow_the_published_formula(series: dict[Key, list[list[str]]]) -> None:
    checked = 0
    last: dict[tuple[str, str], int] = {}
    for switch, port, hour in sorted(series):
        rate = 200e9 if port.startswith("TwoHundredGigE") else 640e9
        before = last.get((switch, port), START)
        for row in series[switch, port, hour]:
            seconds = (int(row[1]) - before) / 1000
            before = int(row[1])
            for delta, text in ((int(row[5]), row[8]), (int(row[7]), row[9])):
                units = int(abs(delta) // 10**7) * (1 if delta >= 0 else -1)
                expected = 100 * min(1, units * 10**7 * 8 / seconds / rate)
                assert abs(float(text) - expected) <= 0.00501
                checked += units != 0
        last[switch, port] = before
    assert checked > 10_000


def test_no_stored_row_of_a_200g_port_passes_line_rate(series: dict[Key, list[list[str]]]) -> None:
    for (_, port, _), rows in series.items():
        if port.startswith("TwoHundredGigE"):
            for row, before in zip(rows[1:], rows, strict=False):
                allowed = 25_000_000 * (int(row[1]) - int(before[1])) + 10**7
                assert max(int(row[5]), int(row[7])) <= allowed


def test_physical_bytes_in_equal_bytes_out_of_every_switch_and_spine(
    seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]
) -> None:
    count = seconds.execute("SELECT count(*) FROM second").fetchone()
    unbalanced = seconds.execute(
        "SELECT switch, second_utc FROM second GROUP BY ALL HAVING sum(in_bytes) <> sum(out_bytes)"
    ).fetchall()
    over = seconds.execute(
        "SELECT * FROM second WHERE greatest(in_bytes, out_bytes) > CASE WHEN port LIKE 'Two%' THEN 25e9 ELSE 50e9 END"
    ).fetchall()

    assert count == (truth["second_rows"],)
    assert unbalanced == []
    assert over == []
    spine_of = {(row["leaf"], row["leaf_port"]): row["spine"] for row in truth["uplinks"]}
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for switch, port, into, out in seconds.execute(
        "SELECT switch, port, sum(in_bytes)::BIGINT, sum(out_bytes)::BIGINT FROM second GROUP BY ALL"
    ).fetchall():
        if (switch, port) in spine_of:
            sums[spine_of[switch, port]][0] += into
            sums[spine_of[switch, port]][1] += out
    assert len(sums) == OPTIONS.spines
    assert all(abs(into / out - 1) < 1e-6 for into, out in sums.values())


def test_stored_bytes_are_the_planted_ones_except_for_the_last_second(
    seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]
) -> None:
    planted = {
        (switch, port): (into, out)
        for switch, port, into, out in seconds.execute(
            "SELECT switch, port, sum(in_bytes)::BIGINT, sum(out_bytes)::BIGINT FROM second GROUP BY ALL"
        ).fetchall()
    }
    stored: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for port in truth["ports"]:
        stored[port["switch"], port["port"]][0] += port["in_bytes"]
        stored[port["switch"], port["port"]][1] += port["out_bytes"]
    for key, (into, out) in stored.items():
        real_in, real_out = planted.get(key, (0, 0))
        assert 0 <= real_in - into <= 3 * 25_000_000_000
        assert 0 <= real_out - out <= 3 * 25_000_000_000


def test_workbook_has_the_published_form(cluster: Path) -> None:
    book = openpyxl.load_workbook(cluster / "cluster_sample.xlsx")

    assert book.sheetnames == ["cluster topology", "GPU NIC info"]
    topology, nics = (list(book[name].iter_rows(values_only=True)) for name in book.sheetnames)
    assert topology[0] == (
        "accessport", "serverIP", "nicname", "portname", "switchIP", "switchname", "sysname",
    )  # fmt: skip
    assert nics[0] == ("GPU IP", "NIC name1", "NIC name 2")
    assert all(isinstance(cell, str) or cell is None for row in topology for cell in row)
    assert all(isinstance(cell, str) for row in nics for cell in row)
    assert len({(row[3], row[5]) for row in topology[1:]}) == len(topology) - 1 == 4 * 12
    addresses = [tuple(map(int, str(row[0]).split("."))) for row in nics[1:]]
    assert addresses == sorted(addresses)
    assert len(addresses) == 4 * 15


def test_traps_of_the_workbook(cluster: Path, truth: dict[str, Any]) -> None:
    book = openpyxl.load_workbook(cluster / "cluster_sample.xlsx")
    rows = list(book["cluster topology"].iter_rows(values_only=True))
    pairs = {(row[0], row[1]): row[2] for row in book["GPU NIC info"].iter_rows(values_only=True)}

    empty = [row for row in rows if row[1] is None]
    assert rows[-4:] == empty
    assert {row[6] for row in empty} == {"NH-DC-NM129-A01-12U-GPU-3"}
    assert all(row[4] is None for row in empty)
    assert sum(row[2] is None for row in empty) == 2
    leaves = [int(str(row[5]).rpartition("Leaf-")[2].partition(".")[0]) for row in rows[1:]]
    stray = _traps(truth, "row_out_of_order")[0]["sheet_row"]
    assert [leaves[stray - 3], leaves[stray - 2], leaves[stray - 1]] == [1, 8, 1]
    assert pairs["10.107.254.2", "mlx5_3"] == "ens18np0"
    assert pairs["10.107.254.2", "mlx5_8"] == "ens11np0"
    assert {hca for address, hca in pairs if address == "10.107.254.7"} == {
        "mlx5_2",
        "mlx5_3",
        "mlx5_4",
        "mlx5_7",
    }
    assert ("10.107.255.1", "mlx5_2") in pairs
    assert next(row[0] for row in rows if str(row[6]).endswith("GPU-61")) == "FourHundredGigE1/0/64"
    assert not any(address == "10.107.254.64" for address, _ in pairs)


def test_nic_ports_by_status(truth: dict[str, Any]) -> None:
    by_server: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for row in truth["nic_ports"]:
        by_server[row["server"]].append((row["status"], row["reason"]))

    assert by_server["GPU-1"] == [("resolved", None)] * 4
    assert sorted(by_server["GPU-3"]) == [("inferred", None)] * 2 + [("resolved", None)] * 2
    assert by_server["GPU-5"] == by_server["GPU-6"] == [("unresolved", "ambiguous")] * 4
    assert by_server["GPU-7"] == by_server["GPU-241"] == [("unresolved", "no_topology_row")] * 4
    assert "GPU-64" not in by_server


def test_every_suspect_can_be_seen_in_the_files(series: dict[Key, list[list[str]]], truth: dict[str, Any]) -> None:
    hours = [hour["hour_utc"] for hour in truth["hours"]]
    kinds = [row["kind"] for row in truth["suspects"]]
    assert kinds.count("server_in_other_group") == 4 + 2 * 4  # one server alone, and two that are exchanged
    for kind in ("access_on_idle_400g", "uplink_silent_in", "uplink_no_data_out"):
        row = truth["suspects"][kinds.index(kind)]
        for hour in hours:
            into, out = _bytes(series, row["switch"], row["port"], hour)
            if kind == "access_on_idle_400g":
                assert (into, out) == (0, 0)
                assert min(_bytes(series, row["switch"], row["candidate_port"], hour)) > 10**9
            else:
                lost, alive = (into, out) if kind == "uplink_silent_in" else (out, into)
                assert lost == 0 if kind == "uplink_silent_in" else 0 < lost < 1e-6 * alive
                side = 0 if kind == "uplink_silent_in" else 1
                bundle = _traps(truth, kind)[0]["neighbours"]
                others = [_bytes(series, row["switch"], port, hour)[side] for port in bundle]
                weight = _traps(truth, "spine_favored")[0]["weight"]  # of the spine of these ports
                usual = [_bytes(series, row["switch"], f"FourHundredGigE1/0/{p}", hour)[side] for p in (39, 40, 41)]
                assert all(1.35 < other / (sum(usual) / 3 / weight) < 1.65 for other in others)


def test_only_the_planted_uplinks_are_one_way(truth: dict[str, Any]) -> None:
    ports = {(row["leaf"], row["leaf_port"]) for row in truth["uplinks"]}
    found = {
        (row["switch"], row["port"])
        for row in truth["ports"]
        if (row["switch"], row["port"]) in ports
        and max(row["in_bytes"], row["out_bytes"]) >= 10**9
        and min(row["in_bytes"], row["out_bytes"]) < 1e-6 * max(row["in_bytes"], row["out_bytes"])
    }

    assert found == {(row["switch"], row["port"]) for row in truth["suspects"] if row["kind"].startswith("uplink_")}


def test_unlisted_ports_are_those_without_a_row(
    series: dict[Key, list[list[str]]], truth: dict[str, Any], cluster: Path
) -> None:
    book = openpyxl.load_workbook(cluster / "cluster_sample.xlsx")
    rows = list(book["cluster topology"].iter_rows(min_row=2, values_only=True))
    listed = {(str(row[5]).partition(".")[0].rpartition("ROCE-")[2], row[3]) for row in rows}
    there = {(switch, port) for switch, port, _ in series if port.startswith("TwoHundredGigE")}

    assert there - listed == {(row["switch"], row["port"]) for row in truth["unlisted_ports"]}
    assert all(row["busy"] for row in truth["unlisted_ports"])


def test_the_decoy_is_wired_as_the_sheet_says(seconds: duckdb.DuckDBPyConnection, truth: dict[str, Any]) -> None:
    decoys = {trap["server"]: trap for trap in _traps(truth, "decoy_exchanged_slots")}
    assert set(decoys) == {"GPU-62", "GPU-63"}
    assert {trap["switch"] for trap in decoys.values()} == {"Leaf-6"}
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


def test_counters_behave_like_the_real_ones(series: dict[Key, list[list[str]]], truth: dict[str, Any]) -> None:
    wrap = _traps(truth, "counter_wrap")
    assert len(wrap) == 1
    negative = [(key, row) for key, rows in series.items() for row in rows if int(row[7]) < 0]
    assert len(negative) == 1
    assert negative[0][0][0] == "Leaf-5"
    assert 0 < int(negative[0][1][7]) + 2**32 < 10**6
    assert float(negative[0][1][9]) < 0
    assert sum(row["missing_polls"] for row in truth["ports"]) > 100
    assert all(row["port"].startswith("Two") for row in truth["ports"] if row["missing_polls"])
    assert any(int(row[5]) == 0 and int(row[4]) > 0 for rows in series.values() for row in rows)
    assert any(int(row[5]) > 0 and int(row[4]) == 0 for rows in series.values() for row in rows)
    for trap in _traps(truth, "opening_gap"):
        assert 1 <= trap["polls_before"] <= 3
        assert trap["begin_ms"] < 1600
        assert 248_592 <= trap["end_ms"] <= 254_378
    job = [row for rows in series.values() for row in rows if row[3] == "FourHundredGigE1/0/40"]
    zero = sum(row[5] == row[7] == "0" for row in job) / len(job)
    assert 0.3 < zero < 0.55


def test_idle_and_unconnected_ports(truth: dict[str, Any]) -> None:
    unconnected = {(trap["switch"], port) for trap in _traps(truth, "never_connected") for port in trap["ports"]}
    zero = {(row["switch"], row["port"]) for row in truth["ports"] if row["rows"] == row["zero_rows"]}
    idle = {server for trap in _traps(truth, "idle_servers") for server in trap["servers"]}

    assert zero == unconnected
    assert {"FourHundredGigE1/0/31", "FourHundredGigE1/0/64"} <= {port for _, port in unconnected}
    visited = [row for row in truth["suspects"] if row["server"] in idle]
    for row in truth["ports"]:
        if any((row["switch"], row["port"]) == (seen["switch"], seen["port"]) for seen in visited):
            assert 9_000 < row["in_bytes"] < 16_000
            assert 30_000 < row["out_bytes"] < 42_000


def test_names_differ_by_case_only(cluster: Path) -> None:
    hour = cluster / "trafficinfo" / "2024052400"
    storage = hour / "NH-DC-NM224-J05-ROCE-ST-leaf-1_GPU_S9825"
    leaf = hour / "NH-DC-NM129-B03-ROCE-Leaf-1_GPU_S9825"

    assert {path.name.partition("_")[0] for path in storage.iterdir()} == {"leaf-1"}
    assert {path.name.partition("_")[0] for path in leaf.iterdir()} == {"Leaf-1"}


def test_stray_files_exist(sample: Path, truth: dict[str, Any]) -> None:
    strays = {trap["path"] for trap in _traps(truth, "stray_file")}

    assert "cluster_sample/taskinfo/.DS_Store" in strays
    assert all((sample / "zhejiang" / path).is_file() for path in strays)
    assert (sample / "zhejiang" / "README.md").is_file()


def test_the_second_hour_differs(truth: dict[str, Any]) -> None:
    hours = [hour["hour_utc"] for hour in truth["hours"]]
    active = {tuple(job["hours"]) for job in truth["jobs"]}
    assert active == {tuple(hours), (hours[0],), (hours[1],)}
    hot = _traps(truth, "uplink_hot_out")[0]
    sent = {
        (row["port"], row["hour_utc"]): row["out_bytes"] for row in truth["ports"] if row["switch"] == hot["switch"]
    }
    shares = [
        sent[hot["port"], hour] / sum(sent[port, hour] for port in [hot["port"], *hot["neighbours"]]) for hour in hours
    ]
    assert 0.31 < shares[0] < 0.36
    assert 0.47 < shares[1] < 0.53
