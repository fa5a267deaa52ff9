"""Growth of build cost with the hours of a release: CPU, memory, and the cost of a build with nothing to do.

    python -m bench.growth                       the real hour at hand (else the sample's), 1 2 4 8 16 times
    python -m bench.growth --hours 1 4 --rounds 3
    python -m bench.growth --full --hours 1 4    a synthetic hour of 24 switches; needs 1.5 GB of disk per hour

The hours are copies of one hour with shifted times, so each is the same work. Each number of hours is built from
nothing, on one thread, into a target of its own. "CPU of a further hour" is the difference to the first line divided by
the additional hours. It excludes the fixed costs of start, workbook and models. "Nothing to do" is the same command
again. "Listing" is a program that lists the same folders and reads size and times of each file.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from bench.ingest import default_data, full_hour
from bench.measure import Cost, machine, medians, run

HOUR_MS = 3_600_000
LOCAL = timezone(timedelta(hours=8))
"""Time zone of the names of folders and of SaveTime."""
_WEEKDAYS = "一二三四五六日"
_UTC_AT = len("2024/05/24 星期五 00:00:00.000,".encode())
"""Offset of a row's time in ms (13 digits); the text before has a fixed length."""
LIST = """
import os, sys
def look(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            about = entry.stat()
            if entry.is_dir(): look(entry.path)
for folder in sys.argv[1:]: look(folder)
"""
NOTHING_TO_DO = 7
"""Number of runs of cases that take hundredths of a second."""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--threads", default="1")
    options.add_argument("--scratch", type=Path, help="where the hours are made; needs their size")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-", dir=given.scratch) as folder:
        scratch = Path(folder)
        first = full_hour(scratch) if given.full else default_data(scratch)
        releases = {
            count: release(first, scratch / "hours", scratch / f"release-{count}", count) for count in given.hours
        }
        costs = measure(releases, scratch, given.rounds, given.threads)
        show(releases, costs, scratch)
    return 0


def release(first: Path, hours: Path, place: Path, count: int) -> Path:
    """Create a release of `count` hours: time-shifted copies of the hour in `first`; existing hours are reused."""
    for cluster in sorted(path for path in first.iterdir() if path.is_dir()):
        folder = min(path for path in (cluster / "trafficinfo").iterdir() if path.name.isdigit())
        (place / cluster.name / "trafficinfo").mkdir(parents=True)
        for workbook in cluster.glob("*.xlsx"):
            (place / cluster.name / workbook.name).symlink_to(workbook)
        for later in range(count):
            name = hour_name(folder.name, later)
            made = hours / cluster.name / name
            if not made.exists():
                for source in sorted(folder.rglob("*.csv")):
                    moved = made / source.relative_to(folder)
                    moved.parent.mkdir(parents=True, exist_ok=True)
                    moved.write_bytes(move_on(source.read_bytes(), later))
            (place / cluster.name / "trafficinfo" / name).symlink_to(made)
    return place


def hour_name(name: str, hours: int) -> str:
    """Return the name of an hour's folder, `2024052400` in local time, some hours later."""
    return (datetime.strptime(name, "%Y%m%d%H").replace(tzinfo=LOCAL) + timedelta(hours=hours)).strftime("%Y%m%d%H")


def move_on(content: bytes, hours: int) -> bytes:
    """Return a port's CSV with every SaveTime and SaveTimeUTC some hours later. Raises ValueError for another file."""
    if content and not content.startswith(b"SaveTime,SaveTimeUTC,"):
        raise ValueError("this is no port's CSV")
    text = np.frombuffer(content, np.uint8).copy()
    starts = np.flatnonzero(text == ord("\n"))[:-1] + 1  # all lines except the header
    places = starts[:, None] + np.arange(_UTC_AT, _UTC_AT + 13)
    powers = 10 ** np.arange(12, -1, -1, dtype=np.int64)
    times = (text[places].astype(np.int64) - ord("0")) @ powers + hours * HOUR_MS
    text[places] = (times[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    for hour in np.unique(times // HOUR_MS):
        local = datetime.fromtimestamp(int(hour) * 3600, LOCAL)
        words = f"{local:%Y/%m/%d} 星期{_WEEKDAYS[local.weekday()]} {local:%H}".encode()
        rows = starts[times // HOUR_MS == hour]
        text[rows[:, None] + np.arange(len(words))] = np.frombuffer(words, np.uint8)
    return text.tobytes()


def hours_of(release: Path) -> list[Path]:
    """Return the folders of a release's hours."""
    return [link.resolve() for link in sorted(release.glob("*/trafficinfo/*"))]


Costs = dict[int, dict[str, list[Cost]]]


def measure(releases: dict[int, Path], scratch: Path, rounds: int, threads: str) -> Costs:
    """Measure builds from nothing, then builds with nothing to do and listings, each in turn."""
    environment = {"XDG_CACHE_HOME": str(scratch / "cache")}
    costs: Costs = {count: {"build": [], "again": [], "list": []} for count in releases}
    targets = {count: scratch / f"target-{count}" for count in releases}
    build = {
        count: [
            sys.executable, "-m", "warehouse", "build", "-d", str(path), "-t", str(targets[count]),
            "--threads", threads, "--quiet", "--follow-links",
        ]
        for count, path in releases.items()
    }  # fmt: skip
    run(build[min(releases)], env=environment)  # warm-up: parses and binds the models for later builds
    for number in range(rounds):
        for count, command in build.items():
            shutil.rmtree(targets[count], ignore_errors=True)
            costs[count]["build"].append(run(command, env=environment))
            print(f"round {number + 1} of {rounds}: {count} hours", file=sys.stderr, flush=True)
    for command in build.values():
        run(command, env=environment)  # caches the request of a repeated build
    for _ in range(NOTHING_TO_DO):
        for count, command in build.items():
            costs[count]["again"].append(run(command, env=environment))
            listed = [sys.executable, "-c", LIST, *map(str, hours_of(releases[count])), str(targets[count] / "parts")]
            costs[count]["list"].append(run(listed))
    return costs


def show(releases: dict[int, Path], costs: Costs, scratch: Path) -> None:
    """Print a line per number of hours."""
    print(machine())
    hour = min(releases)
    sizes = [path.stat().st_size for folder in hours_of(releases[hour]) for path in folder.rglob("*.csv")]
    files = len(sizes) // hour
    print(f"an hour is {files:,} port CSVs, {sum(sizes) / hour / 1e6:,.0f} MB\n")
    head = f"{'hours':>5}{'files':>8}{'CPU s':>9}{'an hour':>9}{'further':>9}{'peak MB':>9}"
    print(f"{head}{'parts MB':>10}{'catalog MB':>14}{'cache MB':>10}{'nothing to do':>15}{'listing':>9}{'ratio':>7}")
    first = medians(costs[hour]["build"]).cpu
    for count, found in costs.items():
        cost, again, listed = (medians(found[name]) for name in ("build", "again", "list"))
        further = f"{(cost.cpu - first) / (count - hour):.2f}" if count > hour else ""
        line = f"{count:>5}{count * files:>8,}{cost.cpu:>9.2f}{cost.cpu / count:>9.2f}{further:>9}{cost.peak_mb:>9.0f}"
        target = scratch / f"target-{count}"
        line += f"{_mb(target / 'parts'):>10.0f}{_mb(target / 'builds'):>14.1f}{_mb(target / 'cache'):>10.1f}"
        print(f"{line}{again.cpu:>15.3f}{listed.cpu:>9.3f}{again.cpu / listed.cpu:>7.2f}")


def _mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    raise SystemExit(main())
