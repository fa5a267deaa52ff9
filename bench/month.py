"""Cost of a month of hours in one target: what nothing, one more hour, or a corrected file costs beside many hours.

    python -m bench.month                        1, 24, 96, 384 and 720 tiny hours (an hour of building, 3 GB of disk)
    python -m bench.month --hours 1 24 --rounds 3
    python -m bench.month --scratch DIR          where to put the files; made hours there are used again

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
from pathlib import Path

from bench.measure import Cost, machine, medians, run
from warehouse.sample import SampleOptions, write_sample
from warehouse.store.state import NAME

HOUR_MS = 3_600_000
LOCAL = timezone(timedelta(hours=8))
"""Time zone of the names of folders and of SaveTime."""
_WEEKDAYS = "一二三四五六日"
SWITCHES = ("ROCE-Leaf-1_", "ROCE-Leaf-5_", "ROCE-ST-leaf-1_")
"""Parts of the names of the switches of a tiny hour."""


def hour_name(name: str, hours: int) -> str:
    """Return the name of an hour's folder, `2024052400` in local time, some hours later."""
    return (datetime.strptime(name, "%Y%m%d%H").replace(tzinfo=LOCAL) + timedelta(hours=hours)).strftime("%Y%m%d%H")


def move_on(content: bytes, hours: int) -> bytes:
    """Return a port's CSV with every SaveTime and SaveTimeUTC some hours later."""
    header, *rows = content.splitlines(keepends=True)
    moved = [header]
    for row in rows:
        _, milliseconds, rest = row.split(b",", 2)
        later = int(milliseconds) + hours * HOUR_MS
        local = datetime.fromtimestamp(later // 1000, LOCAL)
        weekday = _WEEKDAYS[local.weekday()]
        saved = f"{local:%Y/%m/%d} 星期{weekday} {local:%H:%M:%S}.{later % 1000:03}"
        moved.append(f"{saved},{later},".encode() + rest)
    return b"".join(moved)


class Month:
    """A release of many tiny hours and its target."""

    def __init__(self, first: Path, place: Path, count: int, cache: Path) -> None:
        self.first, self.place, self.count = first, place, count
        self.target = place / "target"
        self.traffic = place / "release" / first.parents[1].name / "trafficinfo"
        self.environment = {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": ""}

    def lay_out(self) -> None:
        """Write the workbook and the hours; hours of an earlier run stay, and count."""
        if self.place.exists():
            self.count = sum(1 for _ in self.traffic.iterdir())
            return
        self.traffic.mkdir(parents=True)
        for workbook in self.first.parents[1].glob("*.xlsx"):
            shutil.copy(workbook, self.traffic.parent)
        for later in range(self.count):
            self.add(later)

    def add(self, later: int) -> None:
        """Write the hour that is `later` hours after the first one."""
        hour = self.traffic / hour_name(self.first.name, later)
        for source in self.first.rglob("*.csv"):
            path = hour / source.relative_to(self.first)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(move_on(source.read_bytes(), later))

    def correct(self, number: int) -> None:
        """Remove the last row of a file of an old hour."""
        path = sorted(sorted(self.traffic.iterdir())[self.count // 2].rglob("*.csv"))[number]
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    def build(self) -> Cost:
        """Build the target."""
        places = ["-d", str(self.place / "release"), "-t", str(self.target)]
        command = [sys.executable, "-m", "warehouse", "build", "--threads", "1", "--quiet", *places]
        return run(command, env=self.environment)

    def measure(self, rounds: int) -> dict[str, list[Cost]]:
        """Return the costs of all cases."""
        costs: dict[str, list[Cost]] = {"from nothing": [] if self.target.exists() else [self.build()]}
        self.build()  # records what it saw, so the next build has nothing to do
        for number in range(rounds):
            costs.setdefault("no-op", []).append(self.build())
            self.add(self.count + number)
            costs.setdefault("one more hour", []).append(self.build())
            self.correct(number)
            costs.setdefault("corrected file", []).append(self.build())
        return costs

    def sizes(self) -> str:
        """Return counts and sizes of the files."""
        raw = sum(1 for _ in self.traffic.rglob("*.csv"))
        parts = [path for path in (self.target / "parts").rglob("*") if path.is_file()]
        state = (self.target / NAME).stat().st_size
        catalog = (self.target / "warehouse.duckdb").stat().st_size
        megabytes = f"catalog {catalog / 1e6:.1f} MB, state {state / 1e6:.1f} MB"
        return f"{raw:,} raw files, {len(parts):,} files of parts, {megabytes}"


def tiny_hour(scratch: Path, seconds: int = 60) -> Path:
    """Write the sample's first hour with three leaves; return its folder."""
    root = scratch / "sample"
    if not root.exists():
        options = SampleOptions(hours=1, seconds=seconds, hour_tables=False, jobs=False, utilization=False)
        write_sample(root, options)
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
    options.add_argument("--scratch", type=Path, help="where the hours are made; kept")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = given.scratch or Path(folder)
        first = tiny_hour(scratch)
        print(f"{machine()}\na tiny hour is {len(list(first.rglob('*.csv')))} files\n", flush=True)
        print(f"{'hours':>5}  {'':<16}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}   CPU s of each run")
        for count in given.hours:
            month = Month(first, scratch / f"month-{count}", count, scratch / "cache")
            month.lay_out()
            for name, runs in month.measure(given.rounds).items():
                if runs:
                    cost, each = medians(runs), " ".join(f"{one.cpu:.2f}" for one in runs)
                    print(f"{month.count:>5}  {name:<16}{cost.cpu:>8.2f}{cost.wall:>8.2f}{cost.peak_mb:>9.0f}   {each}")
            print(f"       {month.sizes()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
