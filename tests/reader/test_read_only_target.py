"""Read-only target of another user: reading works, and a citation goes to the user's state folder."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.tiny import Tiny

Snapshot = Callable[[Path], dict[str, bytes]]
VERSION = 0x20080522  # of the structures of capset(2): effective, permitted and inheritable rights, twice 32 bits
IGNORE_MODES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@pytest.fixture(autouse=True)
def modes_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let even root respect file modes: this thread, and those that it starts, do without two capabilities."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if os.geteuid():
        yield
        return
    libc, header, rights = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(VERSION), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, rights) == 0
    before, rights[0] = rights[0], rights[0] & ~IGNORE_MODES
    assert libc.capset(header, rights) == 0
    yield
    rights[0] = before
    assert libc.capset(header, rights) == 0


def close(folder: Path) -> None:
    """Remove write permission from a folder and everything below it."""
    for path in [*folder.rglob("*"), folder]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    assert not os.access(folder, os.W_OK, effective_ids=True)


@pytest.fixture
def closed(tiny: Tiny) -> Tiny:
    assert tiny.build().status == 0
    close(tiny.target)
    return tiny


def test_a_citation_of_a_read_only_target_is_in_the_state_folder(
    closed: Tiny, command: Command, snapshot: Snapshot, tmp_path: Path
) -> None:
    before = snapshot(closed.target)
    said = command("sql", "--cite", "FROM metrics.total", "-t", closed.target)
    assert said.status == 0, said
    name = said.err.split("citation ")[1].strip()
    assert list((tmp_path / "state" / "warehouse" / "citations").glob(f"*/{name}.json"))
    again = command("cite", name[:6], "-t", closed.target)
    assert (again.status, again.out.splitlines()[-1]) == (0, "same")
    assert name in command("cite", "-t", closed.target).out
    assert command("cite", "-t", closed.base / "other").out == "", "a list is of one target"
    close(tmp_path / "state")
    said = command("sql", "--cite", "SELECT 1 AS a", "-t", closed.target)
    assert said.status == 2
    assert "the citation cannot be kept: neither" in said.err
    assert "XDG_STATE_HOME" in said.err
    assert snapshot(closed.target) == before


def test_reading_commands_work_on_a_read_only_target_and_writing_ones_fail_with_one_sentence(
    closed: Tiny, command: Command, snapshot: Snapshot
) -> None:
    before = snapshot(closed.target)
    for line in ("verify --quick", "clean", "ls"):
        said = command(*line.split(), "-t", closed.target)
        assert said.status == 0, said
    for line in ("clean --yes", "relocate", "rollback"):
        said = command(*line.split(), "-t", closed.target)
        assert said.status != 0
        assert "cannot be written" in said.err
    assert snapshot(closed.target) == before


def test_a_plan_of_a_read_only_target_is_that_of_a_writable_one(
    tiny: Tiny, command: Command, snapshot: Snapshot
) -> None:
    assert tiny.build().status == 0
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10")
    tiny.file(2, "1,100,2,200,0,0.5")
    tiny.file(1, "1,100,2,200,0,0.5", "torn")
    asked = ("plan", "-d", tiny.data, "-t", tiny.target)
    writable = command(*asked)
    assert (writable.status, "make" in writable.out) == (0, True)
    close(tiny.target)
    before = snapshot(tiny.target)
    assert command(*asked).out == writable.out
    assert snapshot(tiny.target) == before


def test_a_report_of_a_read_only_target_has_valid_citations(two_leaves: Path, command: Command, tmp_path: Path) -> None:
    target = tmp_path / "closed"
    shutil.copytree(two_leaves, target)
    assert command("relocate", "-t", target).status == 0
    close(target)
    said = command("report", tmp_path / "report.html", "-t", target)
    assert said.status == 0, said
    assert len(command("cite", "-t", target).out.splitlines()) > 3
