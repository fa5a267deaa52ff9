"""The published task against computations that share no code with parser or models: plain Python over its lines."""

from __future__ import annotations

import csv
import itertools
import re
import statistics
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

pytestmark = pytest.mark.real

Connection = duckdb.DuckDBPyConnection
TASK = "20240429-0613-4"
STAMP = "%Y-%m-%d %H:%M:%S,%f"


@pytest.fixture(scope="module")
def logs(real: Path) -> dict[str, list[str]]:
    """Segments of each pod's log."""
    folder = next((real / "zhejiang").glob(f"*/taskinfo/{TASK}"), None)
    if folder is None:
        pytest.skip("no published task at hand: set WAREHOUSE_REAL, or lay the real files out in data/real")
    return {
        path.name.removesuffix(".log").rpartition("2b1ef-")[2]: re.split(r"[\r\n]", path.read_bytes().decode())
        for path in sorted(folder.glob("llama*.log"))
    }


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def _stamp(line: str) -> datetime:
    found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", line)
    assert found
    return datetime.strptime(found[0], STAMP).replace(tzinfo=UTC)


def _iterations(lines: list[str]) -> dict[int, datetime]:
    """Number and time of each line of the callback that has a loss."""
    found: dict[int, datetime] = {}
    for line in lines:
        if ":on_log] loss: " in line:
            step = int(line.partition("iter: ")[2].partition("/")[0])
            assert step not in found
            found[step] = _stamp(line)
    return found


def _seconds(lines: list[str]) -> list[float]:
    times = _iterations(lines)
    begin = next(_stamp(line) for line in lines if "***** Running training *****" in line)
    ordered = [begin, *(times[step] for step in range(1, len(times) + 1))]
    return [(after - before).total_seconds() for before, after in itertools.pairwise(ordered)]


def test_every_segment_has_its_number(logs: dict[str, list[str]], real_built: Connection) -> None:
    assert sum(len(lines) - 1 for lines in logs.values()) == 32757
    texts = _rows(real_built, "SELECT pod, segment, text FROM staging.log_events")
    for pod, segment, text in texts:
        assert logs[pod.rpartition("2b1ef-")[2]][segment - 1][:4000] == text


def test_iterations_once_each_with_their_times_and_the_spread_of_pods(
    logs: dict[str, list[str]], real_built: Connection
) -> None:
    expected, by_pod = _seconds(logs["master"]), [_iterations(lines) for lines in logs.values()]
    skews = [
        (max(times[step] for times in by_pod) - min(times[step] for times in by_pod)).total_seconds()
        for step in range(1, 2437)
    ]
    found = _rows(
        real_built, "SELECT iteration, pods, seconds, pod_skew_seconds FROM metrics.task_iterations ORDER BY iteration"
    )
    assert [row[:2] for row in found] == [(step, 4) for step in range(1, 2437)]
    assert [row[2] for row in found] == pytest.approx(expected, abs=1e-9)
    assert [row[3] for row in found] == pytest.approx(skews, abs=1e-9)
    (summary,) = _rows(real_built, "SELECT iterations, iteration_p50_seconds FROM metrics.task_summary")
    assert summary == (2436, 45.786)
    assert statistics.median(expected) == pytest.approx(45.786, abs=1e-9)


