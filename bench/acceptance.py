"""Recompute the main tables from the raw files, without the models, and compare them cell by cell.

    python -m bench.acceptance DIR                    build DIR into a temporary target, then compare
    python -m bench.acceptance DIR --target TARGET    compare a target that is built already
    python -m bench.acceptance DIR --seed 7 --ports 200

DIR is a release of any size. Port counters are read by polars, the workbook by openpyxl; rules are plain Python
(bench/acceptance_rules.py). Reviewed owners of ports come from data/port_owners.csv. Output: one line per table with
rows compared, rows that differ, and seconds. Exit status 1 if any row differs.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from bench.acceptance_files import Release, read
from bench.acceptance_findings import (
    claims,
    job_rails,
    jobs_of,
    numbers,
    owned,
    pauses,
    quantities_of,
    suspect_links,
    suspect_servers,
)
from bench.acceptance_rules import balance, kind, phase, rails_used, seconds
from bench.acceptance_uplinks import balances_by_minute, spine_hours

Cells = tuple[object, ...]
Table = Mapping[Any, Cells]
_SHOWN = 5
_HOUR = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"
_PORT = ("cluster", "switch", "port")


def port_hours(release: Release) -> Table:
    """Return polls, bytes, packets, wraps and resets of every port and hour."""
    return {(*port, hour): tuple(load) for port, found in release.hours.items() for hour, load in found.items()}


def server_hours(release: Release) -> Table:
    """Return ports, used ports and bytes of every owner of access ports, by hour."""
    return {
        key: (
            len(loads),
            rails_used([load.in_bytes + load.out_bytes for load in loads.values()]),
            sum(load.out_bytes for load in loads.values()),
            sum(load.in_bytes for load in loads.values()),
        )
        for key, loads in owned(release).items()
    }


def balances(release: Release) -> Table:
    """Return the balance of the uplinks of every leaf, hour and direction."""
    moved: dict[Cells, list[int]] = defaultdict(list)
    for port, found in release.hours.items():
        if kind(port.switch, port.port).endswith("uplink"):
            for hour, load in found.items():
                moved[port.cluster, port.switch, hour, "in"].append(load.in_bytes)
                moved[port.cluster, port.switch, hour, "out"].append(load.out_bytes)
    return {key: balance(values) for key, values in moved.items()}


def port_seconds(release: Release) -> Table:
    """Return the port seconds of the sampled ports."""
    return {
        (*port, hour, second): cells
        for (port, hour), polls in release.polls.items()
        for second, cells in seconds(polls).items()
    }


def switch_phases(release: Release) -> Table:
    """Return phase, spread and readings of each switch and hour; None where no poll shows them."""
    return {key: phase(shown) or (None, None, None) for key, shown in release.refreshed.items()}


class Comparison(NamedTuple):
    """Table to compare, how to recompute it, and how to read it from a warehouse."""

    keys: Sequence[str]
    cells: str
    recompute: Callable[[Release], Table]


TABLES = {
    "metrics.port_hour": Comparison(
        (*_PORT, _HOUR), "polls, in_bytes, out_bytes, in_packets, out_packets, wraps, resets, full_seconds", port_hours
    ),
    "metrics.server_hour": Comparison(
        ("cluster", "server", _HOUR), "nics, rails_used, rx_bytes, tx_bytes", server_hours
    ),
    "metrics.uplink_balance": Comparison(
        ("cluster", "switch", _HOUR, "direction"), "uplinks, mean_bytes, cov, max_over_mean, jain_index", balances
    ),
    "metrics.uplink_balance_minute": Comparison(
        ("cluster", "switch", _HOUR, "CAST(epoch(minute_utc - hour_utc) AS BIGINT) // 60", "direction"),
        "total_bytes, cov, max_over_mean, jain_index, hash_null_p99, flows_assumed, quality, covered_ms",
        balances_by_minute,
    ),
    "metrics.spine_hour": Comparison(
        ("cluster", "spine", _HOUR),
        "to_leaf_bytes, from_leaf_bytes, in_out_difference, over_mean, leaves_seen, uplinks_seen, checkable",
        spine_hours,
    ),
    "metrics.port_second": Comparison(
        (*_PORT, _HOUR, "CAST(epoch(second_utc - hour_utc) AS BIGINT)"),
        "in_bytes, out_bytes, covered_ms, quality",
        port_seconds,
    ),
    "metrics.suspect_links": Comparison((*_PORT, "kind"), "server, nic, candidate_port, hours", suspect_links),
    "metrics.sampling_quality": Comparison(
        ("cluster", "switch", _HOUR), "refresh_phase_ms, refresh_spread_ms, refresh_readings", switch_phases
    ),
    "metrics.suspect_servers": Comparison(  # of the published groups
        ("cluster", "server", _HOUR), "group_id, rails, differing_rails", suspect_servers
    ),
    "metrics.traffic_jobs": Comparison(  # likewise
        ("cluster", _HOUR, "group_id"), "rails, bytes", job_rails
    ),
    "metrics.job_pauses": Comparison(  # of the published groups with their periods
        ("cluster", _HOUR, "group_id", "CAST(epoch(start_utc - hour_utc) AS BIGINT)"), "seconds, bytes", pauses
    ),
    "metrics.published_claims": Comparison(("claim",), "difference, verdict", claims),  # of the published quantities
    "metrics.findings": Comparison(("kind", "cluster", "where_"), f"{_HOUR}, number", numbers),
}


def published(connection: duckdb.DuckDBPyConnection, name: str, release: Release) -> Table:
    """Return the published rows of a table; of seconds, only those of the sampled ports."""
    one = TABLES[name]
    select = f"SELECT {', '.join(one.keys)}, {one.cells} FROM {name}"
    if name == "metrics.port_second":
        names = ("cluster", "switch", "port", "drawn_hour")
        drawn = [dict(zip(names, (*port, hour), strict=True)) for port, hour in release.polls]
        select += (
            f" JOIN (SELECT unnest(?, recursive := true)) USING (cluster, switch, port) WHERE {_HOUR} = drawn_hour"
        )
        rows = connection.execute(select, [drawn]).fetchall() if drawn else []
    else:
        rows = connection.execute(select).fetchall()
    width = len(one.keys)
    return {row[:width]: row[width:] for row in rows}


def differences(ours: Table, recomputed: Table) -> list[str]:
    """Return a line for each row that differs, in order."""
    found = []
    for key in sorted({*ours, *recomputed}, key=str):
        row, other = ours.get(key), recomputed.get(key)
        if row is None or other is None or not all(_is_same(*pair) for pair in zip(row, other, strict=True)):
            place = " ".join(map(str, key))
            found.append(f"{place}: published {_shown(row)}, recomputed {_shown(other)}")
    return found


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def _shown(cells: Cells | None) -> str:
    return "no row" if cells is None else ", ".join(map(str, cells))


def compare(target: Path, release: Release, tables: Sequence[str]) -> int:
    """Print a line per table and return the number of rows that differ."""
    print(f"{'table':<30}{'rows':>9}{'differ':>9}{'seconds':>9}")
    differ = 0
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as connection:
        release.jobs, release.quantities = jobs_of(connection), quantities_of(connection)
        for name in tables:
            started = time.perf_counter()
            ours, recomputed = published(connection, name, release), TABLES[name].recompute(release)
            found = differences(ours, recomputed)
            took = time.perf_counter() - started
            print(f"{name:<30}{len({*ours, *recomputed}):>9,}{len(found):>9,}{took:>9.1f}", flush=True)
            for line in found[:_SHOWN]:
                print(f"  {line}")
            if len(found) > _SHOWN:
                print(f"  and {len(found) - _SHOWN:,} more")
            differ += len(found)
    return differ


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, recompute, compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DIR", help="a release, or any part of one")
    options.add_argument("--target", type=Path, help="a target that is built of DIR; without it one is built")
    options.add_argument("--seed", type=int, default=1, help="which ports are drawn for their seconds")
    options.add_argument("--ports", type=int, default=50, help="how many of them")
    options.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE")
    given = options.parse_args(arguments)
    if not given.data.is_dir():
        options.error(f"{given.data} is no folder")
    with tempfile.TemporaryDirectory(prefix="warehouse-acceptance-") as scratch:
        target = given.target or Path(scratch)
        if given.target is None:
            started = time.perf_counter()
            command = [sys.executable, "-m", "warehouse", "build", "-d", str(given.data), "-t", scratch, "--quiet"]
            built = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if built.returncode:
                print(f"the build ended with {built.returncode}:\n{built.stderr}", file=sys.stderr)
                return built.returncode
            print(f"built in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        release = read(given.data, given.ports, given.seed)
        hours = sum(map(len, release.hours.values()))
        print(
            f"read {hours:,} port files, {len(release.sheets)} workbooks in {time.perf_counter() - started:.1f} s;"
            f" {release.left_out:,} lines left out; seconds of {len(release.polls)} ports (seed {given.seed})\n"
        )
        return 1 if compare(target, release, given.tables) else 0


if __name__ == "__main__":
    raise SystemExit(main())
