"""Builds on real worker processes of Dask: bytes, progress, errors, costs, other paths, faults."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.runner.conftest import HOUR_COLUMNS
from tests.runner.test_cluster import Notes
from tests.runner.test_shares import digests
from tests.tiny import HOURS, Tiny
from warehouse.base.settings import Settings, settle
from warehouse.graph.plan import Key
from warehouse.ingest import content_hashes
from warehouse.runner import cluster
from warehouse.runner.build import build
from warehouse.runner.options import BuildOptions
from warehouse.runner.reporter import Reporter
from warehouse.store.lock import hold
from warehouse.store.signatures import RACY_NS

pytest.importorskip("distributed", reason="no Dask: pip install 'gpu-warehouse[cluster]', about 35 MB")


class Progress(Notes):
    """Reporter of notes, parts that workers begin, and hours that they made."""

    def __init__(self) -> None:
        super().__init__()
        self.began: set[str] = set()
        self.hours = 0

    def started_elsewhere(self, part: str) -> None:
        self.began.add(part)

    def finished_elsewhere(self, hours: int, costs: Mapping[Key, object]) -> None:
        self.hours += hours


@pytest.fixture
def small(hours: Tiny) -> Tiny:
    """Return a project without the shipped models."""
    hours.write("warehouse.toml", "shipped = false\n")
    return hours


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Return the address of a scheduler with a worker process."""
    dask: Any = import_module("distributed")
    with dask.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as local:
        yield local.scheduler_address


def test_hours_on_workers_have_the_bytes_of_a_local_build_and_report_progress(small: Tiny, scheduler: str) -> None:
    whole, progress = small.base / "whole", Progress()
    settings = Settings((small.data,), small.target, small.folder)
    cluster.make_shares(settings, BuildOptions(), scheduler, progress)
    assert (progress.notes, progress.hours) == (["2 parts made by workers, in 1 share"], 2)
    assert progress.began, "the first part of a share is told at once"
    assert not list(small.target.glob(".probe*"))
    build(settings, Reporter())
    build(settings._replace(target=whole), Reporter())
    assert digests(small.target) == digests(whole)


def test_a_profile_has_the_parts_that_workers_made(small: Tiny, scheduler: str) -> None:
    said = small.build("--scheduler", scheduler, "--profile", "--json", "--project", small.folder)
    assert said.status == 0, said
    parts = {(one["model"], one["partition"]): one for one in json.loads(said.out)["profile"]["parts"]}
    assert {key for key in parts if key[0] == "staging.hour"} == {("staging.hour", hour) for hour in HOURS}
    assert all(parts["staging.hour", hour]["cpu"] > 0 and parts["staging.hour", hour]["rows"] == 1 for hour in HOURS)


def test_an_error_on_a_worker_has_file_line_and_column(small: Tiny, scheduler: str) -> None:
    shown = small.model(
        "metrics.wrong", "SELECT hour_utc,\n    error('no' || bytes) AS bytes FROM staging.hour", HOUR_COLUMNS,
        "partition: hour_utc",
    )  # fmt: skip
    local = small.build("--project", small.folder)
    said = small.build("--scheduler", scheduler, "--project", small.folder)
    assert said.status == local.status == 1
    assert "Found" not in said.err, "the build here has not begun"
    place = next(line for line in local.err.splitlines() if line.startswith("error: "))
    assert f"{shown}:" in place
    assert place in said.err.splitlines()


def test_a_failing_check_on_a_worker_is_told_as_here(small: Tiny, scheduler: str) -> None:
    lines = ("partition: hour_utc", "checks:", "  - bytes < 0")
    shown = small.model("metrics.wrong", "SELECT hour_utc, bytes FROM staging.hour", HOUR_COLUMNS, *lines)
    said = small.build("--scheduler", scheduler, "--project", small.folder)
    local = small.build("--project", small.folder)
    assert said.status == local.status == 1
    assert f"{shown}:" in said.err
    assert said.err.splitlines() == local.err[local.err.index("error: ") :].splitlines()


def test_all_hours_go_to_workers_before_any_detail_is_dropped(small: Tiny, scheduler: str) -> None:
    progress, options = Progress(), BuildOptions()
    settings = Settings((small.data,), small.target, small.folder, keep_hours="1")
    cluster.make_shares(settings, options, scheduler, progress)
    assert progress.hours == 2
    build(settings, Reporter())
    small.file(2, "1,100,2,200,0,0.5")
    cluster.make_shares(settings, options, scheduler, progress)
    assert progress.hours == 3, "older hours are in no share"


