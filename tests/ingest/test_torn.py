"""An interrupted build leaves all tables unchanged and exits with a nonzero status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import warehouse
from bench.chain_models import MODELS, chain, write
from tests.conftest import PATIENCE, SETTINGS, Restored

OLD, NEW = 900, 700
BUILD = (sys.executable, "-m", "warehouse", "build")


def start(project: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.Popen(BUILD, cwd=project, env=environment, stderr=subprocess.PIPE, text=True)


def tables(project: Path) -> Mapping[str, list[tuple[object, ...]]]:
    """Return all rows of every published table."""
    with warehouse.open(project / "build" / "warehouse") as connection:
        return {
            link.full_name: connection.execute(f"FROM {link.full_name} ORDER BY ALL").fetchall() for link in chain()
        }


@pytest.fixture
def project(restored: Restored) -> Path:
    """The chain of 30 models, built."""

    def make(folder: Path) -> None:
        write("warehouse", folder, chain(rows=OLD, checked=True))
        with start(folder) as process:
            assert process.wait(120) == 0

    return restored("chain", make)


@pytest.mark.parametrize("fault", ["model", "check"])
def test_a_failed_build_leaves_every_table_unchanged(project: Path, fault: str) -> None:
    before = tables(project)
    assert len(before) == MODELS
    write("warehouse", project, chain(rows=NEW, checked=True, fault=fault))
    with start(project) as process:
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    assert "error: models/topology/moved_05.sql" in said
    assert tables(project) == before


@pytest.mark.parametrize("made", [1, 15, MODELS])
def test_a_killed_build_leaves_every_table_unchanged_and_the_next_one_completes(project: Path, made: int) -> None:
    before, parts = tables(project), project / "build" / "warehouse" / "parts"
    write("warehouse", project, chain(rows=NEW, checked=True))
    there = len(list(parts.rglob("*.parquet")))
    with start(project) as process:
        while process.poll() is None and len(list(parts.rglob("[!.]*.parquet"))) < there + made:
            pass
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) in (-signal.SIGKILL, 0)
    found = tables(project)
    with start(project) as process:
        assert process.wait(120) == 0
    after = tables(project)
    assert [len(after[link.full_name]) for link in chain() if link.layer == "staging"] == [NEW] * 10
    assert found in (before, after)  # if killed after the rename, all tables are new
    assert found == before or made == MODELS
