"""Memory of a build, and the cost of less memory: `--memory` from little to the default, runs in turn.

    python -m bench.memory                      the fabric's files at hand (WAREHOUSE_REAL), else the sample
    python -m bench.memory --full               a synthetic hour of 24 switches
    python -m bench.memory --memory 200MB 1GB --threads 1 2

`--memory` limits the engine's buffers; Python and the arrays of Python models are additional. Peak is the largest
resident size of the process. Spill is the largest size of temporary files at a time. The model shown is the one that
spilled most or, without a spill, the one that used most memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.ingest import default_data, full_hour
from bench.measure import machine

MB = 1e6


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--memory", nargs="+", default=["150MB", "300MB", "1GB", "3GB"])
    options.add_argument("--threads", nargs="+", default=["1", "2"])
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--full", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        data = full_hour(scratch) if given.full else default_data(scratch)
        cases = [(threads, memory) for threads in given.threads for memory in given.memory]
        build(data, scratch, *cases[-1])  # warm-up: parses and binds the models for later builds
        found: dict[tuple[str, str], list[dict[str, Any] | str]] = {case: [] for case in cases}
        for _ in range(given.rounds):
            for case in cases:
                found[case].append(build(data, scratch, *case))
    print(machine())
    print(f"{given.rounds} rounds in turn\n")
    print(f"{'threads':>7}{'--memory':>10}{'CPU s':>8}{'peak MB':>9}{'spill MB':>10}   model")
    for (threads, memory), said in found.items():
        profiles = [one for one in said if isinstance(one, dict)]
        if len(profiles) < len(said):
            print(f"{threads:>7}{memory:>10}  too little: {next(one for one in said if isinstance(one, str))}")
            continue
        cpu = statistics.median(sum(one["cpu"] for one in (*of["parts"], *of["outside"])) for of in profiles)
        peak = max(of["peak"] for of in profiles)
        most = max(profiles[-1]["parts"], key=lambda one: (one["spill"], one["memory"]))
        sizes = f"{peak / MB:>9.0f}{most['spill'] / MB:>10.0f}"
        print(f"{threads:>7}{memory:>10}{cpu:>8.2f}{sizes}   {most['model']} ({most['memory'] / MB:.0f} MB)")
    return 0


def build(data: Path, scratch: Path, threads: str, memory: str) -> dict[str, Any] | str:
    """Return the profile of a build from nothing, or its error if the memory is too small."""
    shutil.rmtree(scratch / "target", ignore_errors=True)
    done = subprocess.run(
        [
            sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"),
            "--threads", threads, "--memory", memory, "--profile", "--json",
        ],
        env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return done.stderr.splitlines()[0].rpartition(": ")[2]
    profile: dict[str, Any] = json.loads(done.stdout)["profile"]
    return profile


if __name__ == "__main__":
    raise SystemExit(main())
