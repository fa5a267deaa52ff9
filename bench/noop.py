"""Cost of a build with nothing to do as a whole process, compared with a bare hash check and an empty process.

    python -m bench.noop                       the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.noop --data DIR --rounds 50

The bare check hashes as many files as there are models and compares them with a list in JSON. Ours compares sizes and
times of all raw files, sources, parts and the published file with those of the last build.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench.measure import Cost, machine, run

BARE = """
import argparse, hashlib, json, pathlib, sys
options = argparse.ArgumentParser()
options.add_argument("listing")
listing = pathlib.Path(options.parse_args().listing)
known = json.loads(listing.read_text()) if listing.exists() else {}
found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in map(pathlib.Path, known)}
print("nothing to do" if found == known else "build")
"""
LIST = """
import hashlib, json, pathlib, sys
files = sorted(pathlib.Path(sys.argv[1]).rglob("*.sql"))
listing = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
pathlib.Path(sys.argv[2]).write_text(json.dumps(listing))
"""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--rounds", type=int, default=21)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        data = given.data or default_data(scratch)
        listing, target = str(scratch / "listing.json"), scratch / "target"
        build = ["warehouse", "build", "-d", str(data), "-t", str(target)]
        run([*build, "--quiet"])
        run([sys.executable, "-c", LIST, str(Path(__file__).parents[1] / "models"), listing])
        cases = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "bare hash check": [sys.executable, "-c", BARE, listing],
            "warehouse build": build,
        }
        costs: dict[str, list[Cost]] = {name: [] for name in cases}
        for _ in range(given.rounds):
            for name, command in cases.items():
                costs[name].append(run(command))
        parts = sum(1 for _ in (target / "parts").rglob("*.parquet"))
        files = sum(len(names) for _, _, names in os.walk(data, followlinks=True))
    print(machine())
    print(f"{files:,} files in the data folder, {parts:,} parts; {given.rounds} rounds in turn\n")
    print(f"{'':<20}{'CPU s':>8}{'least':>8}{'most':>8}{'peak MB':>9}{'wall s':>8}")
    for name, found in costs.items():
        cpu = [one.cpu for one in found]
        wall = statistics.median(one.wall for one in found)
        peak = max(one.peak_mb for one in found)
        print(f"{name:<20}{statistics.median(cpu):>8.3f}{min(cpu):>8.3f}{max(cpu):>8.3f}{peak:>9.0f}{wall:>8.2f}")
    return 0


def default_data(scratch: Path) -> Path:
    """Return the real files at hand, else a sample."""
    real = Path(os.environ.get("WAREHOUSE_REAL", "data/real")).absolute()
    if real.is_dir():
        return real
    run([sys.executable, "-m", "warehouse", "sample", str(scratch / "sample")])
    return scratch / "sample"


if __name__ == "__main__":
    raise SystemExit(main())
