"""Cost of `warehouse publish` of a million rows to PostgreSQL.

    python -m bench.postgres --rounds 3

The bare copy for comparison is DuckDB's `COPY TO` a CSV file and psycopg's `COPY FROM STDIN`. It runs in a process of
its own, without key, index, comments, fingerprint or swap. tests/publish kills publishes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import count
from pathlib import Path

from bench.measure import Case, in_turn, machine, table
from tests.publish.postgres_server import put, server
from tests.small_target import make_target

ROWS = """SELECT 'c{number}' AS cluster, 'Leaf-' || range % 24 AS switch, 'TwoHundredGigE1/0/' || range % 48 AS port,
    TIMESTAMP '2024-05-23 16:00:00' + range * INTERVAL 1 second AS second_utc, range * 25000000000 AS in_bytes,
    range * 24000000000 AS out_bytes, range / 7 AS in_bps, range / 11 AS out_bps, range % 3 AS polls,
    range % 2 = 0 AS flag
    FROM range({rows})"""
KEY = ["cluster", "switch", "port", "second_utc"]
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
    """Print both costs; each round publishes a table with another first column."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder, server() as host:
        target, number = make_target(Path(folder) / "warehouse", Path(folder) / "data"), count()
        url = f"{host}/postgres"
        publish = [sys.executable, "-m", "warehouse", "publish", url, "-t", str(target), "-s", "metrics.many"]
        cases = {
            "bare copy": Case(
                [sys.executable, "-c", BARE, str(target), url, f"{folder}/bare.csv"],
                lambda: put(target, KEY, many=ROWS.format(rows=given.rows, number=next(number))),
            ),
            "warehouse publish": Case(publish),
            "... with nothing changed": Case(publish),
        }
        costs = in_turn(cases, given.rounds)
    print(f"{given.rows:,} rows, 10 columns, {given.rounds} rounds in turn; seconds and memory of the client")
    table(costs, "bare copy", width=28)


if __name__ == "__main__":
    main()
