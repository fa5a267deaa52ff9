"""Cost of a build compared with a bare DuckDB load of the same port CSVs, runs in turn.

    python -m bench.ingest                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.ingest --full              a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.ingest --data DIR --rounds 5 --threads 1 2 4
    python -m bench.ingest --polars            polars beside it: `port_hour` alone (bench/port_hour.py)

The bare load is one CREATE TABLE AS in a database on disk, with ten declared columns: it reads, types and stores, and
nothing else. Ours hashes every file, validates every row, and materializes, checks and publishes every table. Its
models are parsed and bound once per machine, in a first round that is not counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import in_turn, machine, run, table

BARE = """
import sys, duckdb
from warehouse.formats.zhejiang.port_counters import COLUMNS
connection = duckdb.connect(sys.argv[2])
connection.execute("SET threads = " + sys.argv[3])
files = open(sys.argv[1]).read().split("\\n")
connection.execute("CREATE TABLE port_counters AS SELECT * FROM read_csv(?, auto_detect=false, header=true, "
                   "delim=',', quote='', escape='', columns=" + repr(COLUMNS) + ")", [files])
connection.close()
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, nargs="+", default=[1])
    options.add_argument("--polars", action="store_true", help="a script of port_hour beside it")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or (full_hour(Path(scratch)) if given.full else default_data(Path(scratch)))
        _compare(data, given.rounds, Path(scratch), given.threads, given.polars)
    return 0


def full_hour(scratch: Path) -> Path:
    """Create a full-size hour with port CSVs and workbook alone; logs and jobs have their own benchmarks."""
    make = "from warehouse.sample import *; from pathlib import Path; import sys; "
    make += "write_sample(Path(sys.argv[1]), SampleOptions(full=True, hour_tables=False, utilization=False))"
    run([sys.executable, "-c", make, str(scratch / "full")])
    return fabric_of(scratch / "full", scratch)


def default_data(scratch: Path) -> Path:
    """Return the available port CSVs and workbook; logs and jobs have their own benchmarks."""
    return fabric_of(real_or_sample(scratch), scratch)


def real_or_sample(scratch: Path) -> Path:
    """Return the real files at hand, else a sample."""
    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real")).absolute()
    if real.is_dir():
        return real
    run([sys.executable, "-m", "warehouse", "sample", str(scratch / "sample")])
    return scratch / "sample"


HOUR_TABLES = shutil.ignore_patterns("*_flow.csv", "*_link.csv", "*_nic.csv", "*_port.csv")
"""The other tables of an hour, which may lie beside its port CSVs."""


def fabric_of(release: Path, scratch: Path) -> Path:
    """Return a folder with only the port CSVs and workbooks of the clusters, as hard links or copies."""
    fabric = scratch / "fabric"
    for traffic in sorted(release.rglob("trafficinfo")):
        cluster = fabric / traffic.parent.name
        shutil.copytree(traffic, cluster / traffic.name, ignore=HOUR_TABLES, copy_function=_same_file)
        for workbook in traffic.parent.glob("*.xlsx"):
            _same_file(workbook, cluster / workbook.name)
    return fabric


def _same_file(source: str | Path, target: str | Path) -> None:
    """Hard-link a file, or copy it to another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def port_csvs(data: Path) -> list[Path]:
    """Return the port CSVs below a folder, sorted."""
    below = (Path(folder) / name for folder, _, names in os.walk(data, followlinks=True) for name in names)
    return sorted(path for path in below if path.suffix == ".csv" and path.parent.parent.name.isdigit())


def _compare(data: Path, rounds: int, scratch: Path, threads: Sequence[int], with_polars: bool) -> None:
    files = port_csvs(data)
    listing = scratch / "files.txt"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    size = sum(path.stat().st_size for path in files)
    print(machine())
    print(f"{data}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; {rounds} rounds in turn")
    target, loaded = scratch / "target", scratch / "bare.duckdb"

    def anew() -> None:
        shutil.rmtree(target, ignore_errors=True)
        loaded.unlink(missing_ok=True)

    for count in map(str, threads):
        cases = {
            "bare DuckDB load": [sys.executable, "-c", BARE, str(listing), str(loaded), count],
            "warehouse build": [
                sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(target),
                "--threads", count, "--quiet",
            ],
        }  # fmt: skip
        if with_polars:
            command = [sys.executable, "-m", "bench.port_hour", str(listing), str(scratch / "hour.parquet")]
            cases["polars port_hour"] = ["env", f"POLARS_MAX_THREADS={count}", *command]
        print(f"\nthreads: {count}")
        environment = {"XDG_CACHE_HOME": str(scratch / "cache")}
        table(in_turn(cases, rounds, env=environment, before=anew, uncounted=1), "bare DuckDB load")


if __name__ == "__main__":
    raise SystemExit(main())
