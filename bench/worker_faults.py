"""Kills at random moments of builds with worker processes: none costs a warehouse, a process or a stray file.

    python -m bench.worker_faults                  50 kills, on the sample
    python -m bench.worker_faults --kills 200 --data DIR

In turn: Ctrl-C (the build must end, with all workers), SIGKILL of a worker (the build must succeed with the same
parts) and SIGKILL of the build (its workers must end; the next build must succeed). Small files are cut into small
blocks, so that the workers have work on the sample, too.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

BUILD = """
import sys
from warehouse.engine import workers
from warehouse.kernels import port_readings
workers.FEWEST_BLOCKS, port_readings.BLOCK_BYTES = 2, 100_000
from warehouse.cli import main
print("ready", flush=True)
sys.exit(main())
"""
KINDS = ("Ctrl-C", "a worker killed", "the build killed")
INTERRUPTED = 130
_PATIENCE_SECONDS = 300


def main() -> None:
    """Kill, and print what was found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        data = given.data or Path(folder, "sample")
        if not given.data:
            subprocess.run([sys.executable, "-m", "warehouse", "sample", str(data)], check=True, capture_output=True)
        longest = kill_many(data, Path(folder, "target"), given.kills, given.seed)
    for kind, seconds in longest.items():
        print(f"{kind:<18} all processes ended after at most {seconds:.2f} s")
    print(f"{given.kills} kills: every warehouse as before or whole, no process and no stray file left")


def kill_many(data: Path, target: Path, kills: int, seed: int, *options: str) -> dict[str, float]:
    """Kill builds; return the longest time until all processes had ended, by kind. Raises AssertionError."""
    chance = random.Random(seed)
    command = [sys.executable, "-c", BUILD, "build", "-d", str(data), "-t", str(target), "--threads", "2", "--quiet"]
    command += ["-s", "staging.port_seconds", *options]
    _succeed(command)  # it also finds the files with bad lines, which later builds know
    _forget_parts(target)
    started = time.perf_counter()
    _succeed(command)
    seconds = time.perf_counter() - started
    expected = _parts(target)
    longest = dict.fromkeys(KINDS, 0.0)
    for number in range(kills):
        kind = KINDS[number % len(KINDS)]
        _forget_parts(target)
        with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as build:
            assert build.stdout is not None
            assert build.stdout.readline() == b"ready\n"  # before that, Ctrl-C meets Python's imports
            time.sleep(chance.uniform(0, seconds))
            workers = _workers(build.pid)
            if kind == "a worker killed":
                for worker in chance.sample(workers, min(1, len(workers))):
                    _kill(worker, signal.SIGKILL)
            else:
                os.killpg(build.pid, signal.SIGINT) if kind == "Ctrl-C" else build.kill()
            told = time.perf_counter()
            _, error = build.communicate(timeout=_PATIENCE_SECONDS)
            while any(map(_is_alive, workers)):
                assert time.perf_counter() - told < _PATIENCE_SECONDS, f"{kind}: workers outlive the build"
                time.sleep(0.01)
            if kind != "a worker killed":
                longest[kind] = max(longest[kind], time.perf_counter() - told)
        allowed = {"Ctrl-C": {0, INTERRUPTED}, "a worker killed": {0}, "the build killed": {0, -signal.SIGKILL}}[kind]
        assert build.returncode in allowed, (kind, build.returncode, error.decode())
        if kind == "Ctrl-C":
            assert not _stray(target), (kind, _stray(target))
        _succeed(command)
        assert _parts(target) == expected, kind
        assert not _stray(target), (kind, _stray(target))
    return longest


def _forget_parts(target: Path) -> None:
    for path in (target / "parts").rglob("*.parquet"):
        path.unlink()


def _succeed(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def _parts(target: Path) -> dict[str, bytes]:
    return {str(path.relative_to(target)): path.read_bytes() for path in (target / "parts").rglob("*.parquet")}


def _stray(target: Path) -> list[Path]:
    """Return temporary files, whose names begin with a dot."""
    return [path for path in target.rglob(".*") if path.is_file()]


def _workers(build: int) -> list[int]:
    """Return the process ids of a build's workers."""
    try:
        children = Path(f"/proc/{build}/task/{build}/children")
        tasks = children.parents[1].iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill(pid: int, with_signal: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, with_signal)


if __name__ == "__main__":
    main()
