"""Both engines on the same files: CPU and wall time, cell by cell the same, and where Spark overtakes one machine.

    python -m bench.spark                          the real files, if they are at hand, and hours of a synthetic day
    python -m bench.spark --hours 24 --master spark://head:7077

Each build is a whole process into an empty target. CPU is that of its process tree, Java and Python workers included;
with --master what the cluster's workers use is not in it, and only wall times are compared. From two sizes of the
synthetic day follows what one more hour costs each engine. What is beyond the sizes that were built is reckoned from
that: builds of many hours are even over the cores, and what does not grow with the hours is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Cost, machine, run
from warehouse.diff.cells import TOLERANCE, Cells, compare_all
from warehouse.diff.sides import part_files
from warehouse.manifest import last_manifest

TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Print the tables; 1 where a cell differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--real", type=Path, default=Path(os.environ.get("WAREHOUSE_REAL", "data/real")))
    options.add_argument("--hours", type=int, default=4, help="hours of the synthetic day (default 4)")
    options.add_argument("--master", help="a cluster; this machine's cores, where left out")
    given = options.parse_args()
    print(machine(), flush=True)
    good = True
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        if given.real.is_dir():
            good &= _compare("real files", given.real, scratch / "real", given.master)[2]
        sizes = sorted({1, max(2, given.hours)})
        costs = []
        for hours in sizes:
            data = scratch / f"sample-{hours}"
            run([sys.executable, "-m", "warehouse", "sample", str(data), "--hours", str(hours)])
            costs.append(_compare(f"{hours} synthetic hours", data, scratch / f"target-{hours}", given.master))
            good &= costs[-1][2]
        _beyond(sizes, costs, cluster=bool(given.master))
    return 0 if good else 1


def _compare(name: str, data: Path, target: Path, master: str | None) -> tuple[Cost, Cost, bool]:
    """Build with both engines, print what it cost and whether all cells are equal."""
    found: list[Cost] = []
    for engine in ("duckdb", "spark"):
        options = ["--engine", engine, *(["--master", master] if master and engine == "spark" else [])]
        command = [sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", f"{target}-{engine}", "--quiet"]
        found.append(_tree(command + options))
    ours, theirs = found
    cells = _cells(Path(f"{target}-duckdb"), Path(f"{target}-spark"))
    print(f"\n{name}, {sum(path.stat().st_size for path in data.rglob('*') if path.is_file()) / 1e6:,.0f} MB")
    print(f"  {'':8}{'CPU s':>10}{'wall s':>10}")
    for engine, cost in zip(("DuckDB", "Spark"), found, strict=True):
        print(f"  {engine:8}{cost.cpu:10.1f}{cost.wall:10.1f}")
    print(f"  Spark takes {theirs.cpu / ours.cpu:.1f} x the CPU, {theirs.wall / ours.wall:.1f} x the time")
    print(
        f"  {cells.cells:,} cells in parts with other bytes: {cells.different:,} differ; {cells.close:,} doubles "
        f"differ by at most {cells.worst:.1e} of themselves (allowed: {TOLERANCE:g})",
        flush=True,
    )
    return ours, theirs, not cells.different


def _cells(ours: Path, theirs: Path) -> Cells:
    """Compare the parts with other bytes; one that only one engine made is a difference of one cell."""
    sides = []
    for target in (ours, theirs):
        manifest = last_manifest(target)
        assert manifest is not None
        parts = part_files(target, manifest)
        sides.append({(model, name): part for model, those in parts.items() for name, part in those.items()})
    both = sides[0].keys() & sides[1].keys()
    pairs = [(sides[0][key], sides[1][key]) for key in both if sides[0][key].digest != sides[1][key].digest]
    lone = len(sides[0].keys() ^ sides[1].keys())
    return sum(compare_all((one.path, other.path) for one, other in pairs), Cells(lone, different=lone))


def _beyond(sizes: Sequence[int], costs: Sequence[tuple[Cost, Cost, bool]], *, cluster: bool) -> None:
    """What one more hour costs, and how many cores a cluster needs to be faster than one machine."""
    more = sizes[-1] - sizes[0]
    (first, first_of_spark, _), (last, last_of_spark, _) = costs[0], costs[-1]
    per_hour = (last.cpu - first.cpu) / more, (last_of_spark.cpu - first_of_spark.cpu) / more
    print(f"\nOne more synthetic hour: DuckDB {per_hour[0]:.1f} CPU s, Spark {per_hour[1]:.1f} CPU s")
    if cluster or per_hour[0] <= 0:
        print("  (without the CPU of the cluster's workers: build without --master for the table below)")
        return
    factor = per_hour[1] / per_hour[0]
    print(f"Spark overtakes one machine with more than {factor:.1f} times its cores (reckoned, for many hours):")
    for cores in (8, 32, 96):
        day = 24 * per_hour[0] / cores
        print(
            f"  {cores:3} cores build a synthetic day in {day:6.1f} s; Spark needs {factor * cores:5.0f} cores for that"
        )


def _tree(command: Sequence[str]) -> Cost:
    """Run a command; CPU of all processes below it, those included that nobody waits for."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    used: dict[int, float] = {}
    while process.poll() is None:
        for pid in _below(process.pid):
            used[pid] = max(used.get(pid, 0.0), _seconds(pid))
        time.sleep(0.2)
    assert process.stderr is not None
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{process.stderr.read()}")
    return Cost(sum(used.values()), 0.0, time.perf_counter() - started)


def _below(pid: int) -> list[int]:
    found, ahead = [], [pid]
    while ahead:
        one = ahead.pop()
        found.append(one)
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                ahead += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # it has ended
    return found


def _seconds(pid: int) -> float:
    """User and system seconds of a process so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
