"""What each kernel saves: wall time of a whole build with all kernels, and with each of them off, in turn.

    python -m bench.kernels DIR            port counters: a folder with trafficinfo/ of one or more clusters
    python -m bench.kernels --gb 0.5       wide utilization files, made first (bench/unpivot.py)

A kernel stays if its wall time is at least 15 % below that of the build without it. A kernel is off if its model, in a
project folder of its own, is the shipped one without the line `kernel:`. Every build has a cold target and parsed
models.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.ingest import fabric_of
from bench.measure import machine
from bench.unpivot import make_files
from bench.wall import Course, course, median
from warehouse.base.shipped import shipped_root

_KERNEL = re.compile(r"^kernel: (\w+).*\n", re.MULTILINE)
_WIDE = "utilization"
"""Beginning of the names of kernels that read wide files; the others read port counters."""


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, nargs="?", help="folder with trafficinfo/ of one or more clusters")
    options.add_argument("--gb", type=float, default=0.5, help="size of the utilization files, without a folder")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        models = {name: path for name, path in _models().items() if bool(given.data) != name.startswith(_WIDE)}
        if given.data:
            data = fabric_of(given.data.absolute(), scratch)
        else:
            data = scratch / "utilization"
            with ProcessPoolExecutor(1) as other:  # a child's peak is at least the memory of the process that starts it
                other.submit(make_files, data / "kalos", given.gb, given.gb / 4, 2344).result()
        size = sum(path.stat().st_size for path in data.rglob("*.csv"))
        print(f"{machine()}\n{size / 1e6:,.0f} MB; {given.threads} threads; {given.rounds} rounds\n")
        build = [sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"), "--quiet"]
        build += ["--threads", str(given.threads)]
        cases = {"all kernels": build}
        for name, path in models.items():
            cases[f"without {name}"] = [*build, "--project", str(_project_without(path, scratch / name))]
        _print(_measured(cases, given.rounds, scratch))


def _models() -> dict[str, Path]:
    """Return the shipped models with a kernel, by the kernel's name."""
    found = {}
    for path in sorted((shipped_root() / "models").rglob("*.sql")):
        if named := _KERNEL.search(path.read_text(encoding="utf-8")):
            found[named[1]] = path
    return found


def _project_without(model: Path, project: Path) -> Path:
    """Write a project with the model without its kernel."""
    copy = project / model.relative_to(shipped_root())
    copy.parent.mkdir(parents=True)
    copy.write_text(_KERNEL.sub("", model.read_text(encoding="utf-8")), encoding="utf-8")
    return project


def _measured(cases: Mapping[str, Sequence[str]], rounds: int, scratch: Path) -> dict[str, list[Course]]:
    found: dict[str, list[Course]] = {name: [] for name in cases}
    for round_ in range(rounds + 1):
        for name, command in cases.items():
            shutil.rmtree(scratch / "target", ignore_errors=True)
            one = course(command, {"XDG_CACHE_HOME": str(scratch / "cache")})
            if round_:  # the first round reads the files from disk, and parses the models
                found[name].append(one)
    return found


def _print(found: Mapping[str, Sequence[Course]]) -> None:
    """Print medians, and what all kernels save beside each case."""
    of_all = median(found["all kernels"])
    print(f"{'':<30}{'wall s':>8}{'CPU s':>8}{'peak MB':>9}{'saves wall':>12}{'CPU':>6}   wall s of each")
    for name, runs in found.items():
        cost = median(runs)
        each = " ".join(f"{one.wall:.1f}" for one in runs)
        saved = f"{1 - of_all.wall / cost.wall:>12.0%}{1 - of_all.cpu / cost.cpu:>6.0%}"
        print(f"{name:<30}{cost.wall:>8.2f}{cost.cpu:>8.2f}{cost.peak_mb:>9.0f}{saved}   {each}")


if __name__ == "__main__":
    main()
