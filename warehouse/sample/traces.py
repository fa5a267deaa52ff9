"""Traces in the forms of AcmeTrace, ITP and ElasticFlow, synthetic. The writers return the totals of the rows.

Job traces of AcmeTrace: Seren, Kalos, three earlier clusters, and a summary of all five. Planted as in the real traces:

- Seren's times are at +08:00 and Kalos's at +00:00;
- Kalos's `duration` and `gpu_time` begin with the submission, and its `queue` has a fraction;
- some states are not in the README, some jobs still run, and some types are blank;
- the summary counts more jobs of Seren than its trace has.

ITP and ElasticFlow: two archives of ten clusters, and the testbed's jobs. Planted as in the real traces: the members of
both archives share names. Some rows are equal except for their id. Deadlines are before the end. `195job.csv` repeats
rows of cluster02 with other models.

Utilization in the form of AcmeTrace: wide files (whole, split and empty) and power of servers, with all traps. It
covers one hour of a few servers, at the turn of a month. Cells are whole thousandths until they are written, so that
truth and files cannot differ by rounding.
"""

from __future__ import annotations

import gzip
import io
import statistics
import tarfile
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from pathlib import Path

from warehouse.sample.basics import Row, draw, draw_one, write_csv

SEREN_HEADER = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"
KALOS_HEADER = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time"
)
_SUMMARY = (
    "id,job_num,cpu_job_num,gpu_job_num,avg_run_time_gpu,avg_que_time_gpu,avg_gpu_num,med_run_time_gpu,"
    "med_que_time_gpu,med_gpu_num,max_run_time_gpu,max_gpu,complete_rate_gpu,cancel_rate_gpu,fail_rate_gpu,"
    "complete_gpu_time,cancel_gpu_time,fail_gpu_time,complete_rate_gpu_time,cancel_rate_gpu_time,fail_rate_gpu_time,"
    "avg_run_time_cpu,avg_que_time_cpu,med_run_time_cpu,med_que_time_cpu,complete_rate_cpu,cancel_rate_cpu,fail_rate_cpu"
)


@dataclass(frozen=True)
class Cluster:
    """Distribution of the jobs of one cluster."""

    name: str
    first: datetime
    days: int
    types: tuple[tuple[str, int], ...]
    states: tuple[tuple[str, int], ...]
    """(word, its share of ten thousand jobs), as for types."""
    running: int
    sizes: dict[str, tuple[int, ...]]
    """Job type -> GPUs of its jobs, each equally likely."""


