"""Wall time of a build on several cores, beside a bare DuckDB load and polars computing `port_hour` alone.

    python -m bench.wall                  the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.wall --full           a synthetic full-size hour: 24 switches, 2,160 files, 1.5 GB
    python -m bench.wall DIR --rounds 5 --workers 1,2,4,8
    python -m bench.wall DIR --earlier 682866e    also with the models of an earlier commit: what later ones cost

Each case runs with 1, 2 and 4 threads, in turn, on a cold target (the models are parsed). Every 50 ms, CPU time and
resident memory of all its processes are added up. `serial` is the share of the wall time in which they use less than
1.2 cores together; on a machine with other work it counts their waiting, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.ingest import BARE, default_data, fabric_of, full_hour, port_csvs, readers
from bench.measure import machine
from warehouse.base.settings import CONFIG, SHIPPED

SAMPLE_SECONDS = 0.05
SERIAL_CORES = 1.2
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Course:
    """Cost of one run, with its course over time."""

    wall: float
    cpu: float
    peak_mb: float
    """Largest sum of the resident sizes of all processes; pages that they share count for each."""
    serial: float
    """Share of the wall time in which less than `SERIAL_CORES` are used."""


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, nargs="?", help="folder with trafficinfo/ of one or more clusters")
    options.add_argument("--full", action="store_true", help="a synthetic full-size hour, made first")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--workers", default="1,2,4")
    options.add_argument("--no-polars", action="store_true")
    options.add_argument(
        "--earlier", metavar="COMMIT", help="also build with the models of a commit of this repository"
    )
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        if given.data:
            data = fabric_of(given.data.absolute(), scratch)
        else:
            data = full_hour(scratch) if given.full else default_data(scratch)
        earlier = _models_of(given.earlier, scratch / "earlier") if given.earlier else None
        _compare(
            data, scratch, given.rounds, [int(one) for one in given.workers.split(",")], not given.no_polars, earlier
        )


def _models_of(commit: str, project: Path) -> Path:
    """Extract the models of a commit as a project of their own."""
    project.mkdir()
    checkout = Path(__file__).parents[1]
    archive = subprocess.run(
        ["git", "-C", str(checkout), "archive", commit, "models", "sql", "data"], check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "x", "-C", str(project)], check=True, input=archive.stdout)
    (project / CONFIG).write_text(f"{SHIPPED} = false\n", encoding="utf-8")
    return project


def _compare(
    data: Path, scratch: Path, rounds: int, workers: Sequence[int], with_polars: bool, earlier: Path | None
) -> None:
    files = port_csvs(data)
    listing = scratch / "files.txt"
    listing.write_text("\n".join(map(str, files)), encoding="utf-8")
    python, versions = readers(["polars"]) if with_polars else (Path(), "")
    print(machine() + versions)
    print(f"{len(files):,} port CSVs, {sum(path.stat().st_size for path in files) / 1e6:,.0f} MB; {rounds} rounds\n")
    cases: dict[str, list[str]] = {}
    for count in workers:
        bare = BARE.replace("SET threads = 1", f"SET threads = {count}")
        cases[f"bare DuckDB load {count}"] = [sys.executable, "-c", bare, str(listing), str(scratch / "bare.duckdb")]
        cases[f"warehouse build {count}"] = [
            sys.executable, "-m", "warehouse", "build", "-d", str(data), "-t", str(scratch / "target"),
            "--threads", str(count), "--quiet",
        ]  # fmt: skip
        if earlier is not None:
            cases[f"earlier models {count}"] = [*cases[f"warehouse build {count}"], "--project", str(earlier)]
        if python.is_file():
            script = str(Path(__file__).with_name("port_hour.py"))
            cases[f"polars port_hour {count}"] = [
                str(python), script, "polars", str(listing), str(scratch / "polars.parquet")
            ]  # fmt: skip
    found: dict[str, list[Course]] = {name: [] for name in cases}
    for round_ in range(rounds + 1):
        for name, command in cases.items():
            shutil.rmtree(scratch / "target", ignore_errors=True)
            (scratch / "bare.duckdb").unlink(missing_ok=True)
            environment = {"POLARS_MAX_THREADS": name.split()[-1], "XDG_CACHE_HOME": str(scratch / "cache")}
            one = course(command, environment)
            if round_:  # the first round reads the files from disk, and parses the models
                found[name].append(one)
    _print(found)


def _print(found: Mapping[str, Sequence[Course]]) -> None:
    """Print medians, with ratios to the bare load: wall at the same threads, CPU at one thread."""
    medians = {name: median(runs) for name, runs in found.items()}
    one_thread = next(iter(medians.values()))
    print(
        f"{'threads':>27}{'wall s':>9}{'ratio':>7}{'CPU s':>8}{'ratio':>7}{'peak MB':>9}{'serial':>8}   wall s of each"
    )
    for name, cost in medians.items():
        bare = medians[f"bare DuckDB load {name.split()[-1]}"]
        each = " ".join(f"{one.wall:.1f}" for one in found[name])
        print(
            f"{name:>27}{cost.wall:>9.2f}{cost.wall / bare.wall:>7.2f}{cost.cpu:>8.2f}{cost.cpu / one_thread.cpu:>7.2f}"
            f"{cost.peak_mb:>9.0f}{cost.serial:>8.0%}   {each}"
        )


def median(runs: Sequence[Course]) -> Course:
    return Course(
        statistics.median(one.wall for one in runs),
        statistics.median(one.cpu for one in runs),
        max(one.peak_mb for one in runs),
        statistics.median(one.serial for one in runs),
    )


def course(command: Sequence[str], environment: Mapping[str, str]) -> Course:
    """Run a command in a session of its own; its exit status must be 0."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, env={**os.environ, **environment}, start_new_session=True, stdout=subprocess.DEVNULL
    ) as process:
        last, cpu, peak, serial = started, 0.0, 0.0, 0.0
        while True:
            time.sleep(SAMPLE_SECONDS)
            is_over = process.poll() is not None
            now = time.perf_counter()
            if is_over:
                break
            total, resident = usage(process.pid)
            if (total - cpu) / (now - last) < SERIAL_CORES:
                serial += now - last
            last, cpu, peak = now, max(cpu, total), max(peak, resident)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    wall = now - started
    return Course(wall, cpu, peak / 1e6, serial / wall)


def usage(session: int) -> tuple[float, float]:
    """Return CPU seconds, with those of ended children, and resident bytes of all processes of a session."""
    cpu = resident = 0.0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:  # it ended
            continue
        if int(fields[3]) == session:
            cpu += sum(map(int, fields[11:15])) * _TICK
            resident += int(fields[21]) * _PAGE
    return cpu, resident


if __name__ == "__main__":
    main()
