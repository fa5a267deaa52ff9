"""Cost of `warehouse publish` of a million rows to PostgreSQL, and `kill -9` at random times.

    python -m bench.postgres                 3 rounds, then 100 kills
    python -m bench.postgres --kills 1000 --seed 7

The bare copy for comparison is DuckDB's `COPY TO` a CSV file and psycopg's `COPY FROM STDIN`. It runs in a process of
its own, without key, index, comments, fingerprint or swap. After each kill all tables must be of the same publish, the
old one or the new one.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from bench.measure import Cost, machine, medians, run
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
NAMES = ("metrics.a", "metrics.b", "metrics.c")


def main() -> None:
    """Print both costs, then the outcomes of the kills."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=11)
    given = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder, server() as host:
        target = make_target(Path(folder) / "warehouse", Path(folder) / "data")
        url = f"{host}/postgres"
        costs(target, url, Path(folder), given.rows, given.rounds)
        count = killed(target, url, given.kills, random.Random(given.seed))
    said = ", ".join(f"{number} {how}" for how, number in sorted(count.items()))
    print(f"killed {given.kills} times, seed {given.seed}: {said}")


def put(target: Path, name: str, select: str, grain: list[str]) -> None:
    """Write a table into the published file."""
    path = target / "warehouse.duckdb"
    path.chmod(0o644)
    with duckdb.connect(str(path)) as opened:
        opened.execute(f"CREATE OR REPLACE TABLE {name} AS {select}")
        opened.execute("DELETE FROM meta.models WHERE model = ?", [name])
        opened.execute(
            "INSERT INTO meta.models VALUES (?, 'Rows.', ?, NULL, 'table', 1, 1, 'x.sql', NULL)", [name, grain]
        )


def costs(target: Path, url: str, folder: Path, rows: int, rounds: int) -> None:
    """Measure both ways in turn; each `publish` has a changed first row."""
    bare, ours, again = [], [], []
    publish = [sys.executable, "-m", "warehouse", "publish", url, "-t", str(target), "-s", "metrics.many"]
    for n in range(rounds):
        put(target, "metrics.many", ROWS.format(rows=rows).replace("'cluster'", f"'c{n}'", 1), GRAIN)
        bare.append(run([sys.executable, "-c", BARE, str(target), url, str(folder / "bare.csv")]))
        ours.append(run(publish))
        again.append(run(publish))
    middle = medians(bare).cpu
    print(f"{rows:,} rows, 10 columns, {rounds} rounds in turn; seconds and memory of the client")
    print(f"{'':<28}{'CPU s':>6}{'ratio':>7}{'wall s':>8}{'peak MB':>9}")
    lines: dict[str, list[Cost]] = {"bare copy": bare, "warehouse publish": ours, "... with nothing changed": again}
    for name, runs in lines.items():
        cost = medians(runs)
        print(f"{name:<28}{cost.cpu:>6.2f}{cost.cpu / middle:>7.2f}{cost.wall:>8.2f}{cost.peak_mb:>9.0f}")


def killed(target: Path, url: str, times: int, chance: random.Random) -> Counter[str]:
    """Kill a publish of three tables between its start and shortly after its usual end."""
    put(target, "metrics.many", "SELECT 1 AS k", ["k"])
    command = [sys.executable, "-m", "warehouse", "publish", url, "-t", str(target)]
    change(target, 0)
    whole = run(command).wall
    count: Counter[str] = Counter()
    for n in range(1, times + 1):
        before = state(url)
        change(target, n)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.2, 1.1) * whole)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            time.sleep(0.05)  # let the server notice that the client is gone
        now = state(url)
        assert now in (before, n), f"{now} after {before}, {n} was on its way"
        count["new" if now == n else "old"] += 1
    run(command)
    assert state(url) == times
    return count


def change(target: Path, n: int) -> None:
    """Change the rows of three tables."""
    for name in NAMES:
        put(target, name, f"SELECT range AS k, {n} AS n FROM range(20000)", ["k"])


def state(url: str) -> int:
    """Return the publish that the tables are from, which must be the same for all."""
    ask = " UNION ALL ".join(f"SELECT min(n), max(n), count(*) FROM {name}" for name in NAMES)
    with psycopg.connect(url) as asked:
        found: set[tuple[Any, ...]] = set(asked.execute(ask).fetchall())
    [(least, most, rows)] = found
    assert (least, rows) == (most, 20000)
    return int(least)


if __name__ == "__main__":
    main()
