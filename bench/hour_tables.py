"""Cost of the hour tables, from a flow table to its metrics, beside a bare DuckDB load of the same file.

    python -m bench.hour_tables                    a synthetic flow table of 98 MB
    python -m bench.hour_tables --mb 1000 --rounds 1   memory at 1 GB
    python -m bench.hour_tables --mb 1000 --rounds 1 --unique   the same, each row with queue pairs of its own
    python -m bench.hour_tables --bad 1000         with that many damaged lines

The bare load is one CREATE TABLE AS of read_csv, with DuckDB's own types, in a database on disk. Ours hashes the file,
validates every row, names servers and leaves, and materializes, checks and publishes the metrics of flows. The first
build parses the models and is not counted.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import machine, run, table

HEADER = (
    "SourceServer,DestServer,SourceSwitch,DestSwitch,Time,SourceIp,DestIp,"
    "SourceQp,DestQp,Rtt,ReadPkts,WritePkts,SendPkts,NakPkts\n"
)
BARE = """
import sys, duckdb
connection = duckdb.connect(sys.argv[2])
connection.execute("SET threads = " + sys.argv[3])
connection.execute("CREATE TABLE flow AS FROM read_csv(?)", [sys.argv[1]])
connection.close()
"""
SERVERS, PEERS, QUEUE_PAIRS = 264, 4, 16
"""Each server sends to so many others, over so many queue pairs each, all hour long."""
_BYTES_PER_ROW = 264


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, default=98)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", default="1")
    options.add_argument("--memory", default=None, help="--memory of the build; its default otherwise")
    options.add_argument("--bad", type=int, default=0, help="number of damaged lines")
    options.add_argument("--unique", action="store_true", help="as many flows as rows")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        folder = Path(scratch)
        file = write_flows(folder / "data", given.mb * 10**6, given.bad, unique=given.unique)
        ours = [sys.executable, "-m", "warehouse", "build", "-d", str(folder / "data"), "--threads", given.threads]
        ours += ["--quiet", *(["--memory", given.memory] if given.memory else [])]
        costs: dict[str, list[object]] = {"bare load": [], "warehouse": []}
        run([*ours, "-t", str(folder / "first")])
        for number in range(given.rounds):
            database, target = folder / f"{number}.duckdb", folder / f"target-{number}"
            costs["bare load"].append(run([sys.executable, "-c", BARE, str(file), str(database), given.threads]))
            costs["warehouse"].append(run([*ours, "-t", str(target)]))
            database.unlink()
            shutil.rmtree(target)
        print(f"{machine()}; {file.stat().st_size / 10**6:.0f} MB, {given.bad} damaged lines, {given.threads} threads")
        table(costs, "bare load")  # type: ignore[arg-type]
    return 0


def write_flows(data: Path, size: int, bad: int, *, unique: bool = False) -> Path:
    """Write a flow table in the form of the release's document, with padded numbers.

    A server has 16 queue pairs with each peer; with `unique`, each row has a pair of queue pairs of its own.
    """
    folder = data / "cluster_bench" / "trafficinfo" / "2024052400"
    folder.mkdir(parents=True)
    path = folder / "2024052400_flow.csv"
    with path.open("w", encoding="utf-8") as out:
        out.write(HEADER)
        out.writelines(_lines(size // _BYTES_PER_ROW, bad, unique=unique))
    return path


def _lines(rows: int, bad: int, *, unique: bool) -> Iterator[str]:
    draw = random.Random(1)
    ends = [
        (
            f"NH-DC-NM129-I04-20U-GPU-{n}",
            f"NH-DC-NM129-H04-ROCE-Leaf-{n % 20 + 1}.GPU.S9825",
            f"10.107.{n // 250}.{n % 250}",
        )
        for n in range(1, SERVERS + 1)
    ]
    damaged = set(draw.sample(range(rows), bad))
    for row in range(rows):
        at_source = draw.randrange(SERVERS)
        peer, number = draw.randint(1, PEERS), draw.randrange(QUEUE_PAIRS)
        source, target = ends[at_source], ends[(at_source + peer) % SERVERS]
        first = at_source * 64 + peer * QUEUE_PAIRS + number
        pairs = [row, row + 1] if unique else [600 + (first + far * 7919) % 15_000 for far in (0, 1)]
        at = row * 3600 // rows
        time = f"2024/5/24 上午{12 if row % 7 else 0:02}:{at // 60:02}:{at % 60:02}"
        rtt = "damaged" if row in damaged else draw.randint(3_000, 17_000)
        numbers = (*pairs, rtt, 0, draw.randint(0, 4_000), 0, 0)
        padded = ",".join(f"{number:<13}" for number in numbers)
        yield f"{source[0]},{target[0]},{source[1]},{target[1]},{time},{source[2]},{target[2]},{padded}\n"


if __name__ == "__main__":
    sys.exit(main())
