"""Atomic file writes; what killed processes left; damaged files make way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.store.atomic import (
    TEMPORARY,
    is_misplaced,
    leftovers,
    quarantine,
    quarantine_misplaced,
    remove,
    replacing,
    scratch_folder,
    sync,
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


def test_a_write_that_fails_leaves_no_temporary_file_and_names_the_file(tmp_path: Path) -> None:
    place = tmp_path / "x.json"
    place.mkdir()
    with pytest.raises(OSError, match=r"x\.json"):
        write_text(place, "text")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "y.json", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_file_that_cannot_take_its_place_is_removed(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_text(tmp_path / "folder", "content")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "file", "content")
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_is_complete_and_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "x.json", "ü")
    write_text(tmp_path / "x.json", "ö")
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == "ö"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(TypeError):
        write_text(tmp_path / "y.json", b"text")  # type: ignore[arg-type]
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space") as raised:
        write_text(tmp_path / "y.json", "text")
    assert raised.value.filename == str(tmp_path / "y.json")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_sync_flushes_a_file_and_closes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((handle, os.fstat(handle).st_ino)))
    sync(tmp_path)
    ((handle, inode),) = synced
    assert inode == tmp_path.stat().st_ino
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_a_folder_disappears_before_its_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", removed.append)
    for name in ("folder", ".temporary.1.2"):
        (tmp_path / name).mkdir()
        remove(tmp_path / name)
    assert [path.exists() for path in removed] == [True, True]
    assert not (tmp_path / "folder").exists()
    assert removed[1].name == ".temporary.1.2"


def test_remove_takes_files_links_and_folders_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "link").symlink_to("folder")
    remove(tmp_path / "missing")
    remove(tmp_path / "link")
    assert (tmp_path / "folder" / "file").exists()
    remove(tmp_path / "folder" / "file")
    remove(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


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


def test_what_is_no_file_is_in_the_way_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    assert not is_misplaced(tmp_path / "missing")
    assert not is_misplaced(tmp_path / "file")
    assert is_misplaced(tmp_path / "file", folder=True)
    assert is_misplaced(tmp_path)
    assert not is_misplaced(tmp_path, folder=True)
    assert is_misplaced(tmp_path / "dangling")


def test_pipes_and_broken_links_in_a_target_make_way(tmp_path: Path) -> None:
    (tmp_path / "builds" / ("0" * 16)).mkdir(parents=True)
    os.mkfifo(tmp_path / "warehouse.duckdb")
    os.mkfifo(tmp_path / "builds" / ("0" * 16) / "manifest.json")
    (tmp_path / "parts").symlink_to("nowhere")
    (tmp_path / TEMPORARY).touch()
    names = {"warehouse.duckdb", f"builds/{'0' * 16}/manifest.json", "parts", TEMPORARY}
    assert set(quarantine_misplaced(tmp_path)) == names
    assert all(os.path.lexists(tmp_path / "damaged" / name) for name in names)
    assert list(quarantine_misplaced(tmp_path)) == []


def test_an_output_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "latest.html"
    page.write_text("good", encoding="utf-8")
    page.chmod(0o640)
    link.symlink_to("page.html")
    with replacing(link) as path:
        path.write_text("half", encoding="utf-8")
        assert page.read_text(encoding="utf-8") == "good"
    assert (page.read_text(encoding="utf-8"), page.stat().st_mode & 0o777) == ("half", 0o640)
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "latest.html"}


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_an_output_file_stays_as_it_was_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    page = tmp_path / "page.html"
    page.write_text("good", encoding="utf-8")

    def write() -> None:
        with replacing(page) as path:
            path.write_text("half", encoding="utf-8")
            if failing == "write":
                full()

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as raised:
        write()
    assert raised.value.filename == str(page)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["good"]


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
