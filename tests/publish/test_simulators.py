"""Exports for simulators, read back by parsers that know only the documents of the targets.

Topology: https://github.com/aliyun/SimAI, the examples in `astra-sim-alibabacloud/inputs/topo/`.
Flows: https://github.com/alibaba-edu/High-Precision-Congestion-Control, the end of `simulation/mix/flow.txt`.
Connections: https://github.com/Broadcom/csg-htsim, `sim/datacenter/connection_matrices/bidir.cm`.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import warehouse
from tests.conftest import Command

MILLISECONDS = 3_600_000


class Topology(NamedTuple):
    nodes: int
    switches: set[int]
    links: list[tuple[int, int, int]]
    """Both ends, and the rate in Gbit/s."""


def read_topology(path: Path) -> Topology:
    first, second, *rest = path.read_text(encoding="ascii").splitlines()
    nodes, gpus_a_server, nvswitches, switches, links, gpu = first.split()
    assert (int(gpus_a_server), int(nvswitches)) == (1, 0)
    assert gpu in {"A100", "A800", "H100", "H800", "NONE"}
    found = {int(one) for one in second.split()}
    assert (len(found), len(rest)) == (int(switches), int(links))
    read = []
    for line in rest:
        a, b, rate, delay, loss = line.split()
        assert re.fullmatch(r"[0-9.]+(ms|us|ns)", delay)
        assert float(loss) == 0
        read.append((int(a), int(b), int(rate.removesuffix("Gbps"))))
    assert {end for a, b, _ in read for end in (a, b)} == set(range(int(nodes)))
    return Topology(int(nodes), found, read)


def read_flows(path: Path) -> list[tuple[int, int, int]]:
    first, *rest = path.read_text(encoding="ascii").splitlines()
    rows = [[int(cell) for cell in line.split()] for line in rest]
    assert int(first) == len(rows)
    assert all(group == 3 and start == 0 for _, _, group, _, _, start in rows)
    return [(src, dst, size) for src, dst, _, _, size, _ in rows]


def read_connections(path: Path) -> tuple[int, list[tuple[int, int, int]]]:
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    assert [lines[0][0], lines[1][0]] == ["Nodes", "Connections"]
    rows = []
    for ends, start, at, size, value in lines[2:]:
        assert (start, at, size) == ("start", "0", "size")
        src, dst = ends.split("->")
        rows.append((int(src), int(dst), int(value)))
    assert len(rows) == int(lines[1][1])
    return int(lines[0][1]), rows


def expected(target: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str, int]], Counter[tuple[str, int]]]:
    """Return bytes of a millisecond by pair of leaves, uplinks by leaf, spine and rate, and hosts by leaf and rate."""
    with warehouse.open(target) as connection:
        last = "hour_utc = (SELECT max(hour_utc) FROM metrics.leaf_hour)"
        rows = connection.execute(f"SELECT src, dst, bytes_estimate FROM metrics.leaf_matrix WHERE {last}").fetchall()
        pairs = Counter({(src, dst): value // MILLISECONDS for src, dst, value in rows if "outside" not in (src, dst)})
        uplinks = connection.execute(
            "SELECT leaf, spine, line_rate_bps // 1000000000 FROM topology.uplinks AS u"
            " JOIN topology.ports AS p ON p.switch = u.leaf AND p.port = u.leaf_port"
        ).fetchall()
        hosts = connection.execute(
            "SELECT switch, line_rate_bps // 1000000000 FROM topology.ports"
            " WHERE port_class IN ('access', 'storage_access') AND switch IN (SELECT switch FROM metrics.leaf_hour)"
            " AND (server IS NOT NULL OR (switch, port) IN"
            f" (SELECT (switch, port) FROM metrics.port_hour WHERE {last} AND in_bytes + out_bytes > 0))"
        ).fetchall()
    return pairs, Counter(uplinks), Counter(hosts)


def carried(flows: list[tuple[int, int, int]], leaf_of: Callable[[int], str]) -> Counter[tuple[str, str]]:
    """Return the bytes of each pair of leaves."""
    found: Counter[tuple[str, str]] = Counter()
    for src, dst, size in flows:
        assert src != dst
        found[leaf_of(src), leaf_of(dst)] += size
    return found


def test_simai_has_switches_links_and_rates_of_the_topology(command: Command, built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert "3 files of data to out" in command("export", "out", "--for", "simai", "-t", built).out
    [place] = folder.glob("*.topology.txt")
    topology = read_topology(place)
    [flows] = map(read_flows, folder.glob("*.flow.txt"))
    [names] = folder.glob("*.nodes.csv")
    nodes = {int(row["node"]): row for row in csv.DictReader(names.read_text(encoding="utf-8").splitlines())}
    pairs, uplinks, hosts = expected(built)
    assert {node for node, row in nodes.items() if row["kind"] == "switch"} == topology.switches
    named = [(nodes[a], nodes[b]["switch"], rate) for a, b, rate in topology.links]
    assert Counter((a["switch"], b, rate) for a, b, rate in named if a["kind"] == "switch") == uplinks
    assert Counter((b, rate) for a, b, rate in named if a["kind"] == "nic" and a["switch"] == b) == hosts
    assert carried(flows, lambda node: nodes[node]["switch"]) == +pairs
    for also in (("-s", "metrics.leaf_hour"), ("--format", "csv"), ("--all",)):
        done = command("export", "more", "--for", "simai", *also, "-t", built)
        assert (done.status, "--for writes the leaf matrix alone" in done.err) == (2, True)
    compared = command("diff", "out", "out", "-t", built)
    assert (compared.status, "the export out holds no Parquet" in compared.err) == (2, True)


def test_htsim_has_the_bytes_of_each_pair_of_leaves(command: Command, built: Path, tmp_path: Path) -> None:
    command("export", "out", "--for", "htsim", "-t", built)
    [place] = (tmp_path / "out").glob("*.cm")
    nodes, flows = read_connections(place)
    width, leaves = re.findall(r"^# (\d+) hosts a leaf: (.*)$", place.read_text(encoding="ascii"), re.MULTILINE)[0]
    names = leaves.split()
    assert nodes == int(width) * len(names)
    assert all(0 < size < 2**31 for _, _, size in flows)
    assert carried(flows, lambda node: names[node // int(width)]) == +expected(built)[0]


def test_arrays_and_csv_hold_the_table(command: Command, built: Path, tmp_path: Path) -> None:
    command("export", "out", "--for", "matrix", "-t", built)
    [arrays] = (tmp_path / "out").glob("*.npz")
    with np.load(arrays) as opened:
        found: dict[str, Any] = dict(opened)
    columns = ("bytes_low", "bytes_estimate", "bytes_high")
    with warehouse.open(built) as connection:
        rows = connection.execute(
            f"SELECT src, dst, {', '.join(columns)} FROM metrics.leaf_matrix"
            " WHERE hour_utc = (SELECT max(hour_utc) FROM metrics.leaf_matrix)"
        ).fetchall()
    nodes = [str(name) for name in found["nodes"]]
    assert str(found["unit"]) == "B"
    assert nodes == [*(f"Leaf-{n}" for n in range(1, 9)), "ST-leaf-1", "outside"]
    for src, dst, *values in rows:
        at = nodes.index(src), nodes.index(dst)
        assert [int(found[name][at]) for name in columns] == values
    [table] = (tmp_path / "out").glob("*.csv")
    listed = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    told = {(one["src"], one["dst"], *(int(one[name]) for name in columns)) for one in listed}
    assert told == set(rows)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert {file["path"] for file in manifest["files"]} == {arrays.name, table.name}
