"""Atomic file writes; what killed processes left; damaged files make way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from warehouse.store.atomic import (
    TEMPORARY,
    leftovers,
    quarantine,
    quarantine_misplaced,
    remove,
    replacing,
    scratch_folder,
    temporary_path,
    write_text,
)


def test_what_killed_processes_left_is_found_and_nothing_else(tmp_path: Path) -> None:
    left = []
    for name in ("warehouse.duckdb", "builds/0123456789abcdef", "builds/current", "builds/0123456789abcdef/files.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        left.append(temporary_path(tmp_path / name))
    for name in ("part.parquet", "build", ".hidden"):
        (tmp_path / TEMPORARY).mkdir(exist_ok=True)
        left.append(tmp_path / TEMPORARY / name)
    for place in left:
        place.mkdir()
    for name in ("parts/a/.f.parquet", ".git", "builds/.notes", "cache/unpacked/a/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(leftovers(tmp_path)) == sorted(left)
    assert leftovers(tmp_path / "missing") == []


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("write_text", OSError(28, "No space left on device")),
        ("replace", OSError(21, "Is a directory")),
        ("replace", KeyboardInterrupt()),
    ],
)
def test_a_write_that_fails_leaves_the_last_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    write_text(tmp_path / "x.json", "ü")
    write_text(tmp_path / "x.json", "ö")
    monkeypatch.setattr(Path, step, raising(error))
    with pytest.raises(type(error)) as raised:
        write_text(tmp_path / "x.json", "text")
    assert isinstance(error, KeyboardInterrupt) or "x.json" in str(raised.value)
    assert [path.read_bytes().decode() for path in tmp_path.iterdir()] == ["ö"]


def test_a_link_is_removed_alone_and_a_folder_disappears_before_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    for name in ("missing", "link"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", removed.append)
    for name in ("folder", ".temporary.1.2"):
        (tmp_path / name).mkdir()
        remove(tmp_path / name)
    assert [path.exists() for path in removed] == [True, True]
    assert not (tmp_path / "folder").exists()
    assert removed[1].name == ".temporary.1.2"


def test_quarantine_keeps_each_damaged_file_and_says_where(tmp_path: Path) -> None:
    damaged = tmp_path / "parts" / "x"
    damaged.parent.mkdir()
    places = []
    for text in ("first", "second", "third"):
        damaged.write_text(text)
        places.append(quarantine(tmp_path, damaged))
        assert not damaged.exists()
    folder = tmp_path / "damaged" / "parts"
    assert places == [folder / "x", folder / "x.1", folder / "x.2"]
    assert [place.read_text() for place in places] == ["first", "second", "third"]


def test_pipes_and_broken_links_in_a_target_make_way(tmp_path: Path) -> None:
    (tmp_path / "builds" / ("0" * 16)).mkdir(parents=True)
    os.mkfifo(tmp_path / "warehouse.duckdb")
    os.mkfifo(tmp_path / "builds" / ("0" * 16) / "manifest.json")
    (tmp_path / "parts").symlink_to("nowhere")
    (tmp_path / TEMPORARY).touch()
    (tmp_path / "builds" / "current").touch()
    (tmp_path / "builds" / ("b" * 16)).touch()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "clean").touch()
    names = {"warehouse.duckdb", f"builds/{'0' * 16}/manifest.json", "parts", TEMPORARY}
    names |= {f"builds/{'b' * 16}", "cache/clean"}
    assert set(quarantine_misplaced(tmp_path)) == names
    assert all(os.path.lexists(tmp_path / "damaged" / name) for name in names)
    assert list(quarantine_misplaced(tmp_path)) == []


def test_an_output_file_is_replaced_as_a_whole_or_stays_and_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, link = tmp_path / "page.html", tmp_path / "latest.html"
    page.write_text("good", encoding="utf-8")
    page.chmod(0o640)
    link.symlink_to("page.html")
    with replacing(link) as path:
        path.write_text("new", encoding="utf-8")
        assert page.read_text(encoding="utf-8") == "good"
    assert (page.read_text(encoding="utf-8"), page.stat().st_mode & 0o777) == ("new", 0o640)
    assert link.is_symlink()
    monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space") as raised, replacing(page) as path:
        path.write_text("half", encoding="utf-8")
    assert raised.value.filename == str(page)
    assert page.read_text(encoding="utf-8") == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "latest.html"}


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        with replacing(pipe) as path:
            path.write_text("rows", encoding="utf-8")
        assert reader.communicate()[0] == b"rows"
    assert pipe.is_fifo()


SCRATCH = """
import os, signal
from warehouse.store.atomic import scratch_folder

with scratch_folder("publish") as folder:
    (folder / "rows.csv").write_text("rows")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_scratch_folder_of_a_killed_command_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = subprocess.run([sys.executable, "-c", SCRATCH], env=os.environ | {"TMPDIR": str(tmp_path)}, check=False)
    assert killed.returncode == -9
    [left] = tmp_path.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700
    os.utime(left, (1, 1))  # a new one may be of a command that has not locked it yet
    (tmp_path / ".warehouse-notes").write_text("of somebody", encoding="utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_folder("plan") as first, scratch_folder("diff") as second:
        assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name, ".warehouse-notes"}
    assert [path.name for path in tmp_path.iterdir()] == [".warehouse-notes"]