def test_every_nic_leads_to_the_port_of_the_workbook(real: Path, real_built: Connection) -> None:
    """From address and sheet order, by openpyxl."""
    path = next((real / "zhejiang").glob("*/*.xlsx"))
    book = openpyxl.load_workbook(path, read_only=True)
    nics = list(book["GPU NIC info"].iter_rows(values_only=True)) if "GPU NIC info" in book.sheetnames else []
    nics = nics or list(book["server NIC info"].iter_rows(values_only=True))
    rows = list(book["cluster topology"].iter_rows(values_only=True))
    head = [str(name) for name in rows[0]]
    ports = {
        (str(row[head.index("sysname")]).rpartition("GPU-")[2], row[head.index("nicname")]): (
            re.findall(r"Leaf-\d+", str(row[head.index("switchname")]))[0],
            row[head.index("accessport")],
        )
        for row in rows[1:]
    }
    expected = []
    for pod, number in (("master", 31), ("worker-1", 68), ("worker-2", 149), ("worker-3", 70)):
        mine = [row for row in nics[1:] if row[0] == f"10.107.254.{number}"]
        expected += [(pod, index, row[1], *ports[str(number), row[2]]) for index, row in enumerate(mine)]
    found = _rows(
        real_built,
        "SELECT pod, hca_index, hca, switch, port FROM topology.task_ports "
        "WHERE evidence <> 'inferred:traffic' ORDER BY pod, hca_index",
    )
    assert len(expected) == 16
    assert expected == [(pod.rpartition("2b1ef-")[2], *row) for pod, *row in found]
    evidence = "SELECT evidence, count(*) FROM topology.task_ports WHERE evidence <> 'inferred:traffic' GROUP BY 1"
    assert sorted(_rows(real_built, evidence)) == [("inferred:nic_sheet_order", 12), ("log", 4)]


def _rings(lines: list[str]) -> dict[int, list[int]]:
    """The rings of the first communicator, completed by a search: the only way on that repeats what was seen."""
    found = {}
    for line in lines[:110]:
        if match := re.search(r"Channel (\d\d)/08 :((?: +\d+)+)$", line):
            ring = [int(rank) for rank in match[2].split()]
            seen = {a % 8: (b % 8, (b // 8 - a // 8) % 4) for a, b in itertools.pairwise(ring)}
            while len(ring) < 32:
                to, step = seen[ring[-1] % 8]
                ring.append((ring[-1] // 8 + step) % 4 * 8 + to)
            assert sorted(ring) == list(range(32))
            found[int(match[1])] = ring
    return found


def test_thirty_two_ring_edges_across_servers(logs: dict[str, list[str]], real_built: Connection) -> None:
    expected = sorted(
        (channel, a, b)
        for channel, ring in _rings(logs["master"]).items()
        for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)
        if a // 8 != b // 8
    )
    assert len(expected) == 32
    for communicator in ("world-1", "world-2", "world-3"):
        found = _rows(
            real_built,
            "SELECT channel, src_rank, dst_rank FROM topology.rank_paths "
            f"WHERE kind = 'ring' AND communicator = '{communicator}' ORDER BY ALL",
        )
        assert found == expected
    rings = "FROM topology.rank_paths WHERE kind = 'ring' AND communicator = 'world-1'"
    counts = sorted(_rows(real_built, f"SELECT evidence, count(*) {rings} GROUP BY 1"))
    assert counts == [("inferred:ring_pattern", 12), ("listed", 18), ("log", 2)]
    assert _rows(real_built, "FROM topology.rank_paths WHERE src_port IS NULL OR dst_port IS NULL") == []


def test_no_overlap_and_how_far(real: Path, logs: dict[str, list[str]], real_built: Connection) -> None:
    last = max(_stamp(line) for lines in logs.values() for line in lines if re.match(r"\[(?:INFO\|.*\] )?\d{4}-", line))
    first = None
    for path in (real / "zhejiang").glob("*/trafficinfo/*/*/*.csv"):
        with path.open(encoding="utf-8") as stream:
            time = int(next(csv.DictReader(stream))["SaveTimeUTC"])
        first = min(first or time, time)
    assert first is not None
    gap = first / 1000 - last.timestamp()
    assert int(gap) == 1996824
    found = _rows(
        real_built,
        "SELECT DISTINCT status, gap_seconds, rx_bytes, tx_bytes FROM metrics.task_traffic WHERE source = 'log'",
    )
    assert found == [("no_overlap", pytest.approx(gap, abs=1e-3), None, None)]
    statuses = _rows(
        real_built, "SELECT status, count(*), count(rx_bytes) FROM metrics.task_iteration_traffic GROUP BY 1"
    )
    assert statuses == [("no_overlap", 2436 * 16, 0)]
