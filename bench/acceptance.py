"""Recompute the main tables from the raw files, without the models, and compare them cell by cell.

    python -m bench.acceptance DIR                    build DIR into a temporary target, then compare
    python -m bench.acceptance DIR --target TARGET    compare a target that is built already
    python -m bench.acceptance DIR --seed 7 --ports 200

DIR is a release of any size. Port counters are read by polars, the workbook by openpyxl, their seconds are plain Python
(bench/acceptance_files.py); the other rules are SQL of their own (bench/acceptance.sql). Reviewed
tables come from data/; groups of servers and quantities of job traces are as published, since they have tests of their
own. Output: one line per table with rows compared, rows that differ, and seconds. Exit status 1 if any row differs.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import duckdb

from bench.acceptance_files import read

HERE = Path(__file__).parent
REVIEWED = {"port_owners": "reviewed", "clusters": "sizes", "hash_null": "hash_null", "claims": "claims"}
"""Files of data/, and their tables in bench/acceptance.sql."""
PUBLISHED = {
    "groups": "SELECT g.cluster, strftime(g.hour_utc, '%Y-%m-%d %H:%M:%S') AS hour, group_id, g.server, "
    "j.period_seconds FROM ours.metrics.traffic_groups AS g "
    "JOIN ours.metrics.job_periods AS j USING (cluster, hour_utc, group_id)",
    "quantities": "SELECT quantity, value FROM ours.metrics.claim_quantities",
}
Rows = dict[tuple[object, ...], tuple[object, ...]]
_SHOWN = 5
_HOUR = "strftime(hour_utc, '%Y-%m-%d %H:%M:%S')"


class Comparison(NamedTuple):
    """Keys and cells of a table in a warehouse, and the table or SELECT that recomputes it, columns in this order."""

    keys: Sequence[str]
    cells: str
    recomputed: str


_PORT, _SWITCH = ("cluster", "switch", "port"), ("cluster", "switch", _HOUR)
TABLES = {
    "metrics.port_hour": Comparison(
        (*_PORT, _HOUR),
        "polls, in_bytes, out_bytes, in_packets, out_packets, wraps, resets, full_seconds",
        "SELECT cluster, switch, port, hour, polls, in_bytes, out_bytes, in_packets, out_packets, wraps, resets, "
        "full_seconds FROM hours",
    ),
    "metrics.server_hour": Comparison(
        ("cluster", "server", _HOUR), "nics, rails_used, rx_bytes, tx_bytes", "FROM server_hour"
    ),
    "metrics.uplink_balance": Comparison(
        (*_SWITCH, "direction"), "uplinks, mean_bytes, cov, max_over_mean, jain_index", "FROM uplink_balance"
    ),
    "metrics.uplink_balance_minute": Comparison(
        (*_SWITCH, "CAST(epoch(minute_utc - hour_utc) AS BIGINT) // 60", "direction"),
        "total_bytes, cov, max_over_mean, jain_index, hash_null_p99, flows_assumed, quality, covered_ms",
        "FROM balance_minute",
    ),
    "metrics.spine_hour": Comparison(
        ("cluster", "spine", _HOUR),
        "to_leaf_bytes, from_leaf_bytes, in_out_difference, over_mean, leaves_seen, uplinks_seen, checkable",
        "FROM spine_hour",
    ),
    "metrics.port_second": Comparison(
        (*_PORT, _HOUR, "CAST(epoch(second_utc - hour_utc) AS BIGINT)"),
        "in_bytes, out_bytes, covered_ms, quality",
        "SELECT cluster, switch, port, hour, second, in_bytes, out_bytes, covered_ms, quality FROM seconds "
        "SEMI JOIN (FROM loads WHERE drawn) USING (cluster, switch, port, hour)",
    ),
    "metrics.suspect_links": Comparison((*_PORT, "kind"), "server, nic, candidate_port, hours", "FROM suspects"),
    "metrics.sampling_quality": Comparison(
        _SWITCH, "refresh_phase_ms, refresh_spread_ms, refresh_readings", "FROM phases"
    ),
    "metrics.suspect_servers": Comparison(
        ("cluster", "server", _HOUR), "group_id, rails, differing_rails", "FROM suspect_servers"
    ),
    "metrics.traffic_jobs": Comparison(("cluster", _HOUR, "group_id"), "rails, bytes", "FROM group_rails"),
    "metrics.job_pauses": Comparison(
        ("cluster", _HOUR, "group_id", "CAST(epoch(start_utc - hour_utc) AS BIGINT)"), "seconds, bytes", "FROM pauses"
    ),
    "metrics.published_claims": Comparison(("claim",), "difference, verdict", "FROM judged"),
    "metrics.findings": Comparison(("kind", "cluster", "where_"), f"{_HOUR}, number", "FROM findings"),
}


def recompute(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of bench/acceptance.sql from the raw tables, reviewed tables and what is published."""
    for file, name in REVIEWED.items():
        connection.execute(f"CREATE TABLE {name} AS FROM read_csv('{HERE.parent / 'data' / file}.csv', header = true)")
    for name, select in PUBLISHED.items():
        connection.execute(f"CREATE TABLE {name} AS {select}")
    connection.execute((HERE / "acceptance.sql").read_text(encoding="utf-8"))


