"""Cost of a build compared with a bare DuckDB load of the same port CSVs, runs in turn.

    python -m bench.ingest                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.ingest --full              a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.ingest --data DIR --rounds 5 --threads 1 2 4
    python -m bench.ingest --polars            a script of polars beside it

The bare load is one CREATE TABLE AS in a database on disk, with ten declared columns: it reads, types and stores, and
nothing else. Ours hashes every file, validates every row, and materializes, checks and publishes every table. Its
models are parsed and bound once per machine, in a first round that is not counted. The script of polars computes
`port_hour` alone: the same sums and means, without validation, seconds and percentiles.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import Case, building, in_turn, machine, run, table

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
# Counters of the management port wrap at 2**32; a negative delta of another port is a reset and counts as 0. Unlike the
# models, this ignores the time since the previous row: in the files measured here each wrap is plausible.
POLARS = """
import sys, polars
from polars import Float64, Int64, String, col, when
keys, sums = ["DeviceName", "PortName"], ["InPkts", "InOctets", "OutPkts", "OutOctets"]
schema = {"SaveTime": String, "SaveTimeUTC": Int64, **dict.fromkeys(keys, String), **dict.fromkeys(sums, Int64),
          "InRatio": Float64, "OutRatio": Float64}
def corrected(name):
    stored, wraps = col(name), col("PortName").str.starts_with("M-GigabitEthernet")
    return when(stored >= 0).then(stored).when(wraps).then(stored + 2**32).otherwise(0).alias(name)
rows = polars.scan_csv(open(sys.argv[1]).read().split("\\n"), schema=schema)
hour = (rows.with_columns(corrected("InOctets"), corrected("OutOctets")).group_by(keys)
        .agg(polars.len().cast(Int64).alias("polls"), col(sums).sum())
        .with_columns((col("InOctets") * 8 / 3600).alias("in_mean_bps")).sort(keys))
hour.collect(engine="streaming").write_parquet(sys.argv[2])
"""
FULL = """
import sys; from pathlib import Path; from warehouse.sample import *
write_sample(Path(sys.argv[1]), SampleOptions(full=True, hour_tables=False, utilization=False))
"""
HOUR_TABLES = shutil.ignore_patterns("*_flow.csv", "*_link.csv", "*_nic.csv", "*_port.csv")
"""The other tables of an hour, which may lie beside its port CSVs."""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--threads", type=int, nargs="+", default=[1])
    options.add_argument("--polars", action="store_true", help="a script of port_hour beside it")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        if given.full:
            run(Case([sys.executable, "-c", FULL, str(scratch / "full")]))
        data = given.data or fabric_of(scratch / "full" if given.full else real_or_sample(scratch), scratch)
        files, listing = port_csvs(data), scratch / "files.txt"
        listing.write_text("\n".join(map(str, files)), encoding="utf-8")
        print(machine())
        size = sum(path.stat().st_size for path in files)
        print(f"{data}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; {given.rounds} rounds in turn")
        target, loaded = scratch / "target", scratch / "bare.duckdb"

        def anew() -> None:
            shutil.rmtree(target, ignore_errors=True)
            loaded.unlink(missing_ok=True)

        for count in map(str, given.threads):
            build, cache = building(data, target, "--threads", count), {"XDG_CACHE_HOME": str(scratch / "cache")}
            cases = {
                "bare DuckDB load": Case([sys.executable, "-c", BARE, str(listing), str(loaded), count], anew),
                "warehouse build": Case(build, anew, env=cache),
            }
            if given.polars:
                script = [sys.executable, "-c", POLARS, str(listing), str(scratch / "hour.parquet")]
                cases["polars port_hour"] = Case(script, env={"POLARS_MAX_THREADS": count})
            print(f"\nthreads: {count}")
            table(in_turn(cases, given.rounds, uncounted=1), "bare DuckDB load")
    return 0


def real_or_sample(scratch: Path) -> Path:
    """Return the real files at hand, else a sample."""
    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real")).absolute()
    if real.is_dir():
        return real
    run(Case([sys.executable, "-m", "warehouse", "sample", str(scratch / "sample")]))
    return scratch / "sample"


def fabric_of(release: Path, scratch: Path) -> Path:
    """Return a folder with only the port CSVs and workbooks of the clusters: others have their own benchmarks."""
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


if __name__ == "__main__":
    raise SystemExit(main())
