"""Synthetic job traces in the form of ITP and ElasticFlow: two archives of ten clusters, and the testbed's jobs.

Planted as in the real traces: the members of both archives share names. Some rows are equal except for their id.
Deadlines are before the end. `195job.csv` repeats rows of cluster02 with other models.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import uuid
from pathlib import Path
from typing import Any

from warehouse.sample.draws import draw

CLUSTERS = 10
TESTBED = (5, 15)
"""Range of cluster02's rows that the testbed repeats."""
_LAST_SECOND = 5_184_000
_MODELS = (("bert", 64), ("gpt2", 128), ("resnet50", 256), ("vgg16", 64))
_README = "Not a trace: made by warehouse sample.\n"


def write_itp(directory: Path, seed: int, *, jobs: int = 24) -> dict[str, Any]:
    """Write both archives into `data/`; return the expected totals of the tables."""
    raw: dict[str, list[tuple[str, int, int, int]]] = {}
    for number in range(1, CLUSTERS + 1):
        name = f"cluster{number:02}"
        count = jobs + number
        words = [draw(seed, f"{name}/id{part}", count, 0, 2**32 - 1).tolist() for part in range(4)]
        submits = sorted(draw(seed, f"{name}/submit", count, 0, _LAST_SECOND - 200_000).tolist())
        runs = draw(seed, f"{name}/run", count, 600, 180_000).tolist()
        gpus = draw(seed, f"{name}/gpus", count, 0, 6).tolist()
        rows = [
            (str(uuid.UUID(int=(a << 96) | (b << 64) | (c << 32) | d)), submit, run, 2**power)
            for a, b, c, d, submit, run, power in zip(*words, submits, runs, gpus, strict=True)
        ]
        rows[3] = (rows[3][0], *rows[2][1:])  # equal to the row before it, except for the id
        raw[name] = rows
    elastic = {name: [_elastic(row, seed, name) for row in rows] for name, rows in raw.items()}
    testbed = [_elastic(row, seed, "195job") for row in raw["cluster02"][slice(*TESTBED)]]
    head = "job_id,submission_time,duration,num_gpu"
    long_head = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration"
    folder = directory / "data"
    folder.mkdir(parents=True)
    order = sorted(raw, key=lambda name: name[::-1])
    plain = {f"{name}.csv": [head, *(",".join(map(str, row)) for row in raw[name])] for name in order}
    derived = {f"{name}.csv": [long_head, *elastic[name]] for name in order}
    _write_archive(folder / "raw-traces.tar.gz", plain)
    _write_archive(folder / "elasticflow-traces.tar.gz", {**derived, "195job.csv": [long_head, *testbed]})
    return {
        "clusters": {
            name: {"jobs": len(rows), "gpu_seconds": sum(run * gpus for *_, run, gpus in rows)}
            for name, rows in raw.items()
        },
        "elasticflow_jobs": sum(map(len, elastic.values())),
        "testbed_jobs": len(testbed),
    }


def _elastic(row: tuple[str, int, int, int], seed: int, name: str) -> str:
    job, submit, run, gpus = row
    pick, tight = draw(seed, f"{name}/{job}", 2, 0, 999).tolist()
    model, batch = _MODELS[pick % len(_MODELS)]
    steps = run * (gpus * 7 + len(model)) // 5
    return f"{job},{submit},{steps},{model},{submit + run * (500 + tight) // 1000},{batch},{gpus},{run}"


def _write_archive(path: Path, members: dict[str, list[str]]) -> None:
    """Write an archive whose bytes depend only on its members."""
    texts = {"LICENSE": _README, **{name: "\n".join(lines) for name, lines in members.items()}}
    with (
        path.open("wb") as raw,
        # Without a time and a file name, which gzip would store.
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, content in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            tar.addfile(info, io.BytesIO(content.encode()))