SEREN = Cluster(
    "seren", datetime(2023, 2, 28, 16, tzinfo=UTC), 173,
    (("CPU", 4494), ("Eval", 3571), ("SFT", 818), ("Other", 800), ("MLLM", 162), ("Debug", 106), ("Pretrain", 49)),
    (("COMPLETED", 4970), ("FAILED", 3310), ("PREEMPTED", 970), ("CANCELLED", 750)),
    0,
    {
        "CPU": (0,), "Eval": (1, 1, 1, 4, 8), "SFT": (1, 2, 8, 8, 16), "Other": (1, 1, 1, 8, 16),
        "MLLM": (1, 1, 2, 8, 16), "Debug": (8, 8, 8), "Pretrain": (40, 64, 128, 256, 512, 1024),
    },
)  # fmt: skip
KALOS = Cluster(
    "kalos", datetime(2023, 5, 17, 11, tzinfo=UTC), 91,
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


def drawn_jobs(cluster: Cluster, count: int, seed: int) -> Iterator[Job]:
    """Yield a cluster's jobs in the order of their submission."""
    types, states = (
        [word for word, weight in weights for _ in range(weight)] for weights in (cluster.types, cluster.states)
    )
    largest = {
        "type": 9999, "state": 9999, "user": 140, "size": 999, "power": 33, "rest": 999_999, "wait": 99, "jitter": 599
    }  # fmt: skip
    columns = (draw(seed, f"{cluster.name}/{what}", count, 0, most).tolist() for what, most in largest.items())
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
    return time.astimezone(timezone(timedelta(hours=hours))).isoformat(sep=" ")


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
    earlier = folder / "trace_previous_work"
    earlier.mkdir(parents=True)
    (folder / ".DS_Store").write_bytes(bytes(100))
    found = {
        one.name: write_trace(folder / f"trace_{one.name}.csv", one, count, seed)
        for one, count in ((SEREN, 1200), (KALOS, 500))
    }
    found |= {name: _write_earlier(earlier / f"{name}_trace.csv", name, seed) for name in _EARLIER}
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
    gpu += gpu * 47 // 100 if name == "seren" else 0  # more than in its trace
    rest: list[object] = [None] * (_SUMMARY.count(",") - 3)
    if name in ("seren", "kalos"):
        rest = [*[1.0] * 8, 0.5, 0.1, 0.4, *[1.0] * 3, 0.3, 0.6, 0.1, *[1.0] * 4, 0.8, 0.1, 0.1]
    return [name.capitalize() if name != "pai" else "PAI", gpu + cpu, cpu, gpu, *rest]


_MODELS = (("bert", 64), ("gpt2", 128), ("resnet50", 256), ("vgg16", 64))


def write_itp(directory: Path, seed: int) -> Row:
    """Write both archives into `data/`; return the expected totals of the tables."""
    raw: dict[str, list[tuple[str, int, int, int]]] = {}
    for number in range(1, 11):
        name, count = f"cluster{number:02}", 24 + number
        words = [draw(seed, f"{name}/id{part}", count, 0, 2**32 - 1).tolist() for part in range(4)]
        submits = sorted(draw(seed, f"{name}/submit", count, 0, 60 * 86_400 - 200_000).tolist())
        runs = draw(seed, f"{name}/run", count, 600, 180_000).tolist()
        gpus = draw(seed, f"{name}/gpus", count, 0, 6).tolist()
        rows = [
            (str(uuid.UUID(int=(a << 96) | (b << 64) | (c << 32) | d)), submit, run, 2**power)
            for a, b, c, d, submit, run, power in zip(*words, submits, runs, gpus, strict=True)
        ]
        rows[3] = (rows[3][0], *rows[2][1:])  # equal to the row before it, except for the id
        raw[name] = rows
    elastic = {name: [_elastic(row, seed, name) for row in rows] for name, rows in raw.items()}
    testbed = [_elastic(row, seed, "195job") for row in raw["cluster02"][5:15]]  # which the testbed repeats
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
    texts = {
        "LICENSE": "Not a trace: made by warehouse sample.\n",
        **{name: "\n".join(lines) for name, lines in members.items()},
    }
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


# Utilization and power.

ROWS = 240
STEP = 15
START = datetime(2023, 7, 31, 23, 30, tzinfo=timezone(timedelta(hours=8)))
COVERED = 8
"""Rows of the second split file whose times are also in the first file."""

Cells = list[list[int | None]]
"""One list per row, in thousandths."""


def write_utilization(directory: Path, seed: int) -> Row:
    """Write `utilization/` under `directory`; return its truth."""
    root = directory / "utilization"
    _write(root / "kalos" / "DRAM_ACTIVE.csv", ["172.31.0.1-0", "172.31.0.1-1"], [])
    return {
        "groups": [_kalos(root / "kalos", seed), _seren(root / "seren", seed), _network(root / "seren", seed)],
        "without_rows": ["kalos/DRAM_ACTIVE.csv"],
        "power": _power(root / "ipmi", seed),
    }


def _kalos(folder: Path, seed: int) -> Row:
    """Write one whole file: idle, full and partial load, a gap, a repeated time, and cells that are not numbers."""
    names = [f"172.31.0.{server}-{gpu}" for server in range(1, 5) for gpu in range(8)]
    cells = _gpu_cells(seed, "kalos", names)
    lines = _lines(cells, decimals=1)
    rejected = []
    for place, text, why in ((40, "1e400", "beyond what is measured"), (90, "n/a", "no number")):
        cells[place][5] = None
        lines[place][1 + 5] = text
        rejected.append({"line": place + 2, "cell": text, "column": names[5], "why": why})
    lines[60][1 + 7] = "nan"
    cells[60][7] = None
    # A gap, after the odd cells, whose line numbers are all before it.
    del lines[100:120], cells[100:120]
    lines.append(lines[10])
    rejected.append({"line": len(lines) + 1, "cell": None, "column": None, "why": "the time of line 12 again"})
    _write(folder / "GPU_UTIL.csv", names, lines)
    return {
        **_truth("kalos", "GPU_UTIL", cells),
        "files": [_file("kalos/GPU_UTIL.csv", names, len(cells), longest_gap=21 * STEP)],
        "nan_cells": 1,
        "rejected": rejected,
    }


def _seren(folder: Path, seed: int) -> Row:
    """Write the same metric split at the end of a month; the second file overlaps the first."""
    names = [f"10.140.0.{server}-{gpu}" for server in (131, 9, 10) for gpu in range(8)]
    cells = _gpu_cells(seed, "seren", names)
    lines = _lines(cells, decimals=1)
    half = ROWS // 2
    columns = names[::-1]  # column order differs between files
    reversed_lines = [[time, *cells[::-1]] for time, *cells in lines[half - COVERED :]]
    _write(folder / "GPU_UTIL-2023-07.csv", names, lines[:half])
    _write(folder / "GPU_UTIL-2023-08.csv", columns, reversed_lines)
    return {
        **_truth("seren", "GPU_UTIL", cells),
        "files": [
            _file("seren/GPU_UTIL-2023-07.csv", names, half),
            _file("seren/GPU_UTIL-2023-08.csv", columns, ROWS - half + COVERED, covered=COVERED),
        ],
        "nan_cells": 0,
        "rejected": [],
    }


def _network(folder: Path, seed: int) -> Row:
    """Write a metric of servers: columns named after NICs, and an address of five parts."""
    names = ["10.140.0.131-mlx5_0", "10.140.0.9-mlx5_0", "10.140.0.131.1"]
    cells = _cells(seed, "ib", len(names), high=20_000_000, idle=60)
    _write(folder / "NODE_IB_SEND.csv", names, _lines(cells, decimals=3))
    return {
        **_truth("seren", "NODE_IB_SEND", cells),
        "files": [_file("seren/NODE_IB_SEND.csv", names, ROWS, in_doubt=["10.140.0.131.1"])],
        "nan_cells": 0,
        "rejected": [],
    }


MEASURES = {"Sys_Total_Power": (1_400, 6_500), "CPU_Power": (200, 600), "MEM_Power": (60, 180)}
SERVERS = {"10-140-0-131": "A", "10-140-0-9": "B", "10-140-0-10": "A", "10-140-1-1": "D"}
"""Servers with power, each with its type: A and B have GPUs."""
READINGS = 12


def _power(folder: Path, seed: int) -> list[Row]:
    """Write a reading every five minutes for two types of GPU servers and for CPU servers."""
    found = []
    for kind, letters, measures in (("cpu", "D", ["Sys_Total_Power"]), ("gpu", "AB", [*MEASURES])):
        rows = []
        for server in (one for one, letter in SERVERS.items() if letter in letters):
            for reading in range(READINGS):
                watts = [_watts(seed, server, measure, reading) for measure in measures]
                rows.append(
                    [_time(300 * reading), *("" if one is None else f"{one}.0" for one in watts), f"SH-{server}"]
                )
        _write(folder / f"{kind.upper()}_{letters}_Power.csv", [*measures, "node"], rows)
        for letter, measure in product(letters, sorted(measures)):
            servers = [server for server in SERVERS if SERVERS[server] == letter]
            drawn = [_watts(seed, server, measure, reading) for server in servers for reading in range(READINGS)]
            known = [watts for watts in drawn if watts is not None]
            totals = {"samples": len(known), "sum": sum(known), "median": statistics.median(known or [0])}
            found.append(
                {"server_kind": kind, "server_type": letter, "measure": measure, "servers": len(servers), **totals}
            )
    return [row for row in found if row["samples"]]


def _watts(seed: int, server: str, measure: str, reading: int) -> int | None:
    """Return one reading: one type of GPU server has no memory power, and one reading is 0."""
    if SERVERS[server] == "B" and measure == "MEM_Power":
        return None
    drawn = draw_one(seed, f"ipmi/{server}/{measure}/{reading}", *MEASURES[measure])
    return 0 if (server, reading) == ("10-140-0-9", 3) else drawn


def _gpu_cells(seed: int, label: str, names: Sequence[str]) -> Cells:
    """Return whole percentages: 30% of the cells are 0, and 40% are 100."""
    cells = _cells(seed, label, len(names), high=100, idle=30)
    full = draw(seed, f"util/{label}/full", ROWS * len(names), 1, 100).reshape(ROWS, len(names)) <= 57
    return [
        [
            cell if cell in (0, None) else 100_000 if is_full else (cell or 0) * 1000
            for cell, is_full in zip(*both, strict=True)
        ]
        for both in zip(cells, full.tolist(), strict=True)
    ]


def _cells(seed: int, label: str, columns: int, *, high: int, idle: int) -> Cells:
    """Return cells drawn uniformly from 1 to `high`; `idle` percent are 0, and one percent is empty."""
    count = ROWS * columns
    values = draw(seed, f"util/{label}/value", count, 1, high).tolist()
    kinds = draw(seed, f"util/{label}/kind", count, 1, 100).tolist()
    flat = [None if kind == 100 else 0 if kind <= idle else value for value, kind in zip(values, kinds, strict=True)]
    return [flat[at : at + columns] for at in range(0, count, columns)]


def _lines(cells: Cells, *, decimals: int) -> list[list[str]]:
    """Return lines in the format of pandas: `43.0`, with at least one digit after the point."""
    return [[_time(STEP * place), *(_text(cell, decimals) for cell in row)] for place, row in enumerate(cells)]


def _time(second: int) -> str:
    return (START + timedelta(seconds=second)).isoformat(" ")


def _text(cell: int | None, decimals: int) -> str:
    if cell is None:
        return ""
    whole, rest = divmod(cell, 1000)
    return f"{whole}.{f'{rest:03}'[:decimals].rstrip('0') or '0'}"


def _write(path: Path, names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, [["Time", *names], *lines])


def _file(path: str, names: Sequence[str], rows: int, *, covered: int = 0, longest_gap: int = STEP,
          in_doubt: Sequence[str] = ()) -> Row:  # fmt: skip
    return {
        "path": path,
        "rows": rows,
        "columns": len(names),
        "covered_rows": covered,
        "longest_gap_seconds": longest_gap,
        "columns_in_doubt": list(in_doubt),
    }


def _truth(cluster: str, metric: str, cells: Cells) -> Row:
    samples = [cell for row in cells for cell in row if cell is not None]
    return {
        "cluster": cluster,
        "metric": metric,
        "samples": len(samples),
        "zero_samples": samples.count(0),
        "sum_thousandths": sum(samples),
        "median": statistics.median(samples) / 1000,
        "max": max(samples) / 1000,
        "minutes": len({place // 4 for place, row in enumerate(cells) if any(cell is not None for cell in row)}),
    }
