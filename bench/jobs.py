"""Cost of the job metrics of a synthetic AcmeTrace of real size, compared with bare DuckDB queries on the same CSVs.

    python -m bench.jobs                        818,327 jobs of Seren and 62,413 of Kalos, generated first
    python -m bench.jobs --rounds 5 --data DIR

The bare queries load both CSVs with declared columns into one table, with times as TIMESTAMPTZ. They compute the
content of the job tables: totals, shares by size, type and state, distributions of duration and wait at powers of two,
box quartiles, arrivals, GPUs in use per ten minutes. Nothing is sorted, checked or stored. Ours is `warehouse build` of
the same files as a whole process: every file hashed, every row validated, every table written, checked and published.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import Cost, machine, run, table

SEREN, KALOS = 818_327, 62_413


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="the folder that holds data/job_trace/")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        data = given.data or _made(Path(scratch) / "acme")
        _compare(data, given.rounds, Path(scratch))
    return 0


def _made(folder: Path) -> Path:
    make = "from warehouse.sample.acme_jobs import write_acme; from pathlib import Path; import sys; "
    make += f"write_acme(Path(sys.argv[1]), 7, seren={SEREN}, kalos={KALOS})"
    run([sys.executable, "-c", make, str(folder)])
    return folder


def _compare(data: Path, rounds: int, scratch: Path) -> None:
    files = sorted(data.rglob("trace_*.csv"))
    print(machine())
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files)} job CSVs, {size / 1e6:,.0f} MB; {rounds} rounds in turn\n")
    cases = {
        "bare DuckDB queries": [sys.executable, "-m", "bench.jobs_bare", str(data), str(scratch / "bare.duckdb")],
        "warehouse build": [
            sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"),
            "--threads", "1", "--quiet",
        ],
    }  # fmt: skip
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, command in cases.items():
            shutil.rmtree(scratch / "target", ignore_errors=True)
            (scratch / "bare.duckdb").unlink(missing_ok=True)
            costs[name].append(run(command))
    table(costs, "bare DuckDB queries")


if __name__ == "__main__":
    raise SystemExit(main())
