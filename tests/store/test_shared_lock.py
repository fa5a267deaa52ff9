"""The lock of a target on a file system of several machines."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from warehouse.base.errors import LockedError
from warehouse.store import lock, shared_lock
from warehouse.store.atomic import orphaned_files, temporary_path
from warehouse.store.origin import has_ended, machine
from warehouse.store.shared_lock import FOLDER, Holder, hold_on_network, is_on_network


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock of the waiter; each sleep moves it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return the file of a holder on another machine."""
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / "build-other~00000000-1-0"
    path.write_text(json.dumps({"machine": "other~00000000", "pid": 1, "count": 1}))
    return path


def test_a_holder_that_stood_still_for_a_minute_is_taken_for_ended(
    tmp_path: Path, elsewhere: Path, clock: list[float]
) -> None:
    begun = clock[0]
    with hold_on_network(tmp_path, wait=False, shared=False) as holder:
        assert not elsewhere.exists()
        assert 60 <= clock[0] - begun < 62
        holder.confirm()
        holder._path.unlink()  # as another does that saw no change for a minute
        with pytest.raises(LockedError, match="lock was lost"):
            holder.confirm()
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_holder_that_raises_its_counter_is_named(
    tmp_path: Path, elsewhere: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(seconds: float) -> None:
        clock[0] += seconds
        elsewhere.write_text(json.dumps({"machine": "other~00000000", "pid": 1, "count": clock[0]}))

    monkeypatch.setattr(time, "sleep", work)
    with (
        pytest.raises(LockedError, match=r"another build holds .* \(process 1 on other\)"),
        hold_on_network(tmp_path, wait=False, shared=False),
    ):
        pass


def test_a_share_is_named_as_such(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = elsewhere.rename(elsewhere.with_name("share-other~00000000-1-0"))
    monkeypatch.setattr(Holder, "is_alive", lambda _: share)
    with (
        pytest.raises(LockedError, match="a share of a build holds"),
        hold_on_network(tmp_path, wait=False, shared=False),
    ):
        pass


def test_a_holder_that_cannot_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"), hold_on_network(tmp_path, wait=False, shared=False):
        pass
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_a_dead_process_of_this_machine_holds_nothing(tmp_path: Path, elsewhere: Path, clock: list[float]) -> None:
    elsewhere.write_text(json.dumps({"machine": machine(), "pid": 2**22 + 1, "count": 1}))
    with hold_on_network(tmp_path, wait=False, shared=False):
        assert clock == [100.0]


def test_shares_hold_it_together_and_a_build_alone(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    first, second, build = (Holder(tmp_path / FOLDER, shared=shared) for shared in (True, True, False))
    assert first.take()
    assert second.take()
    assert not build.take()
    first.release()
    assert not build.take()
    second.release()
    assert build.take()
    assert not first.take()
    build.release()


def test_the_counter_goes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lock, "BEAT_SECONDS", 0.01)
    with hold_on_network(tmp_path, wait=False, shared=False) as holder:
        while json.loads(holder._path.read_text())["count"] < 3:
            pass


def test_a_target_on_a_network_is_locked_by_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lock, "is_on_network", lambda _: True)
    with lock.hold(tmp_path) as held:
        assert len(list((tmp_path / FOLDER).iterdir())) == 1
        held.confirm()
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    real = os.path.realpath(tmp_path)
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:9 / {real}/a\\040b rw shared:1 - nfs4 server:/x rw\n"
        f"3 2 0:9 / {real}/a\\040b/local rw - xfs /dev/sdb rw\n"
        f"4 1 0:9 / {real}/s3 rw - fuse.s3fs s3fs rw\n"
    )
    found = {
        name: is_on_network(tmp_path / name, mounts) for name in ("a", "a b", "a b/x", "a b/local", "a bc", "s3/x")
    }
    assert found == {"a": False, "a b": True, "a b/x": True, "a b/local": False, "a bc": False, "s3/x": True}
    assert not is_on_network(tmp_path, tmp_path / "missing")


def test_temporary_names_say_where_they_come_from(tmp_path: Path) -> None:
    one, other = temporary_path(tmp_path / "x"), temporary_path(tmp_path / "x")
    assert one != other
    assert one.name.endswith(f".{machine()}.{os.getpid()}")


def test_a_temporary_file_of_another_machine_is_left_for_a_day(tmp_path: Path) -> None:
    path = tmp_path / f".x.parquet.01234567.other~00000000.{2**22 + 1}"
    path.touch()
    assert has_ended("other~00000000", 1) is None
    assert list(orphaned_files(tmp_path)) == []
    then = path.stat().st_mtime - 90_000
    os.utime(path, (then, then))
    assert list(orphaned_files(tmp_path)) == [path]
