"""Cost of commands as whole processes, run in turn: CPU seconds and peak memory of the process tree."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """A command, and what to do before each of its runs."""

    command: Sequence[str]
    before: Callable[[], object] = lambda: None
    env: Mapping[str, str] = {}
    cwd: Path | None = None


class Cost(NamedTuple):
    """Cost of one run."""

    cpu: float
    """User and system seconds, including children."""
    peak_mb: float
    """Peak resident size of the largest process."""
    wall: float


def run(case: Case) -> Cost:
    """Run a command to its end and return its cost; its exit status must be 0."""
    case.before()
    started = time.perf_counter()
    with subprocess.Popen(
        case.command, cwd=case.cwd, env={**os.environ, **case.env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        stderr = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)  # the only call that tells the cost of one child
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = stderr.decode(errors="replace")
        raise SystemExit(f"{' '.join(case.command)} ended with {process.returncode}:\n{said}")
    unit = 1024 if sys.platform != "darwin" else 1024**2
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit, time.perf_counter() - started)


def building(data: Path, target: Path, *options: str) -> list[str]:
    """Return the command of a build."""
    return [sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(target), "--quiet", *options]


def in_turn(cases: Mapping[str, Case], rounds: int, *, uncounted: int = 0) -> dict[str, list[Cost]]:
    """Run the cases in turn, so that other work on the machine meets all alike."""
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for number in range(-uncounted, rounds):
        for name, case in cases.items():
            cost = run(case)
            if number >= 0:
                costs[name].append(cost)
    return costs


def medians(runs: Sequence[Cost]) -> Cost:
    """Return median CPU and wall time, and the largest peak."""
    cpu, peaks, wall = zip(*runs, strict=True)
    return Cost(statistics.median(cpu), max(peaks), statistics.median(wall))


def table(costs: Mapping[str, Sequence[Cost]], of: str, width: int = 20) -> None:
    """Print a line per case: medians, and the ratio of CPU to that of the case `of`."""
    base = medians(costs[of])
    print(f"{'':<{width}}{'CPU s':>8}{'ratio':>8}{'peak MB':>9}{'wall s':>8}   CPU s of each run")
    for name, found in costs.items():
        cost = medians(found)
        each = " ".join(f"{one.cpu:.2f}" for one in found)
        ratio = cost.cpu / base.cpu
        print(f"{name:<{width}}{cost.cpu:>8.2f}{ratio:>8.2f}{cost.peak_mb:>9.0f}{cost.wall:>8.2f}   {each}")


def machine() -> str:
    """Return the machine and the versions, in one line; large imports would count in the peak of our children."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, duckdb {version('duckdb')}"
