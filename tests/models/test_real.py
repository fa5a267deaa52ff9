"""The real files against computations that share no code with the models: plain Python and polars."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from warehouse.project.project import Project

pytestmark = pytest.mark.real

Connection = duckdb.DuckDBPyConnection
WRAP = 2**32


def _port_files(real: Path) -> list[Path]:
    return sorted((real / "zhejiang").rglob("trafficinfo/*/*/*.csv"))


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def test_topology_counts(real: Path, real_built: Connection) -> None:
    """Facts of the published workbook, with the switches that are at hand."""
    assert _rows(real_built, "SELECT status, count(*) FROM topology.nic_ports GROUP BY 1 ORDER BY 1") == [
        ("inferred", 2),
        ("resolved", 994),
        ("unresolved", 44),
    ]
    assert _rows(
        real_built,
        "SELECT count(*) FILTER (WHERE in_topology_sheet AND in_nic_sheet), "
        "count(*) FILTER (WHERE NOT in_nic_sheet), count(*) FILTER (WHERE NOT in_topology_sheet) "
        "FROM topology.servers WHERE evidence = 'workbook'",
    ) == [(249, 4, 11)]
    assert _rows(
        real_built,
        "SELECT role, count(*) FROM topology.switches WHERE role <> 'storage_leaf' GROUP BY 1 ORDER BY 1",
    ) == [("leaf", 20), ("spine", 10)]
    loaded = {path.parent.name for path in _port_files(real)}
    assert [(len(loaded),)] == _rows(real_built, "SELECT count(*) FROM topology.switches WHERE has_counters")


def test_every_view_can_be_read_to_its_end(real_built: Connection) -> None:
    """A view runs only when it is read: a cast that overflows late in the hour would show here."""
    for name in sorted(name for name, model in Project.open().models.items() if model.is_view):
        columns = _rows(real_built, f"SELECT column_name FROM meta.columns WHERE model = '{name}'")
        read = ", ".join(f'max("{column}")' for (column,) in columns)
        assert len(_rows(real_built, f"SELECT {read} FROM {name}")) == 1, name


def test_every_port_has_the_bytes_and_rows_of_its_csv(real: Path, real_built: Connection) -> None:
    """By polars, over the CSV text; 2^32 is added to each negative delta of a management port."""
    files = _port_files(real)
    rows = polars.concat(
        [
            polars.scan_csv(path, schema_overrides={"InRatio": polars.Float64, "OutRatio": polars.Float64})
            for path in files
        ]
    )

    def corrected(name: str) -> polars.Expr:
        wrap = polars.col("PortName").str.starts_with("M-GigabitEthernet") & (polars.col(name) < 0)
        return polars.when(wrap).then(polars.col(name) + WRAP).otherwise(polars.col(name)).sum().alias(name)

    sums = (
        rows.group_by("DeviceName", "PortName")
        .agg(
            polars.len().alias("polls"),
            corrected("InOctets"),
            corrected("OutOctets"),
            polars.col("InPkts", "OutPkts").sum(),
        )
        .collect()
    )
    expected = sorted(sums.iter_rows())
    found = _rows(
        real_built,
        "SELECT s.device_name, h.port, polls, in_bytes, out_bytes, in_packets, out_packets "
        "FROM metrics.port_hour AS h JOIN topology.switches AS s USING (cluster, switch) ORDER BY ALL",
    )
    assert len(files) == len(found)
    assert expected == found


def test_seconds_sum_to_minutes_sum_to_hours_port_by_port(real_built: Connection) -> None:
    for table in ("port_second", "port_minute"):
        assert _rows(
            real_built,
            f"""SELECT count(*) FROM metrics.port_hour AS h LEFT JOIN (
                    SELECT cluster, switch, port, sum(in_bytes) AS i, sum(out_bytes) AS o
                    FROM metrics.{table} GROUP BY ALL) AS s USING (cluster, switch, port)
                WHERE h.in_bytes <> coalesce(i, 0) OR h.out_bytes <> coalesce(o, 0)""",
        ) == [(0,)]


def _plain_seconds(path: Path) -> dict[int, int]:
    """The rule for rates in plain Python, written from its description: bytes in per second of one port."""
    with path.open(encoding="utf-8") as stream:
        rows = [(int(r["SaveTimeUTC"]), int(r["InOctets"]), int(r["OutOctets"])) for r in csv.DictReader(stream)]
    is_management = "_0." in path.name
    found: dict[int, int] = defaultdict(int)
    first_time = previous_time = previous_refresh = None
    for time, in_bytes, out_bytes in rows:
        if is_management:
            in_bytes, out_bytes = (value + WRAP if value < 0 else value for value in (in_bytes, out_bytes))
        if in_bytes or out_bytes:
            if previous_time is None:
                start = time // 3_600_000 * 3_600_000
            elif previous_refresh is None:
                assert first_time is not None
                start = max(first_time, previous_time - 1000)
            else:
                start = max(previous_refresh, previous_time - 1000)
            length = time - start
            for second in range(start // 1000, (time - 1) // 1000 + 1):
                a, b = max(second * 1000, start) - start, min(second * 1000 + 1000, time) - start
                found[second] += in_bytes * b // length - in_bytes * a // length
            previous_refresh = time
        first_time = first_time if first_time is not None else time
        previous_time = time
    return dict(found)


def test_hour_percentiles_take_all_3600_seconds(real: Path, real_built: Connection) -> None:
    busiest = _rows(
        real_built,
        "SELECT s.device_name, h.port, in_p50_bps, in_p99_bps, in_max_bps, busy_seconds FROM metrics.port_hour AS h "
        "JOIN topology.switches AS s USING (cluster, switch) ORDER BY h.in_bytes DESC LIMIT 3",
    )
    by_port = {}
    for path in _port_files(real):
        with path.open(encoding="utf-8") as stream:
            _ = stream.readline()
            by_port[tuple(stream.readline().split(",")[2:4])] = path
    for device, port, p50, p99, largest, busy in busiest:
        seconds = _plain_seconds(by_port[device, port])
        values = sorted([*seconds.values(), *[0] * (3600 - len(seconds))])

        def quantile(q: float, values: list[int] = values) -> float:
            at = q * (len(values) - 1)
            low = math.floor(at)
            return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)

        assert math.isclose(p50, quantile(0.5) * 8, rel_tol=1e-12)
        assert math.isclose(p99, quantile(0.99) * 8, rel_tol=1e-12)
        assert largest == max(values) * 8
        assert busy >= sum(value > 0 for value in values)


def test_missing_polls_are_poll_times_without_a_row(real: Path, real_built: Connection) -> None:
    by_switch: dict[str, set[str]] = defaultdict(set)
    times: dict[tuple[str, str], list[str]] = {}
    for path in _port_files(real):
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
        fields = lines[0].split(",")
        own = [line.split(",", 2)[1] for line in lines]
        times[fields[2], fields[3]] = own
        by_switch[fields[2]].update(own)
    expected = sorted((device, port, len(by_switch[device]) - len(own)) for (device, port), own in times.items())
    found = _rows(
        real_built,
        "SELECT s.device_name, h.port, h.missing_polls FROM metrics.port_hour AS h "
        "JOIN topology.switches AS s USING (cluster, switch) ORDER BY ALL",
    )
    assert expected == found


def test_balance_against_plain_python(real: Path, real_built: Connection) -> None:
    per_switch = defaultdict(list)
    for switch, direction, bytes_ in _rows(
        real_built,
        """SELECT h.switch, unnest(['in', 'out']), unnest([h.in_bytes, h.out_bytes]) FROM metrics.port_hour AS h
           WHERE h.port_class IN ('uplink', 'storage_uplink')""",
    ):
        per_switch[switch, direction].append(bytes_)
    found = _rows(real_built, "SELECT switch, direction, cov, max_over_mean, jain_index FROM metrics.uplink_balance")
    assert len(per_switch) == len(found)
    for switch, direction, cov, over, jain in found:
        values = per_switch[switch, direction]
        mean = sum(values) / len(values)
        std = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        assert math.isclose(cov, std / mean, rel_tol=1e-9)
        assert math.isclose(over, max(values) / mean, rel_tol=1e-9)
        assert math.isclose(jain, sum(values) ** 2 / len(values) / sum(v * v for v in values), rel_tol=1e-9)
