"""Cost of a build with nothing to do as a whole process, compared with a bare hash check and an empty process.

    python -m bench.noop                       the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.noop --data DIR --rounds 50

The bare check hashes as many files as there are models and compares them with a list in JSON. Ours compares sizes and
times of all raw files, sources, parts and the published file with those of the last build.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.ingest import real_or_sample
from bench.measure import in_turn, machine, run, table

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
        data = given.data or real_or_sample(scratch)
        listing, target = str(scratch / "listing.json"), scratch / "target"
        build = ["warehouse", "build", "-d", str(data), "-t", str(target)]
        run([*build, "--quiet"])
        run([sys.executable, "-c", LIST, str(Path(__file__).parents[1] / "models"), listing])
        cases = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "bare hash check": [sys.executable, "-c", BARE, listing],
            "warehouse build": build,
        }
        costs = in_turn(cases, given.rounds)
        parts = sum(1 for _ in (target / "parts").rglob("*.parquet"))
        files = sum(len(names) for _, _, names in os.walk(data, followlinks=True))
    print(machine())
    print(f"{files:,} files in the data folder, {parts:,} parts; {given.rounds} rounds in turn\n")
    table(costs, "python -c pass")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
