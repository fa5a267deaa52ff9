"""Atomic file writes, the lock of a target, what killed processes left; damaged files make way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.tiny import Tiny
from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store.atomic import (
    hold,
    replacing,
    scratch_folder,
)


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


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
    with scratch_folder("plan") as first:
        os.utime(first, (1, 1))  # its command runs since long
        with scratch_folder("diff") as second:
            assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name, ".warehouse-notes"}
    assert [path.name for path in tmp_path.iterdir()] == [".warehouse-notes"]


# the lock -----------------------------------------------------------------------------------------


def test_a_second_build_ends_with_status_3_and_names_the_process_or_waits(tiny: Tiny) -> None:
    held, release = threading.Event(), threading.Event()

    def other() -> None:
        with hold(tiny.target):
            held.set()
            release.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    held.wait(30)
    said = tiny.build()
    assert said.status == 3
    assert f"another build holds {tiny.target} (process {os.getpid()})\n       --wait waits" in said.err
    assert not (tiny.target / "warehouse.duckdb").exists()
    threading.Timer(0.5, release.set).start()
    assert tiny.build("--wait").status == 0
    assert release.is_set()
    thread.join()


def test_a_killed_or_interrupted_process_leaves_no_lock(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from warehouse.store.atomic import hold\n"
        "with hold(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=f"process {process.pid}"), hold(tmp_path):
            pass
        process.kill()
    with pytest.raises(KeyboardInterrupt), hold(tmp_path):
        raise KeyboardInterrupt
    with hold(tmp_path):
        pass


def test_an_unwritable_target_or_one_that_the_engine_misreads_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for below in ("", "target"):
        refused = pytest.raises(WarehouseError, match=r"the target .*/file.* cannot be written: ")
        with refused, hold(tmp_path / "file" / below):
            pass
    for mark in "\\?*":
        with pytest.raises(SettingsError) as raised, hold(tmp_path / f"a{mark}b"):
            pass
        assert f"a target's path cannot hold `{mark}`" in str(raised.value)
