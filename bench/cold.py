"""Time to the first answer from a cold start: raw files and an installed program, without any cache.

    python -m bench.cold                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.cold --full              a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.cold --rounds 5

Every round starts without bytecode, without parsed models and without a target. Case "build and ask": `warehouse build`
with all checks, then one query. Case "ask first": that query as the first command after installation, with the
warehouse built. Case "ask again": the same query again. For comparison, DuckDB answers the query from a view over the
CSV files. All use one thread; the files may be in the page cache.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.adhoc import QUESTIONS
from bench.ingest import default_data, full_hour, port_csvs
from bench.measure import Cost, machine, run, table

QUESTION = QUESTIONS["ten busiest ports"]
ONE_AFTER_ANOTHER = """
import subprocess, sys
build, ask = sys.argv[1].split("\\n"), sys.argv[2].split("\\n")
subprocess.run(build, check=True), subprocess.run(ask, check=True)
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or (full_hour(Path(scratch)) if given.full else default_data(Path(scratch)))
        _compare(data, given.rounds, Path(scratch))
    return 0


def _compare(data: Path, rounds: int, scratch: Path) -> None:
    files = port_csvs(data)
    listing = scratch / "files.txt"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    print(machine())
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files):,} port CSVs, {size / 1e6:,.0f} MB; {rounds} rounds in turn\n")
    costs: dict[str, list[Cost]] = {}
    for round_ in range(rounds):
        target, out = str(scratch / f"target-{round_}"), str(scratch / "answer.csv")
        ours, single = [sys.executable, "-m", "warehouse"], ["-t", target, "--threads", "1"]
        build = [*ours, "build", "-d", str(data), *single, "--quiet"]
        ask = [*ours, "sql", *single, "-o", out, QUESTION.published]
        view = [sys.executable, str(Path(__file__).with_name("ask.py")), "csv", str(listing), QUESTION.rows, out]
        cold = {
            "DuckDB, CSV view": ("view", view),
            "build and ask": ("build", [sys.executable, "-c", ONE_AFTER_ANOTHER, "\n".join(build), "\n".join(ask)]),
            "ask first": ("ask", ask),
            "ask again": ("ask", ask),
        }
        for name, (start, command) in cold.items():
            empty = scratch / f"cache-{round_}-{start}"
            folders = {"PYTHONPYCACHEPREFIX": str(empty / "compiled"), "XDG_CACHE_HOME": str(empty / "cache")}
            env = {**folders, "PYTHONDONTWRITEBYTECODE": ""}  # cache bytecode, as after installation
            costs.setdefault(name, []).append(run(command, env=env))
    table(costs, "DuckDB, CSV view")


if __name__ == "__main__":
    raise SystemExit(main())
