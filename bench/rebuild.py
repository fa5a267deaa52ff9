"""Cost of small incremental builds: one leaf model edited, or one new hour.

    python -m bench.rebuild                    leaf: the real files (or the sample); hours: a sample of eleven
    python -m bench.rebuild --rounds 9

A leaf is a model that no other model reads; its SELECT changes, its columns do not. The new hour is from a synthetic
release, with all its tables. It is compared with a first build of that hour alone, in a target of its own. CPU seconds
are of the whole process.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Cost, machine, run
from bench.noop import default_data

LEAF = "models/metrics/spine_hour.sql"
OLD, NEW = "END AS over_mean", "END + {0} - {0} AS over_mean"
HOURS = 11


def main() -> int:
    """Print both tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="for the leaf")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        show("one leaf edited", leaf(scratch, given.data or default_data(scratch), given.rounds))
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        alone, beside = hour(Path(folder), given.rounds)
        show("an hour alone", alone)
        show(f"the same beside {HOURS - 1}", beside)
        ratio = statistics.median(one.cpu for one in beside) / statistics.median(one.cpu for one in alone)
        print(f"{'ratio':<22}{ratio:>8.2f}")
    return 0


def show(name: str, costs: Sequence[Cost]) -> None:
    """Print a line of the table."""
    each = " ".join(f"{one.cpu:.2f}" for one in costs)
    cpu, wall = (statistics.median(values) for values in ([one.cpu for one in costs], [one.wall for one in costs]))
    print(f"{name:<22}{cpu:>8.2f} s CPU {max(one.peak_mb for one in costs):>6.0f} MB {wall:>7.2f} s wall   {each}")


def leaf(scratch: Path, data: Path, rounds: int) -> list[Cost]:
    """Measure builds after edits of a leaf, in a project of its own."""
    project, home = scratch / "project", Path(__file__).parents[1]
    for below in ("models", "sql"):
        shutil.copytree(home / below, project / below)
    (project / "data").mkdir()
    for path in (*(home / "data").glob("*.csv"), *(home / "data").glob("*.yaml")):
        shutil.copy(path, project / "data")
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    build = command(data, scratch / "target", "--project", str(project))
    run(build)
    path, costs = project / LEAF, []
    text = path.read_text(encoding="utf-8")
    for number in range(1, rounds + 1):
        path.write_text(text.replace(OLD, NEW.format(number)), encoding="utf-8")
        costs.append(run(build))
    return costs


def hour(scratch: Path, rounds: int) -> tuple[list[Cost], list[Cost]]:
    """Measure builds of one hour, alone and as an addition to a built release."""
    whole, alone, most = scratch / "whole", scratch / "alone", scratch / "most"
    run([sys.executable, "-m", "warehouse", "sample", str(whole), "--hours", str(HOURS)])
    folders = sorted(path for path in whole.glob("*/*/trafficinfo/*") if path.is_dir())
    chosen = folders[-1].name
    for there, hours in ((alone, {chosen}), (most, {path.name for path in folders} - {chosen})):
        shutil.copytree(whole, there, ignore=lambda _, names, hours=hours: [
            name for name in names if name.isdigit() and name not in hours
        ])  # fmt: skip
    run(command(most, scratch / "built"))
    cluster = folders[0].parent.relative_to(whole)
    shutil.copytree(whole / cluster / chosen, most / cluster / chosen)
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(rounds):
        for found, data, start in ((costs[0], alone, None), (costs[1], most, scratch / "built")):
            target = scratch / "target"
            shutil.rmtree(target, ignore_errors=True)
            if start:
                shutil.copytree(start, target)
            found.append(run(command(data, target)))
    return costs


def command(data: Path, target: Path, *options: str) -> list[str]:
    """Return the command of a quiet build."""
    return [sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(target), "--quiet", *options]


if __name__ == "__main__":
    raise SystemExit(main())
