"""The real files: what bench.acceptance leaves out: percentiles and missing polls."""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.acceptance_files import seconds as by_rule
from warehouse.project.project import Project

pytestmark = pytest.mark.real

Connection = duckdb.DuckDBPyConnection
HOUR_MS = 3_600_000


@cache
def _port_files(real: Path) -> dict[tuple[str, str], Path]:
    """Return the file of each device and port."""
    found = {}
    for path in sorted((real / "zhejiang").rglob("trafficinfo/*/*/*.csv")):
        with path.open(encoding="utf-8") as stream:
            _ = stream.readline()
            device, port = stream.readline().split(",")[2:4]
        found[device, port] = path
    return found


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def test_hour_percentiles_take_all_3600_seconds(real: Path, real_built: Connection) -> None:
    busiest = _rows(
        real_built,
        "SELECT s.device_name, h.port, in_p50_bps, in_p99_bps, in_max_bps FROM metrics.port_hour AS h "
        "JOIN topology.switches AS s USING (cluster, switch) ORDER BY h.in_bytes DESC LIMIT 3",
    )
    for device, port, p50, p99, largest in busiest:
        with _port_files(real)[device, port].open(encoding="utf-8") as stream:
            polls = [
                (int(row["SaveTimeUTC"]) % HOUR_MS, int(row["InOctets"]), int(row["OutOctets"]))
                for row in csv.DictReader(stream)
            ]
        moved = [int(str(cells[0])) for cells in by_rule(polls).values()]
        every = [*moved, *[0] * (3600 - len(moved))]
        percentiles = statistics.quantiles(every, n=100, method="inclusive")
        assert math.isclose(p50, percentiles[49] * 8, rel_tol=1e-12)
        assert math.isclose(p99, percentiles[98] * 8, rel_tol=1e-12)
        assert largest == max(moved) * 8


def test_missing_polls_are_poll_times_without_a_row(real: Path, real_built: Connection) -> None:
    by_switch: dict[str, set[str]] = defaultdict(set)
    polls: dict[tuple[str, str], int] = {}
    for (device, port), path in _port_files(real).items():
        times = [line.split(",", 2)[1] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        polls[device, port] = len(times)
        by_switch[device].update(times)
    expected = sorted((device, port, len(by_switch[device]) - count) for (device, port), count in polls.items())
    found = _rows(
        real_built,
        "SELECT s.device_name, h.port, h.missing_polls FROM metrics.port_hour AS h "
        "JOIN topology.switches AS s USING (cluster, switch) ORDER BY ALL",
    )
    assert expected == found


def test_every_view_can_be_read_to_its_end(real_built: Connection) -> None:
    """A view runs only when it is read: a cast that overflows late in the hour would show here."""
    for name in sorted(name for name, model in Project.open().models.items() if model.is_view):
        columns = _rows(real_built, f"SELECT column_name FROM meta.columns WHERE model = '{name}'")
        read = ", ".join(f'max("{column}")' for (column,) in columns)
        assert len(_rows(real_built, f"SELECT {read} FROM {name}")) == 1, name