def published(name: str) -> str:
    """Return the SELECT of a published table; of seconds, those of drawn ports, of claims, those of data/claims.csv."""
    keys, cells, _ = TABLES[name]
    select = f"SELECT {', '.join(keys)}, {cells} FROM ours.{name}"
    if name == "metrics.port_second":
        drawn = "SELECT cluster, switch, port, hour FROM loads WHERE drawn"
        select += f" JOIN ({drawn}) AS d USING (cluster, switch, port) WHERE {_HOUR} = d.hour"
    if name == "metrics.published_claims":  # the totals of mappings have tests of their own
        select += " WHERE claim IN (SELECT claim FROM claims)"
    return select


def rows_of(connection: duckdb.DuckDBPyConnection, select: str, width: int) -> Rows:
    """Return the rows by their first columns."""
    return {row[:width]: row[width:] for row in connection.execute(select).fetchall()}


def differences(ours: Rows, recomputed: Rows) -> list[str]:
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


def _shown(cells: tuple[object, ...] | None) -> str:
    return "no row" if cells is None else ", ".join(map(str, cells))


def compare(connection: duckdb.DuckDBPyConnection) -> int:
    """Print a line per table and return the number of rows that differ."""
    print(f"{'table':<30}{'rows':>9}{'differ':>9}{'seconds':>9}")
    differ = 0
    for name, (keys, _, recomputed) in TABLES.items():
        started, ours = time.perf_counter(), published(name)
        [(rows,)] = connection.execute(f"SELECT count(*) FROM ({ours})").fetchall()
        # Numbers that differ by rounding alone come out of both, and are equal then.
        only_ours, only_recomputed = (
            rows_of(connection, f"({one}) EXCEPT ({other})", len(keys))
            for one, other in ((ours, recomputed), (recomputed, ours))
        )
        found = differences(only_ours, only_recomputed)
        took = time.perf_counter() - started
        print(f"{name:<30}{rows:>9,}{len(found):>9,}{took:>9.1f}", flush=True)
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
    given = options.parse_args(arguments)
    if not given.data.is_dir():
        options.error(f"{given.data} is no folder")
    with tempfile.TemporaryDirectory(prefix="warehouse-acceptance-") as scratch:
        if given.target is None:
            command = [sys.executable, "-m", "warehouse", "build", "-d", str(given.data), "-t", scratch, "--quiet"]
            built = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if built.returncode:
                print(f"the build ended with {built.returncode}:\n{built.stderr}", file=sys.stderr)
                return built.returncode
        started = time.perf_counter()
        with closing(duckdb.connect(config={"preserve_insertion_order": False})) as connection:
            left_out = read(connection, given.data, given.ports, given.seed)
            published_file = (given.target or Path(scratch)).absolute() / "warehouse.duckdb"
            connection.execute(f"ATTACH '{published_file}' AS ours (READ_ONLY)")
            recompute(connection)
            [(files, drawn)] = connection.execute("SELECT count(*), count(*) FILTER (drawn) FROM loads").fetchall()
            print(
                f"read and recomputed {files:,} port files in {time.perf_counter() - started:.1f} s;"
                f" {left_out:,} lines left out; seconds of {drawn} ports (seed {given.seed})\n"
            )
            return 1 if compare(connection) else 0


if __name__ == "__main__":
    raise SystemExit(main())
