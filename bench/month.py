"""Cost of a month of hours in one target: what nothing, one more hour, or a corrected file costs beside many hours.

    python -m bench.month                        1, 24, 96, 384 and 720 tiny hours (an hour of building, 3 GB of disk)
    python -m bench.month --hours 1 24 --rounds 3

A tiny hour is one minute of three leaves, with all traps of the sample's port counters and no other tables. Each number
of hours is a release of its own: the same hour with shifted times and folder names. Its target is built first; then
each case runs as a process, on one thread.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

from bench.measure import Case, building, in_turn, machine, medians, run
from warehouse.sample import SampleOptions, write_sample
from warehouse.store.state import NAME

LOCAL = timezone(timedelta(hours=8))
"""Time zone of the names of folders and of SaveTime."""
SWITCHES = ("ROCE-Leaf-1_", "ROCE-Leaf-5_", "ROCE-ST-leaf-1_")
"""Parts of the names of the switches of a tiny hour."""


def move_on(content: bytes, hours: int) -> bytes:
    """Return a port's CSV with every SaveTime and SaveTimeUTC some hours later."""
    header, *rows = content.splitlines(keepends=True)
    moved = [header]
    for row in rows:
        _, milliseconds, rest = row.split(b",", 2)
        later = int(milliseconds) + hours * 3_600_000
        local = datetime.fromtimestamp(later // 1000, LOCAL)
        saved = f"{local:%Y/%m/%d} 星期{'一二三四五六日'[local.weekday()]} {local:%H:%M:%S}.{later % 1000:03}"
        moved.append(f"{saved},{later},".encode() + rest)
    return b"".join(moved)


class Month:
    """A release of many tiny hours and its target."""

    def __init__(self, first: Path, place: Path, hours: int, cache: Path) -> None:
        self.first, self.target = first, place / "target"
        self.traffic = place / "release" / first.parents[1].name / "trafficinfo"
        env = {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
        self.build = Case(building(place / "release", self.target, "--threads", "1"), env=env)
        self.hours = hours
        self.traffic.mkdir(parents=True)
        for workbook in first.parents[1].glob("*.xlsx"):
            shutil.copy(workbook, self.traffic.parent)
        for later in range(hours):
            self.add(later)

    def add(self, later: int) -> None:
        """Write the hour that is `later` hours after the first one."""
        begin = datetime.strptime(self.first.name, "%Y%m%d%H").replace(tzinfo=LOCAL) + timedelta(hours=later)
        for source in self.first.rglob("*.csv"):
            path = self.traffic / f"{begin:%Y%m%d%H}" / source.relative_to(self.first)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(move_on(source.read_bytes(), later))

    def correct(self, number: int) -> None:
        """Remove the last row of a file of an old hour."""
        path = sorted(sorted(self.traffic.iterdir())[self.hours // 2].rglob("*.csv"))[number]
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    def show(self, rounds: int) -> None:
        """Build, then print the costs of all cases, and the counts and sizes of the files."""
        costs = {"from nothing": [run(self.build)]}
        run(self.build)  # records what it saw, so the next build has nothing to do
        more, corrected = count(self.hours), count()
        cases = {
            "no-op": self.build,
            "one more hour": self.build._replace(before=lambda: self.add(next(more))),
            "corrected file": self.build._replace(before=lambda: self.correct(next(corrected))),
        }
        for name, runs in (costs | in_turn(cases, rounds)).items():
            cost, each = medians(runs), " ".join(f"{one.cpu:.2f}" for one in runs)
            print(f"{self.hours:>5}  {name:<16}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak_mb:>9.0f}   {each}")
        raw = sum(1 for _ in self.traffic.rglob("*.csv"))
        parts = sum(path.is_file() for path in (self.target / "parts").rglob("*"))
        state, catalog = ((self.target / name).stat().st_size / 1e6 for name in (NAME, "warehouse.duckdb"))
        print(f"       {raw:,} raw files, {parts:,} files of parts, catalog {catalog:.1f} MB, state {state:.1f} MB")


def tiny_hour(scratch: Path) -> Path:
    """Write the sample's first hour with three leaves; return its folder."""
    root = scratch / "sample"
    write_sample(root, SampleOptions(hours=1, seconds=60, hour_tables=False, jobs=False, utilization=False))
    (hour,) = (path for path in root.glob("zhejiang/*/trafficinfo/*") if path.is_dir())
    for switch in hour.iterdir():
        if switch.is_dir() and not any(name in switch.name for name in SWITCHES):
            shutil.rmtree(switch)
    return hour


def main() -> int:
    """Print a table per number of hours."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=int, nargs="+", default=[1, 24, 96, 384, 720])
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        first = tiny_hour(scratch)
        print(f"{machine()}\na tiny hour is {len(list(first.rglob('*.csv')))} files\n", flush=True)
        print(f"{'hours':>5}  {'':<16}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}   CPU s of each run")
        for hours in given.hours:
            Month(first, scratch / f"month-{hours}", hours, scratch / "cache").show(given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
