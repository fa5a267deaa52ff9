"""Round trip of SWF workloads: read with evalys and AccaSim, and compare job by job with metrics.jobs.

    python -m bench.swf                 the sample
    python -m bench.swf -d data/real    the jobs in a folder

The first run installs both into an environment of their own, with pandas 2: evalys 4.0.7 does not support pandas 3.
tests/publish/test_swf.py always reads with AccaSim, and with evalys if that environment exists.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import warehouse
from bench.peers import ENVIRONMENTS, install_lock
from warehouse.publish.export import export

HERE = Path(__file__).resolve().parent
PYTHON = ENVIRONMENTS / "swf" / "bin" / "python"
READERS = ("evalys", "AccaSim")
Job = tuple[int, ...]
STATUS = "CASE outcome WHEN 'completed' THEN 1 WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 5 ELSE -1 END"


def main() -> int:
    """Print the result of each library; return 1 if a job differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-d", "--data", type=Path, help="a folder with jobs (default: a sample)")
    given = options.parse_args()
    install_lock("swf", ENVIRONMENTS)
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as scratch:
        folder = Path(scratch)
        if not given.data:
            _warehouse("sample", str(folder / "data"))
        places = [given.data] if given.data else [folder / "data" / "acme", folder / "data" / "itp"]
        _warehouse("build", *(word for place in places for word in ("-d", str(place))), "-t", str(folder / "t"))
        files = sorted(export(folder / "t", folder / "swf", formats=["swf"]).glob("*.swf"))
        found = read(files)
        print(f"{'':<20}{'reader':<9}{'jobs':>9}{'GPU seconds':>15}  jobs that differ")
        wrong = 0
        for path in files:
            expected = jobs(folder / "t", path.stem)
            seconds = sum(job[3] * job[4] for job in expected if job[3] > 0)
            print(f"{path.stem:<20}{'table':<9}{len(expected):>9,}{seconds:>15,}")
            for reader, read_back in found[path].items():
                different = len(set(visible(expected, reader)) ^ set(read_back))
                seconds = sum(job[3] * job[4] for job in read_back if job[3] > 0)
                print(f"{'':<20}{reader:<9}{len(read_back):>9,}{seconds:>15,}{different:>18,}")
                wrong += different
    return 1 if wrong else 0


def read(
    files: Sequence[Path], python: Path = PYTHON, readers: Sequence[str] = READERS
) -> dict[Path, dict[str, list[Job]]]:
    """Return the jobs that each library reads from each file; `python` is the interpreter of their environment."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"MPLBACKEND": "Agg"}
    command = [str(python), str(HERE / "swf_readers.py"), ",".join(readers), *map(str, files)]
    said = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return {
        Path(path): {reader: [tuple(map(int, job)) for job in rows] for reader, rows in readers.items()}
        for path, readers in said.items()
    }


def visible(rows: Sequence[Job], reader: str) -> list[Job]:
    """Return the jobs that a library shows: evalys loses the first line of any workload and omits cancelled jobs."""
    return [job for job in rows[1:] if job[5] <= 1] if reader == "evalys" else list(rows)


def jobs(target: Path, name: str) -> list[Job]:
    """Return the jobs with GPUs of a workload's cluster, as its SWF file should have them, from metrics.jobs."""
    trace, _, cluster = name.partition("-")
    with warehouse.open(target) as connection:
        return connection.execute(
            f"""
            SELECT
                row_number() OVER submitted, epoch(submit_utc)::BIGINT - min(epoch(submit_utc)::BIGINT) OVER (),
                coalesce(queue_seconds, -1), coalesce(run_seconds, -1), num_gpus, {STATUS},
                CASE WHEN user_id IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY user_id) END,
                CASE WHEN job_type IS NULL THEN -1 ELSE dense_rank() OVER (ORDER BY job_type) END
            FROM metrics.jobs WHERE trace = ? AND cluster = ? AND num_gpus > 0
            WINDOW submitted AS (ORDER BY submit_utc, job_id) ORDER BY 1
            """,
            [trace, cluster],
        ).fetchall()


def _warehouse(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "warehouse", *words], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
