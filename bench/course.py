"""Where each second of a build goes: the cores in use, and the tasks that run.

    python -m bench.course DIR                a folder with trafficinfo/ of one or more clusters
    python -m bench.course DIR --threads 4 --rounds 2

A line for each second of the wall time of the last round, the others only warm up: the mean number of cores that all
processes of the build use, and what runs, with its share of the second. `?` marks the checks of a part that was made
before. What each model costs in CPU is in `warehouse build --profile`, which makes one after the other.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.ingest import fabric_of
from bench.measure import machine
from bench.wall import SAMPLE_SECONDS, usage

BUILD = """
import json, sys, time
from pathlib import Path
from warehouse.base.settings import settle
from warehouse.runner import part_maker
from warehouse.runner.build import build
from warehouse.runner.reporter import Reporter

spans = []

def timed(make, mark):
    def inner(self, key):
        began = time.time()
        try:
            return make(self, key)
        finally:
            spans.append((key.model.partition(".")[2] + mark, began, time.time()))
    return inner

class Stages(Reporter):
    name, began = "start", float(sys.argv[4])

    def stage_started(self, name):
        spans.append((self.name, self.began, time.time()))
        self.name, self.began = name, time.time()

    def started(self, parts):
        self.stage_started("")

    def published(self):
        self.stage_started("end")

part_maker.PartMaker.make = timed(part_maker.PartMaker.make, "")
part_maker.PartMaker.check = timed(part_maker.PartMaker.check, "?")
stages = Stages()
build(settle({"data": [sys.argv[1]], "target": sys.argv[2], "threads": int(sys.argv[3])}), stages)
stages.stage_started("")
print(json.dumps([span for span in spans if span[0]]))
"""
"""Build that prints the time in which each stage and task runs."""


class Span(NamedTuple):
    """Stage or task, and the time in which it runs."""

    name: str
    began: float
    ended: float

    def within(self, low: float, high: float) -> float:
        """Return the part of an interval in which it runs."""
        return max(0.0, min(high, self.ended) - max(low, self.began)) / (high - low)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=2)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        data, target = fabric_of(given.data.absolute(), Path(folder)), Path(folder, "target")
        for _ in range(given.rounds):
            shutil.rmtree(target, ignore_errors=True)
            spans, samples = _build(data, target, given.threads)
    print(f"{machine()}; {given.threads} threads\n")
    print(*_lines(spans, samples), sep="\n")


def _build(data: Path, target: Path, threads: int) -> tuple[list[Span], list[tuple[float, float]]]:
    """Return what ran when, and the CPU seconds of all processes over time."""
    samples = [(time.time(), 0.0)]
    arguments = [str(data), str(target), str(threads), str(samples[0][0])]
    with subprocess.Popen(
        [sys.executable, "-c", BUILD, *arguments], start_new_session=True, stdout=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            time.sleep(SAMPLE_SECONDS)
            samples.append((time.time(), max(samples[-1][1], usage(process.pid)[0])))
        assert process.stdout is not None
        spans = json.loads(process.stdout.read())
    if process.returncode:
        raise SystemExit(f"the build ended with {process.returncode}")
    return [Span(*span) for span in spans], samples


def _lines(spans: Sequence[Span], samples: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield a line for each second."""
    yield "second  cores  what runs"
    first, last = samples[0][0], samples[-1][0]
    for second in range(int(last - first) + 1):
        low, high = first + second, min(first + second + 1, last)
        shares = [(span.within(low, high), span.name) for span in spans]
        shown = ", ".join(f"{name} {share:.0%}" for share, name in sorted(shares, reverse=True) if share >= 0.05)
        yield f"{second:>6}{(_cpu(samples, high) - _cpu(samples, low)) / (high - low):>7.2f}  {shown}"


def _cpu(samples: Sequence[tuple[float, float]], at: float) -> float:
    """Return the CPU seconds up to a time."""
    return max(cpu for time_, cpu in samples if time_ <= at)


if __name__ == "__main__":
    main()
