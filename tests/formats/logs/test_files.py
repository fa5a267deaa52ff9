"""Whole files and tasks in one build: files that are not logs, logs of several hosts, logs split into other files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator

import pytest

import warehouse
from bench.log_truth import make_sample, make_world
from warehouse.formats.zhejiang import task_log
from warehouse.project.project import Project
from warehouse.runner.result import Result

MODELS = (
    "metrics.task_expected_bytes",
    "metrics.task_iterations",
    "topology.rank_paths",
    "topology.task_communicators",
    "topology.task_pods",
    "staging.log_events",
    "staging.rejected_rows",
)
NCCL = "node-1:100:200 [0] NCCL INFO Connected all rings\n"
VERSION = "NCCL version 2.21.5+cuda12.4\n"
ITERATION = " iteration {:8d}/      90 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.5E+00 |\n"
SKIPPED = {
    "empty.log": b"",
    "binary.log": bytes(range(256)) * 100,
    "utf16.log": NCCL.encode("utf-16"),
    "utf16le.log": (NCCL * 40).encode("utf-16-le"),
    "bomb.log.gz": gzip.compress(b"\n" * (4 << 20)),
}
LOGS = {
    **{f"t/{name}": content for name, content in SKIPPED.items()},
    "t/half.log.gz": gzip.compress(NCCL.encode() * 1000)[:-20],
    "t/zeros.log": NCCL.encode() * 30 + b"\0" * 4 + b"\n",
    "t/fine.log": NCCL.encode(),
    "hosts/one.log": (NCCL * 2 + NCCL[2:] + "node-1" + NCCL + NCCL.replace("node-1", "x")).encode(),
    "labels/one.log": (
        "10.0.0.1: " + NCCL + "10.0.0.2: " + NCCL.replace("node-1", "node-2") + "10.0.0.2: " + VERSION + VERSION
    ).encode(),
    "gap/x.log": "".join(map(ITERATION.format, [1, 2, 3, 7, 8])).encode(),
    "tens/x.log": "".join(map(ITERATION.format, [10, 20, 30])).encode(),
}
Ask = Callable[[str], list[tuple[object, ...]]]
Built = tuple[Result, Ask, list[int]]


def _whole_seeds() -> list[int]:
    """Return seeds whose logs are undamaged and of several hosts, one log per file."""
    worlds = [make_world(seed) for seed in range(200)]
    several = [one.seed for one in worlds if one.layout == "hosts" and len({p.server for p in one.processes}) > 1]
    return [seed for seed in several if make_sample(seed).damage == "none"][:4]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Iterator[Built]:
    """Return the result of a build of all logs, a function that answers a SELECT, and the seeds."""
    folder, seeds = tmp_path_factory.mktemp("logs"), _whole_seeds()
    logs = dict(LOGS)
    for seed in seeds:
        files = make_sample(seed).files
        logs |= {f"{seed}-apart/{name}": content for name, content in files.items()}
        logs[f"{seed}-together/all.log"] = b"".join(files.values())
    for name, content in logs.items():
        path = folder / "d" / "c" / "taskinfo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        patch.setattr(task_log, "BOMB_BYTES", 1 << 20)
        result = warehouse.build(folder / "d", folder / "t")
    with warehouse.open(folder / "t") as asked:
        yield result, lambda sql: asked.sql(sql).fetchall(), seeds


def test_files_that_are_not_logs_are_skipped_with_one_sentence(built: Built) -> None:
    _, ask, _ = built
    found = ask("SELECT release_path[14:], status, reason FROM raw.files WHERE release_path LIKE '%/t/%' ORDER BY 1")
    assert {name: status for name, status, _ in found} == {
        **dict.fromkeys(SKIPPED, "skipped"), "half.log.gz": "partial", "zeros.log": "read", "fine.log": "read",
    }  # fmt: skip
    assert all(reason and "\n" not in str(reason) for _, status, reason in found if status != "read")
    assert ask("SELECT count(*) FROM staging.log_events WHERE pod = 'fine'") == [(1,)]


def test_parts_of_host_names_are_not_hosts(built: Built) -> None:
    assert built[1]("SELECT line, pod, host FROM staging.log_events WHERE task = 'hosts' ORDER BY line") == [
        (line, f"one@{host}", host) for line, host in enumerate(["node-1"] * 4 + ["x"], 1)
    ]


def test_a_label_seen_with_one_host_gives_the_host_of_other_lines(built: Built) -> None:
    pods = built[1]("SELECT pod FROM staging.log_events WHERE task = 'labels' ORDER BY line")
    assert pods == [("one@node-1",), ("one@node-2",), ("one@node-2",), ("one",)]


def test_edges_and_ranks_do_not_depend_on_how_logs_are_cut_into_files(built: Built) -> None:
    _, ask, seeds = built
    paths = "SELECT channel, kind, src_rank, dst_rank, src_hca, dst_hca, evidence FROM topology.rank_paths"
    asked = (
        paths + " WHERE task = '{}' ORDER BY ALL",
        "SELECT host, pid, rank, ranks, communicator FROM topology.task_communicators WHERE task = '{}' ORDER BY ALL",
        "SELECT first_rank, ranks, evidence FROM topology.task_pods WHERE task = '{}' ORDER BY ALL",
        "SELECT servers, nics, expected_nominal_bytes FROM metrics.task_expected_bytes WHERE task = '{}'",
        "SELECT iteration, loss FROM metrics.task_iterations WHERE task = '{}' ORDER BY ALL",
    )
    for sql in asked:
        for seed in seeds:
            assert ask(sql.format(f"{seed}-apart")) == ask(sql.format(f"{seed}-together")), (seed, sql)
    assert ask("SELECT count(*) > 20 FROM topology.rank_paths") == [(True,)]


def test_a_gap_in_iterations_is_a_warning_with_its_range(built: Built) -> None:
    result, ask, _ = built
    (gap,) = [one for key, one in result.checks() if key.model == "metrics.task_iterations" and one.failures]
    assert gap.warn
    assert [json.loads(row) for row in gap.rows] == [{"task": "gap", "first_missing": 4, "last_missing": 6}]
    found = ask("SELECT iteration, iterations_covered FROM metrics.task_iterations WHERE task = 'tens' ORDER BY ALL")
    assert found == [(10, 10), (20, 10), (30, 10)]
