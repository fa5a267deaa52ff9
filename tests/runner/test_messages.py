"""External failures end a build with one sentence and a hint, without a traceback."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.ingest import raw_files
from warehouse.runner import task
from warehouse.store import atomic, state
from warehouse.store.walk import Folder, walk


def limited(kind: int, size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (size, size))


def run(tiny: Tiny, *words: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    words = ("build", "-d", str(tiny.data), "-t", str(tiny.target), "--project", str(tiny.folder), *words)
    return subprocess.run(
        [sys.executable, "-m", "warehouse", *words], capture_output=True, text=True, preexec_fn=before, check=False
    )


def told(said: str) -> None:
    assert "Traceback" not in said
    assert "nanobind" not in said
    assert said.count("error: ") == 1


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a" + ".b" * 100_000 + " = 1"])
def test_a_config_nested_too_deeply_is_one_sentence(tmp_path: Path, command: Command, text: str) -> None:
    (tmp_path / "warehouse.toml").write_text(text, encoding="utf-8")
    said = command("ls", cwd=tmp_path)
    assert said.status == 2
    told(said.err)
    assert "warehouse.toml" in said.err


PHASES = {
    "state": (state.State, "put"),
    "a part": (task, "sync"),
    "publishing": (atomic, "sync"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_full_disk_is_one_sentence(tiny: Tiny, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    module, name = PHASES[phase]
    monkeypatch.setattr(module, name, full)
    if phase == "publishing":
        monkeypatch.setattr("warehouse.runner.publish.sync", full)
    said = tiny.build()
    assert said.status == 2
    told(said.err)
    assert f"the disk of {tiny.target} is full" in said.err
    assert "needs up to 50.0 MB" in said.err


def test_a_limit_of_file_sizes_names_the_file(tiny: Tiny) -> None:
    said = run(tiny, before=limited(resource.RLIMIT_FSIZE, 100))
    assert said.returncode == 2
    told(said.stderr)
    assert "would be larger than a file may be here" in said.stderr
    assert "error: /" in said.stderr


def test_too_little_memory_to_start_is_one_sentence(tiny: Tiny) -> None:
    said = run(tiny, before=limited(resource.RLIMIT_AS, 150_000_000))
    assert said.returncode == 2
    told(said.stderr)
    assert "this process may take 150.0 MB of memory, and a build needs 1.0 GB at least" in said.stderr


def test_a_failed_build_shows_its_error_without_engine_internals(tiny: Tiny) -> None:
    tiny.model("staging.ports", "SELECT nothing FROM reference.speeds", {"port": "VARCHAR"})
    said = run(tiny)
    assert said.returncode == 1
    told(said.stderr)


def test_a_raw_file_removed_early_in_a_build_is_one_sentence(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, *_) = sorted(tiny.data.rglob("*.csv"))

    def folders(*given: Any, **named: Any) -> dict[str, Folder]:
        found = walk(*given, **named)
        for path in tiny.data.rglob("*.csv"):
            path.unlink()
        return found

    monkeypatch.setattr(raw_files, "walk", folders)
    said = tiny.build()
    assert said.status == 2
    told(said.err)
    assert "2 files changed while the build ran" in said.err
    assert "Build again when nothing writes there" in said.err
    assert not os.path.lexists(first)


@pytest.mark.parametrize("name", ["warehouse.toml", "models/metrics/x.sql", "sql/queries/q.sql"])
def test_a_pipe_in_a_project_is_one_sentence(tmp_path: Path, command: Command, name: str) -> None:
    project = tmp_path / "own"
    (project / name).parent.mkdir(parents=True)
    os.mkfifo(project / name)
    (project / "models").mkdir(exist_ok=True)
    words = ("sql", "-q", "q") if "queries" in name else ("render", "metrics.port_hour")
    said = command(*words, "--project", project, cwd=project)
    assert said.status in (1, 2)
    assert "not a file" in said.err
    assert Path(name).name in said.err


def test_a_pipe_among_macros_is_one_sentence(tiny: Tiny) -> None:
    tiny.model("metrics.more", "SELECT '{{ 1 + 1 }}' AS name", {"name": "VARCHAR"})
    tiny.write("sql/macros/m.sql", "").unlink()
    os.mkfifo(tiny.folder / "sql" / "macros" / "m.sql")
    said = tiny.build()
    assert said.status in (1, 2)
    assert "m.sql" in said.err
    assert "not a file" in said.err


def test_a_huge_configuration_is_refused_at_once(tmp_path: Path, command: Command) -> None:
    for text, said in (("x" * 2_000_000, "larger than"), ("a = '" + "x" * 900_000 + "'", "unknown key `a`")):
        (tmp_path / "warehouse.toml").write_text(text, encoding="utf-8")
        started = time.monotonic()
        assert said in command("ls", cwd=tmp_path).err
        assert time.monotonic() - started < 10


def test_a_pipe_where_the_reviewed_tables_are_listed_is_one_sentence(tiny: Tiny) -> None:
    (tiny.folder / "data" / "tables.yaml").unlink()
    os.mkfifo(tiny.folder / "data" / "tables.yaml")
    said = tiny.build()
    assert said.status in (1, 2)
    told(said.err)
    assert "data/tables.yaml" in said.err