def test_an_ended_build_frees_the_target_at_once(small: Tiny, scheduler: str) -> None:
    slow = "SELECT hour_utc, sum(hash(range)) % 1 + any_value(bytes) AS bytes FROM {}, range(100_000_000)\nGROUP BY 1"
    for number in range(40):
        lines = (f"metrics.slow{number}", slow.format("staging.hour"), HOUR_COLUMNS, "partition: hour_utc")
        small.model(*lines)
    words = ["build", "-d", small.data, "-t", small.target, "--scheduler", scheduler, "--project", small.folder]
    ended = subprocess.Popen([sys.executable, "-m", "warehouse", *map(str, words)], cwd=small.folder)
    while not list(small.target.glob("parts/metrics.slow*/*/*.json")):
        assert ended.poll() is None
        time.sleep(0.05)
    ended.send_signal(signal.SIGINT)
    ended.wait()
    began = time.monotonic()
    with hold(small.target, wait=True):
        assert time.monotonic() - began < 10
    assert len(list(small.target.glob("parts/metrics.slow*/*/*.json"))) < 40


def test_workers_that_see_the_files_under_other_names(
    small: Tiny, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = small.base / "there"
    there.mkdir()
    for name in ("data", "target", "project"):
        (small.base / name).mkdir(exist_ok=True)
        (there / name).symlink_to(small.base / name)
    toml = f'[worker_paths]\n"." = "{there}"\n'
    (small.base / "warehouse.toml").write_text(toml)
    settings = settle({"data": [str(small.data)], "target": str(small.target)}, folder=small.base)
    settings = settings._replace(project=small.folder)
    assert settings.on_workers().data == (there / "data",)
    time.sleep(RACY_NS / 1e9 + 0.1)  # the worker can trust the times of these files
    cluster.make_shares(settings, BuildOptions(), scheduler, Reporter())
    (known,) = (small.target / "cache" / "shares").iterdir()
    assert str(there).encode() in known.read_bytes()
    hashed: list[Path] = []
    monkeypatch.setattr(content_hashes, "of_content", lambda path, _: hashed.append(path))
    made = build(settings, Reporter()).outcome.made
    assert {key.partition for key in made} == {"all"}
    assert hashed == [], "content hashes come from the worker, by the names here"


def dask(*words: str | Path, hidden: str = "") -> subprocess.Popen[str]:
    """Start a program of Dask, in which the files of a folder are hidden by an empty, or small, file system."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", *map(str, words)]
    if words[0] == "scheduler":
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *map(str, words[1:])]
    if hidden:
        command = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs {hidden} && exec "$@"', "sh", *command]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)


@contextmanager
def running(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """End these processes after the block."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


can_mount = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount, reason="no right to mount")
def test_shares_of_a_full_disk_and_of_a_worker_without_the_release_are_made_elsewhere(
    small: Tiny, tmp_path: Path
) -> None:
    distributed: Any = import_module("distributed")
    small.target.mkdir(exist_ok=True)
    (small.target / "parts").mkdir()
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", tmp_path)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as local:
        address = local.scheduler_address
        disk = f"-o size=8k tmpfs {small.target / 'parts'}"
        workers = (
            dask(address, *options, "--name", "full", hidden=disk),
            dask(address, *options, "--name", "bare", hidden=f"tmpfs {small.data}"),
            dask(address, *options, "--name", "fit"),
        )
        with running(*workers), distributed.Client(address) as client:
            client.wait_for_workers(3, timeout=60)
            said = small.build("--scheduler", address, "--project", small.folder)
    assert said.status == 0, said
    told = " ".join(said.err.split())  # a worker that is offered no share, as the fit one was quicker, says nothing
    reasons = (f"the disk of {small.target} is full", "the data folders have other files here")
    assert told.count("makes nothing") == sum(reason in told for reason in reasons) >= 1, said.err


def test_the_end_of_the_scheduler_is_one_sentence_and_the_next_build_goes_on(small: Tiny, tmp_path: Path) -> None:
    slow = "SELECT hour_utc, sum(hash(range)) % 1 + any_value(bytes) AS bytes FROM staging.hour, range({})\nGROUP BY 1"
    small.model("metrics.slow", slow.format(3_000_000_000), HOUR_COLUMNS, "partition: hour_utc")
    file = tmp_path / "scheduler.json"
    words = ("--scheduler-file", file, "--no-dashboard")
    scheduler = dask("scheduler", *words, "--port", "0", "--host", "127.0.0.1")
    worker = dask(*words, "--nthreads", "1", "--no-nanny", "--local-directory", tmp_path)
    with running(scheduler, worker):
        while not file.exists():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        build = subprocess.Popen(
            [sys.executable, "-m", "warehouse", "build", "-d", small.data, "-t", small.target, "--scheduler", address],
            cwd=small.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        while not list(small.target.glob("parts/staging.hour/*/*.json")):
            assert build.poll() is None, build.communicate()
            time.sleep(0.05)
        scheduler.kill()
        _, said = build.communicate(timeout=120)
    assert build.returncode == 1
    assert said.splitlines() == [
        f"error: the scheduler {address} has ended",
        "       Parts that were made stay: the next build goes on from them.",
    ]
    small.model("metrics.slow", slow.format(1), HOUR_COLUMNS, "partition: hour_utc")
    made = small.made("--wait")
    assert f"staging.hour {HOURS[0]}" not in made
    assert f"metrics.slow {HOURS[0]}" in made
