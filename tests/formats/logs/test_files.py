"""Whole files and tasks: files that are not logs, logs of several hosts, and logs split into other files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

import warehouse
from bench.log_forms import make_world
from bench.log_truth import make_sample
from warehouse.formats.zhejiang import task_log

MODELS = (
    "metrics.task_expected_bytes",
    "metrics.task_iterations",
    "topology.rank_paths",
    "topology.task_communicators",
    "topology.task_pods",
    "staging.log_events",
    "staging.rejected_rows",
)
pytestmark = pytest.mark.usefixtures("only_own_models")
NCCL = "node-1:100:200 [0] NCCL INFO Connected all rings\n"
Rows = list[tuple[object, ...]]


def _build(tmp_path: Path, logs: dict[str, bytes]) -> Path:
    for name, content in logs.items():
        path = tmp_path / "d" / "c" / "taskinfo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    warehouse.build(tmp_path / "d", tmp_path / "t")
    return tmp_path / "t"


def _query(target: Path, sql: str) -> Rows:
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_files_that_are_not_logs_are_skipped_with_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_log, "BOMB_BYTES", 1 << 20)
    target = _build(
        tmp_path,
        {
            "t/empty.log": b"",
            "t/binary.log": bytes(range(256)) * 100,
            "t/utf16.log": NCCL.encode("utf-16"),
            "t/utf16le.log": (NCCL * 40).encode("utf-16-le"),
            "t/bomb.log.gz": gzip.compress(b"\n" * (4 << 20)),
            "t/half.log.gz": gzip.compress(NCCL.encode() * 1000)[:-20],
            "t/zeros.log": NCCL.encode() * 30 + b"\0" * 4 + b"\n",
            "t/fine.log": NCCL.encode(),
        },
    )

    found = _query(target, "SELECT release_path[14:], status, reason FROM raw.files ORDER BY 1")
    assert [(name, status) for name, status, _ in found] == [
        ("binary.log", "skipped"),
        ("bomb.log.gz", "skipped"),
        ("empty.log", "skipped"),
        ("fine.log", "read"),
        ("half.log.gz", "partial"),
        ("utf16.log", "skipped"),
        ("utf16le.log", "skipped"),
        ("zeros.log", "read"),
    ]
    assert all(reason and "\n" not in str(reason) for _, status, reason in found if status != "read")
    assert _query(target, "SELECT count(*) FROM staging.log_events WHERE pod = 'fine'") == [(1,)]


def test_parts_of_host_names_are_not_hosts(tmp_path: Path) -> None:
    lines = [NCCL, NCCL, NCCL[2:], "node-1" + NCCL, "x:1:2 [0] NCCL INFO Connected all trees\n"]
    target = _build(tmp_path, {"t/one.log": "".join(lines).encode()})

    assert _query(target, "SELECT line, pod, host FROM staging.log_events ORDER BY line") == [
        (line, f"one@{host}", host) for line, host in enumerate(["node-1"] * 4 + ["x"], 1)
    ]


def test_a_label_seen_with_one_host_gives_the_host_of_other_lines(tmp_path: Path) -> None:
    lines = [
        "10.0.0.1: " + NCCL,
        "10.0.0.2: " + NCCL.replace("node-1", "node-2"),
        "10.0.0.2: NCCL version 2.21.5+cuda12.4\n",
        "NCCL version 2.21.5+cuda12.4\n",
    ]
    target = _build(tmp_path, {"t/one.log": "".join(lines).encode()})

    assert _query(target, "SELECT pod FROM staging.log_events ORDER BY line") == [
        ("one@node-1",), ("one@node-2",), ("one@node-2",), ("one",),
    ]  # fmt: skip


def _whole_seeds() -> list[int]:
    """Return seeds whose logs are undamaged and of several hosts, one log per file."""
    worlds = [make_world(seed) for seed in range(400)]
    several = [one.seed for one in worlds if one.layout == "hosts" and len({p.server for p in one.processes}) > 1]
    return [seed for seed in several if make_sample(seed).damage == "none"][:8]


def test_edges_and_ranks_do_not_depend_on_how_logs_are_cut_into_files(tmp_path: Path) -> None:
    logs: dict[str, bytes] = {}
    seeds = _whole_seeds()
    for seed in seeds:
        files = make_sample(seed).files
        logs |= {f"{seed}-apart/{name}": content for name, content in files.items()}
        logs[f"{seed}-together/all.log"] = b"".join(files.values())
    target = _build(tmp_path, logs)

    paths = "SELECT channel, kind, src_rank, dst_rank, src_hca, dst_hca, evidence FROM topology.rank_paths"
    asked = (
        paths + " WHERE task = '{}' ORDER BY ALL",
        "SELECT host, pid, rank, ranks, communicator FROM topology.task_communicators WHERE task = '{}' ORDER BY ALL",
        "SELECT first_rank, ranks, evidence FROM topology.task_pods WHERE task = '{}' ORDER BY ALL",
        "SELECT servers, nics, expected_nominal_bytes FROM metrics.task_expected_bytes WHERE task = '{}'",
        "SELECT iteration, loss FROM metrics.task_iterations WHERE task = '{}' ORDER BY ALL",
    )
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as connection:
        for sql in asked:
            for seed in seeds:
                apart, together = (
                    connection.execute(sql.format(f"{seed}-{how}")).fetchall() for how in ("apart", "together")
                )
                assert apart == together, (seed, sql)
    assert _query(target, "SELECT count(*) > 50 FROM topology.rank_paths") == [(True,)]


def test_a_gap_in_iterations_is_a_warning_with_its_range(tmp_path: Path) -> None:
    line = " iteration {:8d}/      90 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.5E+00 |\n"
    folder = tmp_path / "d" / "c" / "taskinfo"
    for task, steps in (("gap", [1, 2, 3, 7, 8]), ("tens", [10, 20, 30])):
        (folder / task).mkdir(parents=True)
        (folder / task / "x.log").write_text("".join(map(line.format, steps)))
    result = warehouse.build(tmp_path / "d", tmp_path / "t")

    (gap,) = [one for key, one in result.checks() if key.model == "metrics.task_iterations" and one.failures]
    assert gap.warn
    assert [json.loads(row) for row in gap.rows] == [{"task": "gap", "first_missing": 4, "last_missing": 6}]
    found = _query(tmp_path / "t", "SELECT iteration, iterations_covered FROM metrics.task_iterations ORDER BY ALL")
    assert found[-3:] == [(10, 10), (20, 10), (30, 10)]
