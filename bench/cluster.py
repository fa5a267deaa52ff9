"""Cost of a build by shares and on Dask, beside a build on this machine; the parts must have equal bytes.

    python -m bench.cluster                          48 tiny hours; 1, 2 and 4 workers; 20 kills of workers
    python -m bench.cluster --hours 6 --workers 2 --kills 3
    python -m bench.cluster --seconds 3600           hours of full length (three leaves of 24)
    python -m bench.cluster --real 10 --hours 12     the real hour at hand, cut to the first tenth of each file's rows

A tiny hour is that of `bench.month`: three leaves of the sample. The hours are one hour with shifted times. Real hours
have eight times as many files, and 60 times as many rows a file as a tiny hour of one minute. Each case is a process
with its children, and builds a target of its own from nothing. A task is an empty function, to see what Dask itself
costs. CPU counts all processes, also orphans. Bytecode of modules is cached, as after installation.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.ingest import default_data
from bench.measure import Cost, machine, run
from bench.month import Month, tiny_hour

_EMPTY_TASKS = 500
_CHILD_SUBREAPER = 36
"""Option of prctl(2): processes whose parent has ended become children of this one."""


def digests(target: Path) -> dict[str, str]:
    """Return the hash of each part, and the build id. The rows of raw.files hold the folder of the target."""
    paths = (path for path in target.glob("parts/*/*/*.parquet") if "raw.files" not in path.parts)
    found = {str(path.relative_to(target)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return found | {"build": (target / "builds" / "current").read_text()}


def build(month: Month, target: Path, *options: str) -> Cost:
    """Build a target, or a share of it, and return the cost."""
    places = ["-d", str(month.place / "release"), "-t", str(target), "--quiet"]
    before = _cpu_of_children()
    cost = run([sys.executable, "-m", "warehouse", "build", *places, *options], env=month.environment)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return replace(cost, cpu=_cpu_of_children() - before)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cut_hour(scratch: Path, every: int) -> Path:
    """Copy the real hour at hand with the first rows of each file, one in `every`; return its folder."""
    (cluster,) = (path for path in default_data(scratch).iterdir() if path.is_dir())
    hour = min(path for path in (cluster / "trafficinfo").iterdir() if path.name.isdigit())
    place = scratch / "cut" / cluster.name / "trafficinfo" / hour.name
    for source in hour.rglob("*.csv"):
        lines = source.read_bytes().splitlines(keepends=True)
        path = place / source.relative_to(hour)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines[: 1 + max(1, len(lines) // every)]))
    for workbook in cluster.glob("*.xlsx"):
        shutil.copy(workbook, place.parents[1])
    return place


def by_shares(month: Month, target: Path, count: int) -> list[tuple[str, Cost]]:
    """Build by shares, one after the other, and publish."""
    shares = [build(month, target, "--parts-only", "--share", f"{one}/{count}") for one in range(1, count + 1)]
    last = build(month, target)
    together = Cost(
        sum(one.cpu for one in (*shares, last)),
        max(one.peak_mb for one in (*shares, last)),
        max(one.wall for one in shares) + last.wall,
    )
    return [(f"{count} shares", together), ("  of this, publishing", last)]


def children(process: int) -> list[int]:
    """Return the processes that run Dask's workers, which are children of the process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and "spawn_main" in (path / "cmdline").read_text():
                found.append(int(path.name))
    return found


def with_kills(month: Month, target: Path, workers: int, kills: int, seconds: float) -> tuple[int, float]:
    """Build while workers are killed at random; return how many were killed, and the seconds."""
    places = ["-d", str(month.place / "release"), "-t", str(target), "--quiet", "--scheduler", f"local:{workers}"]
    started, killed, chance = time.perf_counter(), 0, random.Random(5)
    with subprocess.Popen(
        [sys.executable, "-m", "warehouse", "build", *places], env={**os.environ, **month.environment}
    ) as process:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.2, 1.2) * seconds / max(1, kills))
            found = children(process.pid)
            if killed < kills and found and (target / "cache" / "shares").exists():  # the first share has begun
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(found), signal.SIGKILL)
                    killed += 1
    assert process.returncode == 0, process.returncode
    return killed, time.perf_counter() - started


def task_milliseconds() -> tuple[float, float]:
    """Return what an empty task costs: one after the other, and of many at once."""
    distributed: Any = import_module("distributed")
    with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        client.submit(threading.active_count).result()
        started = time.perf_counter()
        for number in range(_EMPTY_TASKS // 5):
            client.submit(abs, number, pure=False).result()
        one = (time.perf_counter() - started) / (_EMPTY_TASKS // 5)
        started = time.perf_counter()
        client.gather(client.map(abs, range(_EMPTY_TASKS), pure=False))
        return 1000 * one, 1000 * (time.perf_counter() - started) / _EMPTY_TASKS


def main() -> int:
    """Print a line per case."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=int, default=48)
    options.add_argument("--seconds", type=int, default=60, help="length of an hour's records")
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--real", type=int, metavar="N", help="the real hour, cut to one row in N of each file")
    options.add_argument("--scratch", type=Path, help="where the hours are made; kept")
    given = options.parse_args()
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = given.scratch or Path(folder)
        hour = cut_hour(scratch, given.real) if given.real else tiny_hour(scratch, given.seconds)
        month = Month(hour, scratch / f"hours-{given.hours}", given.hours, scratch / "cache")
        month.lay_out()
        print(f"{machine()}\n\n{'':<28}{'CPU s':>8}{'ratio':>7}{'wall s':>8}  bytes", flush=True)
        targets = iter(Path(folder, f"target-{number}") for number in range(100))
        build(month, next(targets), "--parts-only", "--share", f"1/{month.count}")  # parse the models once
        base, cost = next(targets), None
        wanted: dict[str, str] = {}
        local = build(month, base, "--threads", "1")

        def show(name: str, cost: Cost, target: Path) -> None:
            found = digests(target)
            same = "equal" if not wanted or found == wanted else "DIFFERENT"
            print(f"{name:<28}{cost.cpu:>8.1f}{cost.cpu / local.cpu:>7.2f}{cost.wall:>8.1f}  {same}", flush=True)

        show("local, 1 thread", local, base)
        wanted = digests(base)
        target = next(targets)
        show("local, 4 threads", build(month, target, "--threads", "4"), target)
        target = next(targets)
        for name, cost in by_shares(month, target, 3):
            show(name, cost, target)
        for workers in given.workers:
            target = next(targets)
            cost = build(month, target, "--scheduler", f"local:{workers}", "--threads", "1")
            show(f"Dask, {workers} workers", cost, target)
        if given.kills and cost:
            target = next(targets)
            killed, seconds = with_kills(month, target, given.workers[-1], given.kills, cost.wall)
            same = "equal" if digests(target) == wanted else "DIFFERENT"
            print(f"{f'Dask, {killed} kills':<28}{'':>15}{seconds:>8.1f}  {same}", flush=True)
        one, many = task_milliseconds()
        print(f"\nan empty task: {one:.1f} ms one after the other, {many:.1f} ms of {_EMPTY_TASKS} at once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
