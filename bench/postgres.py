"""Cost of `warehouse publish` of a million rows to PostgreSQL.

    python -m bench.postgres --rounds 3

The bare copy for comparison is DuckDB's `COPY TO` a CSV file and psycopg's `COPY FROM STDIN`. It runs in a process of
its own, without key, index, comments, fingerprint or swap. tests/publish kills publishes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import duckdb

from bench.measure import Cost, in_turn, machine, table
from tests.publish.postgres_server import server
from tests.small_target import make_target

ROWS = """SELECT 'cluster' AS cluster, 'Leaf-' || range % 24 AS switch, 'TwoHundredGigE1/0/' || range % 48 AS port,
    TIMESTAMP '2024-05-23 16:00:00' + range * INTERVAL 1 second AS second_utc, range * 25000000000 AS in_bytes,
    range * 24000000000 AS out_bytes, range / 7 AS in_bps, range / 11 AS out_bps, range % 3 AS polls,
    range % 2 = 0 AS flag
    FROM range({rows})"""
GRAIN = ["cluster", "switch", "port", "second_utc"]
BARE = """
import sys, duckdb, psycopg
target, url, scratch = sys.argv[1:]
with duckdb.connect(target + '/warehouse.duckdb', read_only=True) as rows:
    rows.execute(f"COPY metrics.many TO '{scratch}' (FORMAT csv, HEADER false, NULLSTR '')")
with psycopg.connect(url) as server:
    server.execute('DROP TABLE IF EXISTS bare; CREATE TABLE bare (cluster text, switch text, port text, '
                   'second_utc timestamp, in_bytes bigint, out_bytes bigint, in_bps double precision, '
                   'out_bps double precision, polls bigint, flag boolean)')
    with open(scratch, 'rb') as csv, server.cursor().copy('COPY bare FROM STDIN (FORMAT csv)') as copy:
        while chunk := csv.read(1 << 20):
            copy.write(chunk)
"""


def main() -> None:
    """Print both costs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder, server() as host:
        target = make_target(Path(folder) / "warehouse", Path(folder) / "data")
        url = f"{host}/postgres"
        costs(target, url, Path(folder), given.rows, given.rounds)


def put(target: Path, name: str, select: str, grain: list[str]) -> None:
    """Write a table into the published file."""
    path = target / "warehouse.duckdb"
    path.chmod(0o644)
    with duckdb.connect(str(path)) as opened:
        opened.execute(f"CREATE OR REPLACE TABLE {name} AS {select}")
        opened.execute("DELETE FROM meta.models WHERE model = ?", [name])
        opened.execute(
            "INSERT INTO meta.models VALUES (?, 'Rows.', ?, NULL, 'table', 1, 1, 'x.sql', NULL, [], false, [])",
            [name, grain],
        )


def costs(target: Path, url: str, folder: Path, rows: int, rounds: int) -> None:
    """Measure both ways in turn; each `publish` has a changed first row."""
    publish = [sys.executable, "-m", "warehouse", "publish", url, "-t", str(target), "-s", "metrics.many"]
    cases = {
        "bare copy": [sys.executable, "-c", BARE, str(target), url, str(folder / "bare.csv")],
        "warehouse publish": publish,
        "... with nothing changed": publish,
    }
    found: dict[str, list[Cost]] = {name: [] for name in cases}
    for number in range(rounds):
        put(target, "metrics.many", ROWS.format(rows=rows).replace("'cluster'", f"'c{number}'", 1), GRAIN)
        for name, costs_of in in_turn(cases, 1).items():
            found[name] += costs_of
    print(f"{rows:,} rows, 10 columns, {rounds} rounds in turn; seconds and memory of the client")
    table(found, "bare copy", width=28)


if __name__ == "__main__":
    main()
