"""Job traces in the forms of AcmeTrace, ITP and ElasticFlow, synthetic. The writers return the totals of the rows.

AcmeTrace: jobs of Seren, Kalos, three earlier clusters, and a summary of all five. Planted as in the real traces:

- Seren's times are at +08:00 and Kalos's at +00:00;
- Kalos's `duration` and `gpu_time` begin with the submission, and its `queue` has a fraction;
- some states are not in the README, some jobs still run, and some types are blank;
- the summary counts more jobs of Seren than its trace has.

ITP and ElasticFlow: two archives of ten clusters, and the testbed's jobs. Planted as in the real traces: the members of
both archives share names. Some rows are equal except for their id. Deadlines are before the end. `195job.csv` repeats
rows of cluster02 with other models.
"""

from __future__ import annotations

import gzip
import io
import statistics
import tarfile
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from warehouse.sample.basics import Row, draw, write_csv

SEREN_HEADER = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
KALOS_HEADER = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time"
)
EXTRA_SUMMARY_JOBS = 47
"""GPU jobs of Seren in the summary beyond those in its trace, in percent."""

_SUMMARY = (
    "id,job_num,cpu_job_num,gpu_job_num,avg_run_time_gpu,avg_que_time_gpu,avg_gpu_num,med_run_time_gpu,"
    "med_que_time_gpu,med_gpu_num,max_run_time_gpu,max_gpu,complete_rate_gpu,cancel_rate_gpu,fail_rate_gpu,"
    "complete_gpu_time,cancel_gpu_time,fail_gpu_time,complete_rate_gpu_time,cancel_rate_gpu_time,fail_rate_gpu_time,"
    "avg_run_time_cpu,avg_que_time_cpu,med_run_time_cpu,med_que_time_cpu,complete_rate_cpu,cancel_rate_cpu,fail_rate_cpu"
)

Weights = tuple[tuple[str, int], ...]
"""(word, its share of ten thousand jobs)."""


@dataclass(frozen=True)
class Cluster:
    """Distribution of the jobs of one cluster."""

    name: str
    first: datetime
    days: int
    types: Weights
    states: Weights
    running: int
    sizes: dict[str, tuple[int, ...]]
    """Job type -> GPUs of its jobs, each equally likely."""


