"""Cost of unpivoting wide utilization files, compared with DuckDB reading them as text columns.

    python -m bench.unpivot                          2 GB in files of 250 MB, one thread, 1 GB for the engine
    python -m bench.unpivot --gb 1 2 4 8             growth of the cost; files are generated one size after another
    python -m bench.unpivot --gb 4 --file-gb 1       fewer and larger files

Four metrics take turns, file by file. Sizes are comparable if each has the same number of files per metric.

Read as text: one read_csv per file, every column declared VARCHAR and counted. Unpivot: `staging.utilization` of a
built warehouse, every cell with its server, GPU and time, counted and summed. Build: `warehouse build` of the files
from nothing, all tables materialized, checked and published.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from bench.measure import Cost, machine, medians, run

READ = """
import sys, duckdb
connection = duckdb.connect(config={"threads": int(sys.argv[1]), "memory_limit": sys.argv[2]})
for path in sys.argv[3:]:
    names = open(path).readline().rstrip().split(",")
    columns = {f"c{place}": "VARCHAR" for place in range(len(names))}
    counted = ", ".join(f"count({name})" for name in columns)
    connection.execute(f"SELECT {counted} FROM read_csv(?, auto_detect=false, header=true, delim=',', quote='', "
                       f"escape='', columns={columns})", [path]).fetchall()
"""
UNPIVOT = """
import sys, duckdb
connection = duckdb.connect(sys.argv[3] + "/warehouse.duckdb", read_only=True,
                            config={"threads": int(sys.argv[1]), "memory_limit": sys.argv[2]})
print(connection.execute("SELECT count(*), count(value), sum(gpu), max(time_utc), max(host_ip) "
                         "FROM staging.utilization").fetchall())
"""
METRICS = ("GPU_UTIL", "POWER_USAGE", "SM_ACTIVE", "FB_USED")
"""Metrics of the files, in turn: integers, one decimal, three decimals, large numbers."""


def main() -> int:
    """Print a table per size."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gb", type=float, nargs="+", default=[2.0])
    options.add_argument("--file-gb", type=float, default=0.25, help="size of a file")
    options.add_argument("--columns", type=int, default=2344)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--memory", default="1GB")
    options.add_argument("--scratch", type=Path, help="where the files are made; needs their size")
    given = options.parse_args()
    print(machine())
    for size in given.gb:
        with tempfile.TemporaryDirectory(prefix="warehouse-bench-", dir=given.scratch) as scratch:
            _compare(given, size, Path(scratch))
    return 0


def _compare(given: argparse.Namespace, size: float, scratch: Path) -> None:
    with ProcessPoolExecutor(1) as other:  # a child's peak is at least the memory of the process that starts it
        made = other.submit(make_files, scratch / "utilization" / "kalos", size, given.file_gb, given.columns)
        files, cells = made.result()
    print(f"\n{size:g} GB: {len(files)} files of {given.columns:,} columns, {cells / 1e6:,.0f} million cells; ", end="")
    print(f"{given.threads} thread, memory {given.memory}, {given.rounds} rounds in turn\n")
    limits = [str(given.threads), given.memory]
    cases = {
        "read as text columns": [sys.executable, "-c", READ, *limits, *map(str, files)],
        "warehouse build": [
            sys.executable, "-m", "warehouse", "build", "-d", str(scratch / "utilization"), "-t", "", "--quiet",
            "--threads", limits[0], "--memory", limits[1],
        ],
        "unpivot (staging.utilization)": [sys.executable, "-c", UNPIVOT, *limits, ""],
    }  # fmt: skip
    print(f"{'':<32}{'CPU s':>8}{'ratio':>8}{'ns/cell':>9}{'peak MB':>9}{'wall s':>8}", flush=True)
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for round_ in range(given.rounds):
        target = str(scratch / f"target-{round_}")
        for name, command in cases.items():
            costs[name].append(run([part or target for part in command]))
            if len(costs[name]) == given.rounds:
                cost, text = medians(costs[name]), medians(costs["read as text columns"])
                each = f"{cost.cpu:>8.1f}{cost.cpu / text.cpu:>8.2f}{cost.cpu / cells * 1e9:>9.0f}{cost.peak_mb:>9.0f}"
                print(f"{name:<32}{each}{cost.wall:>8.1f}", flush=True)


def make_files(folder: Path, size: float, file_size: float, columns: int) -> tuple[list[Path], int]:
    """Generate files of this many GB: rows are picked from a thousand, 1% of the cells are empty."""
    folder.mkdir(parents=True)
    names = [f"10.140.{place // 800}.{place // 8 % 100}-{place % 8}" for place in range(columns)]
    written, cells = [], 0
    count = max(1, round(size / file_size))
    for number in range(count):
        chance = np.random.default_rng(number)
        metric = METRICS[number % len(METRICS)]
        path = folder / (f"{metric}.csv" if number < len(METRICS) else f"{metric}-2023-{number // len(METRICS):02}.csv")
        time, left = datetime(2023, 3 + number // len(METRICS), 1, 8), size * 1e9 / count  # noqa: DTZ001
        chance.shuffle(names)
        rows = _rows(chance, metric, columns)
        with path.open("w", encoding="ascii") as stream:
            left -= stream.write(",".join(["Time", *names]) + "\n")
            while left > 0:
                row = rows[int(chance.integers(len(rows)))]
                left -= stream.write(f"{time:%Y-%m-%d %H:%M:%S}+08:00,{row}\n")
                time += timedelta(seconds=15)
                cells += columns
        written.append(path)
    return written, cells


def _rows(chance: np.random.Generator, metric: str, columns: int) -> list[str]:
    """Return a thousand rows of one metric: idle, at full load, or in between."""
    shape = (1_000, columns)
    if metric == "GPU_UTIL":
        values = (
            np.where(chance.random(shape) < 0.6, chance.choice([0, 100], shape), chance.integers(0, 101, shape)) / 1
        )
    elif metric == "POWER_USAGE":
        values = chance.integers(580, 4500, shape) / 10
    elif metric == "SM_ACTIVE":
        values = np.where(chance.random(shape) < 0.3, 0, chance.integers(0, 100_000, shape)) / 1000
    else:
        values = chance.integers(0, 81_920, shape) / 1
    texts = values.astype("U10")
    texts[chance.random(shape) < 0.01] = ""
    return [",".join(row) for row in texts.tolist()]


if __name__ == "__main__":
    raise SystemExit(main())
