"""Cost of a build compared with a bare DuckDB load of the same port CSVs, one thread each, runs in turn.

    python -m bench.ingest                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.ingest --full              a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.ingest --data DIR --rounds 5
    python -m bench.ingest --peers all         polars, pandas and chdb beside it: `port_hour` alone (bench/port_hour.py)

The bare load is one CREATE TABLE AS in a database on disk, with ten declared columns: it reads, types and stores, and
nothing else. Ours hashes every file, validates every row, and materializes, checks and publishes every table. Its
models are parsed and bound once per machine, as Python compiles modules. The build that does so is shown, but not
counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Cost, machine, run, table
from bench.peers import ENVIRONMENTS, install_lock

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
PEERS = ("polars", "pandas", "chdb")
SAME = """
import sys, duckdb
counted = "SELECT * EXCLUDE in_mean_bps FROM '{}'"  # the last bit of a mean is the library's own
first, *others = map(counted.format, sys.argv[1:])
for other in others:
    if duckdb.sql(f"({first} EXCEPT {other}) UNION ALL ({other} EXCEPT {first})").fetchall():
        raise SystemExit(f"other rows: {first}, {other}")
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peers", default="none", help="a script of port_hour beside it: polars,pandas,chdb; or all")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or (full_hour(Path(scratch)) if given.full else default_data(Path(scratch)))
        peers = [name for name in (PEERS if given.peers == "all" else given.peers.split(",")) if name in PEERS]
        _compare(data, given.rounds, Path(scratch), peers)
    return 0


def full_hour(scratch: Path) -> Path:
    """Create a full-size hour with port CSVs and workbook alone; logs and jobs have their own benchmarks."""
    make = "from warehouse.sample import *; from pathlib import Path; import sys; "
    make += "write_sample(Path(sys.argv[1]), SampleOptions(full=True, hour_tables=False, utilization=False))"
    run([sys.executable, "-c", make, str(scratch / "full")])
    return fabric_of(scratch / "full", scratch)


def default_data(scratch: Path) -> Path:
    """Return the available port CSVs and workbook; logs and jobs have their own benchmarks."""
    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real")).absolute() / "zhejiang"
    if real.is_dir():
        return fabric_of(real, scratch)
    run([sys.executable, "-m", "warehouse", "sample", str(scratch / "sample")])
    return fabric_of(scratch / "sample", scratch)


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


def readers(names: Sequence[str]) -> tuple[Path, str]:
    """Return the Python of the readers' environment, created if missing, and their versions."""
    try:
        pinned = dict(line.split("==") for line in install_lock("readers", ENVIRONMENTS).split())
    except (OSError, subprocess.CalledProcessError) as error:  # no network, or no wheels for this machine
        return Path(), f"\npeers are skipped: {error}"
    return ENVIRONMENTS / "readers" / "bin" / "python", "".join(f", {name} {pinned[name]}" for name in names)


def _compare(data: Path, rounds: int, scratch: Path, peers: Sequence[str]) -> None:
    python, versions = readers(peers) if peers else (Path(), "")
    files = port_csvs(data)
    listing = scratch / "files.txt"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    size = sum(path.stat().st_size for path in files)
    print(machine() + versions)
    print(f"{data}: {len(files):,} port CSVs, {size / 1e6:,.0f} MB; {rounds} rounds in turn\n")
    environment = {"POLARS_MAX_THREADS": "1", "XDG_CACHE_HOME": str(scratch / "cache")}
    cases = {
        "bare DuckDB load": [sys.executable, "-c", BARE, str(listing), str(scratch / "bare.duckdb")],
        "warehouse build": [
            sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"),
            "--threads", "1", "--quiet",
        ],
    }  # fmt: skip
    results = [str(scratch / f"{name}.parquet") for name in peers]
    for name, result in zip(peers, results, strict=True) if python.is_file() else ():
        script = str(Path(__file__).with_name("port_hour.py"))
        cases[f"{name} port_hour"] = [str(python), script, name, str(listing), result]
    first = run(cases["warehouse build"], env=environment)
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, command in cases.items():
            shutil.rmtree(scratch / "target", ignore_errors=True)
            (scratch / "bare.duckdb").unlink(missing_ok=True)
            costs[name].append(run(command, env=environment))
    table(costs, "bare DuckDB load")
    if results and python.is_file():
        run([sys.executable, "-c", SAME, *results])
        print("\nThe scripts of port_hour have the same rows." * (len(results) > 1), end="")
    print(f"\nThe first build of all, which parsed and bound the models for those after it: {first.cpu:.2f} CPU s.")


if __name__ == "__main__":
    raise SystemExit(main())
