"""What a build costs against a bare DuckDB load of the same port CSVs, one thread each, runs in turn.

    python -m bench.ingest                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.ingest --full              a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.ingest --data DIR --rounds 5

The bare load is one CREATE TABLE AS in a database on disk, ten declared columns: it reads, types and stores,
and nothing else. Ours hashes every file, guards every row, and makes, checks and publishes every table. Its models
are parsed and bound once a machine, as Python compiles modules: the build that does it is not counted, but shown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import Cost, machine, medians, run

BARE = """
import sys, duckdb
from warehouse.formats.zhejiang.port_counters import COLUMNS
connection = duckdb.connect(sys.argv[2])
connection.execute("SET threads = 1")
files = open(sys.argv[1]).read().split("\\n")
connection.execute("CREATE TABLE port_counters AS SELECT * FROM read_csv(?, auto_detect=false, header=true, "
                   "delim=',', quote='', escape='', columns=" + repr(COLUMNS) + ")", [files])
connection.close()
"""
POLARS = """
import sys, polars
files = open(sys.argv[1]).read().split("\\n")
kinds = {"SaveTime": polars.String, "DeviceName": polars.String, "PortName": polars.String,
         "InRatio": polars.Float64, "OutRatio": polars.Float64}
names = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio".split(",")
rows = polars.scan_csv(files, schema={name: kinds.get(name, polars.Int64) for name in names})
wrap = polars.col("PortName").str.starts_with("M-GigabitEthernet")
def corrected(name):
    stored = polars.col(name)
    return polars.when(stored >= 0).then(stored).when(wrap).then(stored + 2**32).otherwise(0).alias(name)
fixed = [corrected("InOctets"), corrected("OutOctets")]
hour = (rows.with_columns(fixed).group_by("DeviceName", "PortName")
        .agg(polars.len().alias("polls"), polars.col("InPkts", "InOctets", "OutPkts", "OutOctets").sum())
        .with_columns((polars.col("InOctets") * 8 / 3600).alias("in_mean_bps")).sort("DeviceName", "PortName"))
hour.collect(engine="streaming").write_parquet(sys.argv[2])
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--polars", action="store_true", help="a polars script of port_hour beside it")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or (_full_hour(Path(scratch)) if given.full else _default_data(Path(scratch)))
        _compare(data, given.rounds, Path(scratch), polars=given.polars)
    return 0


def _full_hour(scratch: Path) -> Path:
    """Port CSVs and workbook alone, as of the files at hand: the sample's logs and jobs are other benches' matter."""
    make = "from warehouse.sample import *; from pathlib import Path; import sys; "
    make += "write_sample(Path(sys.argv[1]), SampleOptions(full=True, hour_tables=False, utilization=False))"
    run([sys.executable, "-c", make, str(scratch / "full")])
    return _fabric(scratch / "full", scratch)


def _default_data(scratch: Path) -> Path:
    """The fabric's files at hand, port CSVs and workbook: logs and jobs of the release are other benches' matter."""
    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real")).absolute() / "zhejiang"
    if real.is_dir():
        return _fabric(real, scratch)
    run([sys.executable, "-m", "warehouse", "sample", str(scratch / "sample")])
    return _fabric(scratch / "sample", scratch)


def _fabric(release: Path, scratch: Path) -> Path:
    """A folder that leads to the clusters' port CSVs and workbooks, and to nothing else."""
    fabric = scratch / "fabric"
    for traffic in sorted(release.rglob("trafficinfo")):
        cluster = fabric / traffic.parent.name
        cluster.mkdir(parents=True)
        for one in (traffic, *traffic.parent.glob("*.xlsx")):
            (cluster / one.name).symlink_to(one)
    return fabric


def _compare(data: Path, rounds: int, scratch: Path, *, polars: bool) -> None:
    below = (Path(folder) / name for folder, _, names in os.walk(data, followlinks=True) for name in names)
    files = sorted(path for path in below if path.suffix == ".csv" and path.parent.parent.name.isdigit())
    listing = scratch / "files.txt"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    size = sum(path.stat().st_size for path in files)
    print(machine())
    print(f"{data}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; {rounds} rounds in turn\n")
    environment = {"POLARS_MAX_THREADS": "1", "XDG_CACHE_HOME": str(scratch / "cache")}
    cases = {
        "bare DuckDB load": [sys.executable, "-c", BARE, str(listing), str(scratch / "bare.duckdb")],
        "warehouse build": [
            sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"),
            "--threads", "1", "--quiet",
        ],
    }  # fmt: skip
    if polars:
        cases["polars port_hour"] = [
            sys.executable,
            "-c",
            POLARS,
            str(listing),
            str(scratch / "polars.parquet"),
        ]
    first = run(cases["warehouse build"], env=environment)
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, command in cases.items():
            shutil.rmtree(scratch / "target", ignore_errors=True)
            (scratch / "bare.duckdb").unlink(missing_ok=True)
            costs[name].append(run(command, env=environment))
    bare = medians(costs["bare DuckDB load"])
    print(f"{'':<20}{'CPU s':>8}{'ratio':>8}{'peak MB':>9}{'wall s':>8}   CPU s of each run")
    for name, found in costs.items():
        cost = medians(found)
        each = " ".join(f"{one.cpu:.2f}" for one in found)
        print(f"{name:<20}{cost.cpu:>8.2f}{cost.cpu / bare.cpu:>8.2f}{cost.peak_mb:>9.0f}{cost.wall:>8.2f}   {each}")
    print(f"\nThe first build of all, which parsed and bound the models for those after it: {first.cpu:.2f} CPU s.")


if __name__ == "__main__":
    raise SystemExit(main())
