"""Read-only target of another user: reading works, and a citation goes to the user's state folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SETTINGS
from tests.tiny import Tiny

WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override")
"""Root ignores file modes, unless it drops that capability."""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a command which respects file modes even as root."""
    before = () if os.geteuid() else WITHOUT_RIGHTS
    if before and not shutil.which(before[0]):
        pytest.skip("no setpriv: run the tests as another user than root")

    def one(*words: str | Path) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        command = [*before, sys.executable, "-m", "warehouse", *map(str, words)]
        return subprocess.run(
            command, cwd=tmp_path, env=env | {"XDG_STATE_HOME": str(tmp_path / "state")}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip

    return one


def close(folder: Path) -> None:
    """Remove write permission from a folder and everything below it."""
    for path in [*folder.rglob("*"), folder]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def closed(tiny: Tiny) -> Tiny:
    assert tiny.build().status == 0
    close(tiny.target)
    return tiny


def test_a_citation_of_a_read_only_target_is_in_the_state_folder(closed: Tiny, run: Run, tmp_path: Path) -> None:
    before = state(closed.target)
    said = run("sql", "--cite", "FROM metrics.total", "-t", closed.target)
    assert said.returncode == 0, said.stderr
    name = said.stderr.split("citation ")[1].strip()
    assert list((tmp_path / "state" / "warehouse" / "citations").glob(f"*/{name}.json"))
    again = run("cite", name[:6], "-t", closed.target)
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "same")
    assert name in run("cite", "-t", closed.target).stdout
    assert run("cite", "-t", closed.base / "other").stdout == "", "a list is of one target"
    close(tmp_path / "state")
    said = run("sql", "--cite", "SELECT 1 AS a", "-t", closed.target)
    assert said.returncode == 2
    assert "the citation cannot be kept: neither" in said.stderr
    assert "XDG_STATE_HOME" in said.stderr
    assert state(closed.target) == before


def test_reading_commands_work_on_a_read_only_target_and_writing_ones_fail_with_one_sentence(
    closed: Tiny, run: Run
) -> None:
    before = state(closed.target)
    for line in ("verify --quick", "clean", "ls"):
        said = run(*line.split(), "-t", closed.target)
        assert said.returncode == 0, said.stderr
    for line in ("clean --yes", "relocate", "rollback"):
        said = run(*line.split(), "-t", closed.target)
        assert said.returncode != 0
        assert "cannot be written" in said.stderr
        assert "Traceback" not in said.stderr
    assert state(closed.target) == before


def test_a_plan_of_a_read_only_target_is_that_of_a_writable_one(tiny: Tiny, run: Run) -> None:
    assert tiny.build().status == 0
    asked = ("plan", "-d", tiny.data, "-t", tiny.target)
    nothing = run(*asked)
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10")
    tiny.file(2, "1,100,2,200,0,0.5")
    tiny.file(1, "1,100,2,200,0,0.5", "torn")
    something = run(*asked)
    assert "make" in something.stdout
    close(tiny.target)
    before = state(tiny.target)
    assert run(*asked).stdout == something.stdout
    assert state(tiny.target) == before
    assert (nothing.returncode, something.returncode) == (0, 0)


def test_a_report_of_a_read_only_target_has_valid_citations(built: Path, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "closed"
    shutil.copytree(built, target)
    assert run("relocate", "-t", target).returncode == 0
    close(target)
    said = run("report", tmp_path / "report.html", "-t", target)
    assert said.returncode == 0, said.stderr
    assert len(run("cite", "-t", target).stdout.splitlines()) > 3
