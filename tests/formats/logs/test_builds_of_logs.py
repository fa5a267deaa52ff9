"""One build of many logs: which files are logs, hosts and pods, gaps, unknown trainers, and logs of known truth."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import warehouse
from bench.log_truth import DAMAGES, LAUNCHERS, TRAINERS, VERSIONS, Sample
from bench.logs import TABLES, Score, scores
from tests.conftest import call
from warehouse.formats.base import IGNORED, READ, SKIPPED, UNKNOWN
from warehouse.formats.zhejiang import task_log
from warehouse.project.project import Project
from warehouse.runner.reporter import Result

MODELS = (
    *("metrics.task_expected_bytes", "metrics.task_iterations", "topology.rank_paths", "topology.task_communicators"),
    *("topology.task_pods", "staging.log_events", "staging.log_files", "staging.rejected_rows"),
)
SEEDS = (*range(50), 69)
"""Seeds of logs of known truth, which have every launcher, version, trainer and damage."""

LINE = " [2026-03-01 10:00:0{}.1] iteration {:5d}/ 12000 | elapsed time per iteration (ms): 1.5 | lm loss: 1.1E+01 |\n"
LOG = "".join(LINE.format(step, step) for step in range(1, 4)).encode()
ITERATION = " iteration {:8d}/      90 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.5E+00 |\n"
HOST = b"ip-26-0-160-225:7:8 [0] NCCL INFO Connected all rings\n"
NCCL = "node-1:100:200 [0] NCCL INFO Connected all rings\n"
VERSION = "NCCL version 2.21.5+cuda12.4\n"
PUT_IT = "a training log outside the folder of a task: put it as taskinfo/<task>/<pod>.log"
NO_LINE = "none of the lines in its first 64 kB is of a known log"
NO_NAME = "no known format has such a name"
FILES = {
    "c/taskinfo/t/slurm-48213.out": (LOG, READ, None),
    "c/taskinfo/t/worker.err": (LOG, READ, None),
    "c/taskinfo/t/std_log_process_0.txt": (LOG, READ, None),
    "c/taskinfo/t/log_without_ending": (LOG, READ, None),
    "c/taskinfo/t/w.log.1": (LOG, READ, None),
    "c/taskinfo/t/w.log.2024-05-23": (LOG, READ, None),
    "c/taskinfo/t/zipped.out.gz": (gzip.compress(LOG), READ, None),
    "c/taskinfo/t/attempt_0/3/stderr.log": (LOG, READ, None),
    "c/taskinfo/t/attempt_1/3/stderr.log": (b"no line of a log\n", READ, None),
    "c/taskinfo/t/late.out": (b"x\n" * 40_000 + LOG, UNKNOWN, NO_LINE),
    "c/taskinfo/t/settings.conf": (b"  learning rate: 0.1\n", UNKNOWN, NO_LINE),
    "c/taskinfo/t/model.bin": (bytes(range(256)) * 9, UNKNOWN, "not text"),
    "c/taskinfo/t/from_windows.out": (LOG.decode().encode("utf-16"), UNKNOWN, "UTF-16, not UTF-8: convert it"),
    "c/taskinfo/t/loss.csv": (LOG, UNKNOWN, NO_NAME),
    "c/taskinfo/t/README.txt": (b"how it was run\n", IGNORED, "a text for people"),
    "c/taskinfo/no-task.log": (LOG, SKIPPED, PUT_IT),
    "c/taskinfo/no-log.log": (b"how it was run\n", UNKNOWN, NO_NAME),
    "else/slurm-48213.out": (LOG, SKIPPED, PUT_IT),
    "else/20260301-1000-4/w.log": (LOG, SKIPPED, PUT_IT),
    "else/std_log_process_0.txt": (HOST, SKIPPED, PUT_IT),
    "else/train.log.1.gz": (gzip.compress(LOG), SKIPPED, PUT_IT),
    "else/notes.txt": (b"ValueError: was fixed\n", IGNORED, "a text for people"),
    "else/system.log": (b"ValueError: of another program\n", UNKNOWN, NO_NAME),
    "h/taskinfo/0/host.log": (HOST, READ, None),
    "h/taskinfo/0/none.log": (LOG, READ, None),
    "train.log": (LOG, SKIPPED, PUT_IT),
    "c/taskinfo/bad/empty.log": (b"", SKIPPED, "empty file"),
    "c/taskinfo/bad/binary.log": (bytes(range(256)) * 100, SKIPPED, "not text"),
    "c/taskinfo/bad/utf16.log": (NCCL.encode("utf-16"), SKIPPED, "UTF-16, not UTF-8"),
    "c/taskinfo/bad/utf16le.log": ((NCCL * 40).encode("utf-16-le"), SKIPPED, "UTF-16 without a mark"),
    "c/taskinfo/bad/bomb.log.gz": (gzip.compress(b"\n" * (4 << 20)), SKIPPED, "it unpacks to more than 500 times"),
    "c/taskinfo/bad/half.log.gz": (
        gzip.compress(NCCL.encode() * 1000)[:-20], "partial", "the compressed stream is damaged",
    ),
    "c/taskinfo/bad/zeros.log": (NCCL.encode() * 30 + b"\0" * 4 + b"\n", READ, None),
    "h/taskinfo/hosts/one.log": (
        (NCCL * 2 + NCCL[2:] + "node-1" + NCCL + NCCL.replace("node-1", "x")).encode(), READ, None,
    ),
    "h/taskinfo/labels/one.log": (
        f"10.0.0.1: {NCCL}10.0.0.2: {NCCL.replace('node-1', 'node-2')}10.0.0.2: {VERSION}{VERSION}".encode(),
        READ, None,
    ),
    "h/taskinfo/gap/x.log": ("".join(map(ITERATION.format, [1, 2, 3, 7, 8])).encode(), READ, None),
    "h/taskinfo/tens/x.log": ("".join(map(ITERATION.format, [10, 20, 30])).encode(), READ, None),
}  # fmt: skip
"""File -> content, status, and begin of its reason."""
UNKNOWN_TRAINER = {
    "one/alone.log": (
        "2031-07-01 10:00:00.250 nanotrain starts, step 0 of 90\n"
        "2031-07-01 10:00:09.000 finished update 7 of 90, objective 2.5, took 1.25 s\ngood bye\n"
    ),
    "two/worker-0.log": ITERATION.format(7),
    "two/worker-1.log": "the last rank prints\n",
    "three/prose.log": "no number at all\n",
}
Rows = list[tuple[object, ...]]


class Built(NamedTuple):
    """One build of all logs."""

    data: Path
    result: Result
    ask: Callable[[str], Rows]
    samples: list[Sample]
    scored: dict[str, list[Score]]
    several: list[int]
    """Seeds of undamaged logs of several hosts, which are there a file a process, and in one file."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Iterator[Built]:
    folder = tmp_path_factory.mktemp("logs")
    data = folder / "d"
    logs = {name: content for name, (content, _, _) in FILES.items()}
    logs |= {f"u/taskinfo/{name}": text.encode() for name, text in UNKNOWN_TRAINER.items()}
    whole = [one for one in map(Sample, range(200)) if one.damage == "none"]
    several = [one.seed for one in whole if len(one.files) > 1][:4]
    for seed in several:
        parts = Sample(seed).files
        logs |= {f"h/taskinfo/{seed}-apart/{name}": content for name, content in parts.items()}
        logs[f"h/taskinfo/{seed}-together/all.log"] = b"".join(parts.values())
    for name, content in logs.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(content)
    samples = [Sample(seed) for seed in SEEDS]
    for sample in samples:
        sample.write(data / "truth" / "taskinfo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        patch.setattr(task_log, "BOMB_BYTES", 1 << 20)
        result = warehouse.build(data, folder / "t")
    with warehouse.open(folder / "t") as asked:
        scored = scores(folder / "t", samples)
        yield Built(data, result, lambda sql: asked.sql(sql).fetchall(), samples, scored, several)


def test_logs_are_found_by_their_lines(built: Built) -> None:
    asked = "SELECT path, status, reason FROM raw.files"
    found = {Path(str(path)).relative_to(built.data).as_posix(): rest for path, *rest in built.ask(asked)}
    for name, (_, status, reason) in FILES.items():
        assert found[name][0] == status, name
        assert str(found[name][1] or "").startswith(reason or ""), (name, found[name])
        assert (found[name][1] is None) == (reason is None), name


def test_names_of_pods_are_unique_and_a_host_that_no_sheet_names_is_said(built: Built) -> None:
    sql = "SELECT DISTINCT pod, parse_filename(file) FROM staging.log_events WHERE cluster = 'c' AND task = 't'"
    found: dict[object, list[object]] = {}
    for pod, file in built.ask(f"{sql} ORDER BY ALL"):
        found.setdefault(pod, []).append(file)
    assert found == {
        **{name: [name] for name in ("log_without_ending", "slurm-48213.out", "std_log_process_0.txt", "worker.err")},
        "zipped.out": ["zipped.out.gz"],
        "3/stderr": ["stderr.log"],
        "w": ["w.log.1", "w.log.2024-05-23"],
    }
    said = {text for key, one in built.result.checks() if key.model == "topology.task_pods" for text in one.sentences}
    assert said >= {
        "0: the server of pod host is unknown because no sheet names its host ip-26-0-160-225",
        "0: the server of pod none is unknown because its log names no node, host or address",
    }, said


def test_parts_of_host_names_are_no_hosts_and_a_label_seen_with_a_host_gives_it_to_other_lines(built: Built) -> None:
    assert built.ask("SELECT line, pod, host FROM staging.log_events WHERE task = 'hosts' ORDER BY line") == [
        (line, f"one@{host}", host) for line, host in enumerate(["node-1"] * 4 + ["x"], 1)
    ]
    pods = built.ask("SELECT pod FROM staging.log_events WHERE task = 'labels' ORDER BY line")
    assert pods == [("one@node-1",), ("one@node-2",), ("one@node-2",), ("one",)]


def test_edges_and_ranks_do_not_depend_on_how_logs_are_cut_into_files(built: Built) -> None:
    paths = "SELECT channel, kind, src_rank, dst_rank, src_hca, dst_hca, evidence FROM topology.rank_paths"
    asked = (
        paths + " WHERE task = '{}' ORDER BY ALL",
        "SELECT host, pid, rank, ranks, communicator FROM topology.task_communicators WHERE task = '{}' ORDER BY ALL",
        "SELECT first_rank, ranks, evidence FROM topology.task_pods WHERE task = '{}' ORDER BY ALL",
        "SELECT servers, nics, expected_nominal_bytes FROM metrics.task_expected_bytes WHERE task = '{}'",
        "SELECT iteration, loss FROM metrics.task_iterations WHERE task = '{}' ORDER BY ALL",
    )
    for sql in asked:
        for seed in built.several:
            assert built.ask(sql.format(f"{seed}-apart")) == built.ask(sql.format(f"{seed}-together")), (seed, sql)
    assert built.ask("SELECT count(*) > 20 FROM topology.rank_paths") == [(True,)]


def test_a_gap_in_iterations_is_a_warning_with_its_range(built: Built) -> None:
    found = [one for key, one in built.result.checks() if key.model == "metrics.task_iterations" and one.failures]
    gaps = [json.loads(row) for one in found for row in one.rows if one.warn]
    assert {"task": "gap", "first_missing": 4, "last_missing": 6} in gaps
    asked = "SELECT iteration, iterations_covered FROM metrics.task_iterations WHERE task = 'tens' ORDER BY ALL"
    assert built.ask(asked) == [(10, 10), (20, 10), (30, 10)]


def test_a_log_of_an_unknown_trainer_is_said_by_build_and_doctor(built: Built, tmp_path: Path) -> None:
    asked = "SELECT file, progress_line FROM staging.log_files WHERE cluster = 'u' AND progress_line IS NOT NULL"
    assert built.ask(asked) == [("u/taskinfo/one/alone.log", 2)]
    rows = [json.loads(r) for key, one in built.result.checks() if key.model == "staging.log_files" for r in one.rows]
    warned = {row["file"] for row in rows if row["file"].startswith("u/")}
    assert warned == {"u/taskinfo/one/alone.log", "u/taskinfo/three/prose.log"}
    doctor = call("doctor", "-d", built.data / "u", "-t", tmp_path / "t", cwd=tmp_path).out.splitlines()
    at = doctor.index("2 files read, no iteration found")
    assert doctor[at + 1 : at + 3] == ["  u/taskinfo/one/alone.log", "  u/taskinfo/three/prose.log"]


def test_logs_of_known_truth_give_no_wrong_event_and_whole_ones_lose_none(built: Built) -> None:
    parts = [{part.strip().removeprefix("NCCL ") for part in sample.about.split(",")} for sample in built.samples]
    for known in (*LAUNCHERS, *VERSIONS, *TRAINERS, *DAMAGES):
        assert any(known in part for part in parts), known
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for sample in built.samples:
        for one in built.scored[sample.name]:
            assert one.wrong == [], (sample.about, one.kind)
            assert sample.damage != "none" or one.missing == [], (sample.about, one.kind)
            totals[one.kind][0] += one.right
            totals[one.kind][1] += one.true
    assert all(right > 0.9 * true > 0 for right, true in (totals[kind] for kind in TABLES)), totals
