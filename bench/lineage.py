"""Cost of the lineage of every column of every model, from files to ends, without a cache.

    python -m bench.lineage

One process: start of Python, imports, reading and parsing of all models, and the whole path of each column.
"""

from __future__ import annotations

import sys

from bench.measure import machine, medians, run

TRACE = """
from pathlib import Path
from warehouse.lineage.column_lineage import load
from warehouse.project.project import Project
columns = load(Project.open(), Path("no target, no cache"))
for model, blocks in columns.blocks.items():
    for column in blocks[""].columns:
        columns.trace(model, column)
"""
ROUNDS = 5


def main() -> int:
    """Print one line."""
    from pathlib import Path

    from warehouse.lineage.column_lineage import load
    from warehouse.project.project import Project

    found = load(Project.open(), Path("no target, no cache"))
    count = sum(len(blocks[""].columns) for blocks in found.blocks.values())
    cost = medians([run([sys.executable, "-c", TRACE]) for _ in range(ROUNDS)])
    print(machine())
    print(f"{count:,} columns of {len(found.blocks)} models: {cost.cpu:.2f} s CPU, median of {ROUNDS} runs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
