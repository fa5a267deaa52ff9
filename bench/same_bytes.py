"""Equal bytes of every part at 1 to 4 threads, with little memory, and on Dask; exit status 1 where one differs.

    python -m bench.same_bytes                 the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.same_bytes DIR

Each way builds from nothing.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from bench.ingest import real_or_sample
from bench.measure import Case, building, run
from warehouse.base import hashing

WAYS = (
    ("--threads", "1"), ("--threads", "2"), ("--threads", "3"), ("--threads", "4"),
    ("--threads", "2", "--memory", "300MB"), ("--threads", "4", "--memory", "1500MB"),
    ("--scheduler", "local:2"),
)  # fmt: skip


def main() -> int:
    """Build each way; compare all parts with the first build's."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", metavar="DIR", nargs="?", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        data = given.data.absolute() if given.data else real_or_sample(Path(folder))
        expected: dict[str, str] = {}
        differ = 0
        for way in WAYS:
            found = _parts(data, Path(folder, "target"), way)
            expected = expected or found  # the first way, one thread
            others = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
            differ += len(others)
            print(f"{' '.join(way):<32}{len(found):>5} parts, {len(others)} differ", *others, flush=True)
    return 1 if differ else 0


def _parts(data: Path, target: Path, way: tuple[str, ...]) -> dict[str, str]:
    """Build and return the hash of each part."""
    shutil.rmtree(target, ignore_errors=True)
    run(Case(building(data, target, *way)))
    files = sorted((target / "parts").rglob("*.parquet"))
    return {path.relative_to(target).as_posix(): hashing.of_file(path) for path in files}


if __name__ == "__main__":
    raise SystemExit(main())
