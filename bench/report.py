"""What the report and the site cost, on a built warehouse; runs in turn.

    python -m bench.report                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.report --data DIR --rounds 5

Beside them: a program that imports the libraries which draw, and ends. Ratios are to that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.measure import Cost, machine, run, table
from bench.noop import default_data

START = "import duckdb, altair, vl_convert"


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        ours = [sys.executable, "-m", "warehouse"]
        target, page = ["-t", str(scratch / "target")], str(scratch / "report.html")
        run([*ours, "build", "-d", str(given.data or default_data(scratch)), *target, "--quiet"])
        cases = {
            START: [sys.executable, "-c", START],
            "warehouse report": [*ours, "report", page, *target],
            "warehouse report --figures": [*ours, "report", page, *target, "--figures", str(scratch / "figures")],
            "warehouse docs": [*ours, "docs", str(scratch / "site"), *target],
        }
        costs: dict[str, list[Cost]] = {name: [] for name in cases}
        for _ in range(given.rounds):
            for name, command in cases.items():
                costs[name].append(run(command))
        sizes = [Path(page).stat().st_size, *(sum(path.stat().st_size for path in (scratch / name).rglob("*.*"))
                                              for name in ("figures", "site"))]  # fmt: skip
    print(machine())
    said = "report {:.1f} MB, its figures {:.1f} MB, site {:.1f} MB".format(*(size / 1e6 for size in sizes))
    print(f"{said}; {given.rounds} rounds in turn\n")
    table(costs, START, width=36)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
