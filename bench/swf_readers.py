"""Read workloads with evalys and AccaSim, and print the jobs of each as JSON.

Runs in the environment of `bench/peers/swf.txt`, which `bench/swf.py` creates.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib
import json
import sys
import warnings

Job = tuple[int, ...]
"""Number, submission, wait, run, processors, status, user, executable."""


def evalys(path: str) -> list[Job]:
    """Return the jobs of evalys 4.0.7, which takes the first job's line for column names."""
    frame = importlib.import_module("evalys.workload").Workload.from_csv(path).df
    names = ["jobID", "submission_time", "waiting_time", "execution_time", "proc_alloc", "status", "uid", "exe_num"]
    return [tuple(job) for job in frame[names].to_numpy().tolist()]


def accasim(path: str) -> list[Job]:
    """Return the jobs of AccaSim 1.1.3, which uses a name that moved in Python 3.10."""
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
    parser = importlib.import_module("accasim.utils.reader_class").DefaultWorkloadParser()
    names = ["job_number", "queued_time", "wait_time", "duration", "total_processors", "status", "user_id"]
    with open(path, encoding="ascii") as stream:  # noqa: PTH123
        found = [parser.parse_line(line.rstrip("\n")) for line in stream]
    return [tuple(job[name] for name in (*names, "executable_number")) for job in found if job]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = {"evalys": evalys, "AccaSim": accasim}
    readers = {name: known[name] for name in sys.argv[1].split(",")}
    json.dump({path: {name: read(path) for name, read in readers.items()} for path in sys.argv[2:]}, sys.stdout)
