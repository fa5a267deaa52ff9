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
from bench.measure import building

HERE = Path(__file__).parent
REVIEWED = {"port_owners": "reviewed", "clusters": "sizes", "hash_null": "hash_null", "claims": "claims"}
"""Files of data/, and their tables in bench/acceptance.sql."""
PUBLISHED = {
    "groups": """SELECT g.cluster, g.hour_utc, group_id, g.server, j.period_seconds
        FROM ours.metrics.traffic_groups AS g JOIN ours.metrics.job_periods AS j USING (cluster, hour_utc, group_id)""",
    "quantities": "SELECT quantity, value FROM ours.metrics.claim_quantities",
}
SHOWN = 5


class Table(NamedTuple):
    """Table of bench/acceptance.sql, its columns that are compared with the published table, and which rows."""

    recomputed: str
    keys: str
    cells: str
    some: str = ""


TABLES = {
    "metrics.port_hour": Table(
        "hours",
        "cluster switch port hour_utc",
        "polls in_bytes out_bytes in_packets out_packets wraps resets full_seconds",
    ),
    "metrics.server_hour": Table("server_hour", "cluster server hour_utc", "nics rails_used rx_bytes tx_bytes"),
    "metrics.uplink_balance": Table(
        "uplink_balance", "cluster switch hour_utc direction", "uplinks mean_bytes cov max_over_mean jain_index"
    ),
    "metrics.uplink_balance_minute": Table(
        "balance_minute",
        "cluster switch hour_utc minute_utc direction",
        "total_bytes cov max_over_mean jain_index hash_null_p99 flows_assumed quality covered_ms",
    ),
    "metrics.spine_hour": Table(
        "spine_hour",
        "cluster spine hour_utc",
        "to_leaf_bytes from_leaf_bytes in_out_difference over_mean leaves_seen uplinks_seen checkable",
    ),
    "metrics.port_second": Table(
        "(SELECT *, hour_utc + to_seconds(second) AS second_utc FROM seconds)",
        "cluster switch port hour_utc second_utc",
        "in_bytes out_bytes covered_ms quality",
        "SEMI JOIN (FROM loads WHERE drawn) USING (cluster, switch, port, hour_utc)",
    ),
    "metrics.suspect_links": Table("suspects", "cluster switch port kind", "server nic candidate_port hours"),
    "metrics.sampling_quality": Table(
        "phases", "cluster switch hour_utc", "refresh_phase_ms refresh_spread_ms refresh_readings"
    ),
    "metrics.suspect_servers": Table("suspect_servers", "cluster server hour_utc", "group_id rails differing_rails"),
    "metrics.traffic_jobs": Table("group_rails", "cluster hour_utc group_id", "rails bytes"),
    "metrics.job_pauses": Table("pauses", "cluster hour_utc group_id start_utc", "seconds bytes"),
    # the totals of mappings have tests of their own
    "metrics.published_claims": Table("judged", "claim", "difference verdict", "SEMI JOIN claims USING (claim)"),
    "metrics.findings": Table("findings", "kind cluster where_", "hour_utc number"),
}


def recompute(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables of bench/acceptance.sql from the raw tables, reviewed tables and what is published."""
    for file, name in REVIEWED.items():
        connection.execute(f"CREATE TABLE {name} AS FROM read_csv('{HERE.parent / 'data' / file}.csv', header = true)")
    for name, select in PUBLISHED.items():
        connection.execute(f"CREATE TABLE {name} AS {select}")
    connection.execute((HERE / "acceptance.sql").read_text(encoding="utf-8"))


def compare(connection: duckdb.DuckDBPyConnection) -> int:
    """Print a line per table and return the number of rows that differ by more than rounding."""
    print(f"{'table':<30}{'rows':>9}{'differ':>9}{'seconds':>9}")
    total = 0
    for name, (recomputed, keys, cells, some) in TABLES.items():
        started, columns = time.perf_counter(), f"{keys} {cells}".split()
        listed = ", ".join(columns)
        published = connection.sql(f"SELECT {listed} FROM ours.{name} {some}")
        floats = {column for column, kind in zip(columns, published.types, strict=True) if str(kind) == "DOUBLE"}
        same = [f"{'is_near' if one in floats else 'is_same'}(published.{one}, again.{one})" for one in columns]
        differ = connection.execute(
            f"""SELECT published, again FROM ({published.sql_query()}) AS published
            FULL JOIN (SELECT {listed} FROM {recomputed} {some}) AS again
            ON {" AND ".join(same[: len(keys.split())])}
            WHERE NOT ({" AND ".join(same)}) ORDER BY ALL"""
        ).fetchall()
        rows, took = len(published), time.perf_counter() - started
        print(f"{name:<30}{rows:>9,}{len(differ):>9,}{took:>9.1f}", flush=True)
        for row, other in differ[:SHOWN]:
            print(f"  published {_shown(row)}\n  recomputed {_shown(other)}")
        if len(differ) > SHOWN:
            print(f"  and {len(differ) - SHOWN:,} more")
        total += len(differ)
    return total


def _shown(row: dict[str, object]) -> str:
    return ", ".join(map(str, row.values())) if any(one is not None for one in row.values()) else "no row"


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
            built = subprocess.run(building(given.data, Path(scratch)), stderr=subprocess.PIPE, text=True)
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
