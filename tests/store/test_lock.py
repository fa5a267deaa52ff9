"""A lock allows one build at a time per target."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.tiny import Tiny
from warehouse.base.errors import LockedError, SettingsError, WarehouseError
from warehouse.store.atomic import hold


def test_a_second_build_ends_with_status_3_and_names_the_process(tiny: Tiny) -> None:
    with hold(tiny.target):
        said = tiny.build()
    assert said.status == 3
    assert said.err.splitlines()[-2:] == [
        f"error: another build holds {tiny.target} (process {os.getpid()})",
        "       --wait waits until it ends",
    ]
    assert not (tiny.target / "warehouse.duckdb").exists()
    assert tiny.build().status == 0  # the lock is free again


def test_a_build_can_wait_for_another(tiny: Tiny) -> None:
    held, release = threading.Event(), threading.Event()

    def other() -> None:
        with hold(tiny.target):
            held.set()
            release.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    held.wait(30)
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


@pytest.mark.parametrize("below", ["", "target"])
def test_an_unwritable_target_is_named_in_the_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(WarehouseError, match=r"the target .*/file.* cannot be written: "),
        hold(tmp_path / "file" / below),
    ):
        pass


@pytest.mark.parametrize("mark", "\\?*")
def test_a_path_that_the_engine_misreads_is_refused(tmp_path: Path, mark: str) -> None:
    with pytest.raises(SettingsError) as raised, hold(tmp_path / f"a{mark}b"):
        pass
    assert f"a target's path cannot hold `{mark}`" in str(raised.value)