SEREN = Cluster(
    "seren", datetime(2023, 2, 28, 16, 0), 173,  # noqa: DTZ001 - UTC without zone, as in the tables
    (("CPU", 4494), ("Eval", 3571), ("SFT", 818), ("Other", 800), ("MLLM", 162), ("Debug", 106), ("Pretrain", 49)),
    (("COMPLETED", 4970), ("FAILED", 3310), ("PREEMPTED", 970), ("CANCELLED", 750)),
    0,
    {
        "CPU": (0,), "Eval": (1, 1, 1, 4, 8), "SFT": (1, 2, 8, 8, 16), "Other": (1, 1, 1, 8, 16),
        "MLLM": (1, 1, 2, 8, 16), "Debug": (8, 8, 8), "Pretrain": (40, 64, 128, 256, 512, 1024),
    },
)  # fmt: skip
KALOS = Cluster(
    "kalos", datetime(2023, 5, 17, 11, 0), 91,  # noqa: DTZ001
    (("CPU", 6810), ("Eval", 2960), ("Pretrain", 103), ("Debug", 86), ("Other", 40), ("", 1)),
    (("COMPLETED", 7581), ("FAILED", 2217), ("CANCELLED", 202)),
    3,
    {
        "CPU": (0,), "Eval": (1, 1, 1, 1), "Pretrain": (96, 256, 512, 512, 1024), "Debug": (1, 32, 128, 512, 1024),
        "Other": (1, 2, 8, 32, 64), "": (8,),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One job, in whole seconds."""

    number: int
    user: int
    job_type: str
    state: str
    gpus: int
    submit: datetime
    queue: int
    run: int | None
    """None while the job runs."""


DRAWN = {
    "type": 9999, "state": 9999, "user": 140, "size": 999, "power": 33, "rest": 999_999, "wait": 99, "jitter": 599
}  # fmt: skip
"""What is drawn for each job, and the largest number."""


def drawn_jobs(cluster: Cluster, count: int, seed: int) -> Iterator[Job]:
    """Yield a cluster's jobs in the order of their submission."""
    types, states = (
        [word for word, weight in weights for _ in range(weight)] for weights in (cluster.types, cluster.states)
    )
    columns = (draw(seed, f"{cluster.name}/{what}", count, 0, most).tolist() for what, most in DRAWN.items())
    step = cluster.days * 86_400 / count
    for i, (kind, state, user, size, power, rest, wait, jitter) in enumerate(zip(*columns, strict=True)):
        sizes = cluster.sizes[types[kind]]
        top = 2 ** (power // 2)
        run = top + rest % top - (i % 97 == 0) * top
        queue = wait if wait < 60 else (wait - 59) ** 2
        submit = cluster.first + timedelta(seconds=int(i * step) + jitter % max(1, int(step)))
        still = count - i <= cluster.running
        shown = "RUNNING" if still else states[state]
        yield Job(i, user, types[kind], shown, sizes[size % len(sizes)], submit, queue, None if still else run)


def write_trace(path: Path, cluster: Cluster, count: int, seed: int) -> Row:
    """Write a cluster's CSV file; return its totals."""
    header, row = (SEREN_HEADER, _seren_row) if cluster is SEREN else (KALOS_HEADER, _kalos_row)
    jobs = list(drawn_jobs(cluster, count, seed))
    write_csv(path, [header.split(","), *map(row, jobs)])
    kinds = {"gpu": [job for job in jobs if job.gpus], "cpu": [job for job in jobs if not job.gpus]}
    return {"cluster": cluster.name, **{kind: _totals(those, cluster) for kind, those in kinds.items()}}


def _seren_row(job: Job) -> tuple[object, ...]:
    run = job.run or 0
    start = job.submit + timedelta(seconds=job.queue)
    times = [_written(time, 8) for time in (job.submit, start, start + timedelta(seconds=run))]
    return (
        5_778_432 + job.number, f"u{5000 + job.user}", max(1, -(-job.gpus // 8)), job.gpus, max(job.gpus * 16, 4),
        job.job_type, job.state, *times, run, job.queue, float(run * job.gpus),
    )  # fmt: skip


def _kalos_row(job: Job) -> tuple[object, ...]:
    start = job.submit + timedelta(seconds=job.queue)
    end = "" if job.run is None else _written(start + timedelta(seconds=job.run), 0)
    stay = "" if job.run is None else job.queue + job.run
    # As published: Kalos counts from the submission.
    gpu_time = "" if job.run is None else float((job.queue + job.run) * job.gpus)
    failed, stopped = (end if job.state == state else "" for state in ("FAILED", "CANCELLED"))
    nodes = max(1, -(-job.gpus // 8))
    return (
        f"dlc{job.number:013x}", f"uf{700 + job.user}", nodes, job.gpus, max(job.gpus * 15, 4), nodes * 900.0, 100.0,
        job.job_type, job.state, _written(job.submit, 0), _written(start, 0), end, failed, stopped,
        stay, float(job.queue), gpu_time,
    )  # fmt: skip


def _written(time: datetime, hours: int) -> str:
    # `isoformat` then ends in the offset, as in the published files.
    return time.replace(tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=hours))).isoformat(sep=" ")  # noqa: UP017


def _totals(jobs: list[Job], cluster: Cluster) -> Row:
    closed = [(job, job.run, job.run + (job.queue if cluster is KALOS else 0)) for job in jobs if job.run is not None]
    durations = [duration for *_, duration in closed] or [0]
    return {
        "jobs": len(jobs),
        "running_jobs": len(jobs) - len(closed),
        "gpu_seconds": sum(job.gpus * run for job, run, _ in closed),
        "published_gpu_seconds": sum(job.gpus * duration for job, _, duration in closed),
        "median_duration_seconds": statistics.median(durations),
        "max_duration_seconds": max(durations),
        "queue_seconds": sum(job.queue for job in jobs),
        "gpus": sum(job.gpus for job in jobs),
        "states": dict(sorted(Counter(job.state for job in jobs).items())),
        "types": dict(sorted(Counter(job.job_type for job in jobs).items())),
    }


def write_acme(directory: Path, seed: int) -> Row:
    """Write the job files of the release's `data/` folder; return the totals by cluster."""
    folder = directory / "data" / "job_trace"
    (folder / "trace_previous_work").mkdir(parents=True)
    (folder / ".DS_Store").write_bytes(bytes(100))
    found = {
        one.name: write_trace(folder / f"trace_{one.name}.csv", one, count, seed)
        for one, count in ((SEREN, 1200), (KALOS, 500))
    }
    for name in _EARLIER:
        found[name] = _write_earlier(folder / "trace_previous_work" / f"{name}_trace.csv", name, seed)
    summary = (_summary_row(name, totals) for name, totals in found.items())
    write_csv(directory / "data" / "cluster_summary.csv", [_SUMMARY.split(","), *summary])
    return found


_EARLIER = {
    "helios": ("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
               ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")),
    "philly": ("user,vc,jobid,state,submit_time,gpu_num,duration,queue", ("Pass", "Killed", "Failed")),
    "pai": ("job_name,status,plan_cpu,plan_gpu,duration,wait_time", ("Terminated", "Failed", "Running")),
}  # fmt: skip
"""Headers and states of the earlier traces. The real files were not available, so these are guesses."""


EARLIER_JOBS = 150


def _write_earlier(path: Path, name: str, seed: int) -> Row:
    header, states = _EARLIER[name]
    rows = [
        {
            "state": states[value % len(states)], "status": states[value % len(states)], "duration": value % 90_001,
            "queue": value % 301, "wait_time": value % 301, "plan_gpu": (value % 4 + 1) * 50,
            "gpu_num": 0 if name == "helios" and value % 3 == 0 else 2 ** (value % 5),
            "plan_cpu": 600, "cpu_num": 4, "node_num": 1, "submit_time": f"2020-04-0{value % 9 + 1} 00:00:00",
            "start_time": "", "end_time": "", "vc": "vc1", "user": f"u{value % 50}",
            "job_id": i, "jobid": i, "job_name": f"j{i}",
        }
        for i, value in enumerate(draw(seed, name, EARLIER_JOBS, 0, 2**30).tolist())
    ]  # fmt: skip
    columns = header.split(",")
    write_csv(path, [columns, *([row[column] for column in columns] for row in rows)])
    sizes = [(row["plan_gpu"] / 100 if name == "pai" else row["gpu_num"]) for row in rows]
    gpu = [(size, row["duration"]) for size, row in zip(sizes, rows, strict=True) if size]
    return {
        "cluster": name,
        "gpu": {"jobs": len(gpu), "published_gpu_seconds": sum(size * duration for size, duration in gpu)},
        "cpu": {"jobs": EARLIER_JOBS - len(gpu)},
    }


def _summary_row(name: str, totals: Row) -> list[object]:
    gpu, cpu = totals["gpu"]["jobs"], totals["cpu"]["jobs"]
    gpu += gpu * EXTRA_SUMMARY_JOBS // 100 if name == "seren" else 0
    rest: list[object] = [None] * (_SUMMARY.count(",") - 3)
    if name in ("seren", "kalos"):
        rest = [*[1.0] * 8, 0.5, 0.1, 0.4, *[1.0] * 3, 0.3, 0.6, 0.1, *[1.0] * 4, 0.8, 0.1, 0.1]
    return [name.capitalize() if name != "pai" else "PAI", gpu + cpu, cpu, gpu, *rest]


CLUSTERS = 10
TESTBED = (5, 15)
"""Range of cluster02's rows that the testbed repeats."""
_LAST_SECOND = 5_184_000
_MODELS = (("bert", 64), ("gpt2", 128), ("resnet50", 256), ("vgg16", 64))
_README = "Not a trace: made by warehouse sample.\n"


def write_itp(directory: Path, seed: int) -> Row:
    """Write both archives into `data/`; return the expected totals of the tables."""
    raw: dict[str, list[tuple[str, int, int, int]]] = {}
    for number in range(1, CLUSTERS + 1):
        name, count = f"cluster{number:02}", 24 + number
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
