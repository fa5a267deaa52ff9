"""Cost of a build with nothing to do as a whole process, compared with an empty process.

    python -m bench.noop                       the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.noop --data DIR --rounds 50

The build compares sizes and times of all raw files, sources, parts and the published file with those of the last one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.ingest import real_or_sample
from bench.measure import Case, in_turn, machine, run, table


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--rounds", type=int, default=21)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        data, target = given.data or real_or_sample(scratch), scratch / "target"
        build = [str(Path(sys.executable).with_name("warehouse")), "build", "-d", str(data), "-t", str(target)]
        run(Case([*build, "--quiet"]))
        cases = {
            "python -c pass": Case([sys.executable, "-c", "pass"]),
            "warehouse build": Case(build),
        }
        # the first round compiles modules
        costs = in_turn(cases, given.rounds, uncounted=1)
        parts = sum(1 for _ in (target / "parts").rglob("*.parquet"))
        files = sum(len(names) for _, _, names in os.walk(data, followlinks=True))
    print(machine())
    print(f"{files:,} files in the data folder, {parts:,} parts; {given.rounds} rounds in turn\n")
    table(costs, "python -c pass")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
