"""Output files on a full disk, and commands that may open few files: one sentence, and the last good file stays."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bi.superset.__main__ import main as write_bundle
from warehouse.reader.bounded_query import _STATEMENT

if TYPE_CHECKING:
    from tests.conftest import Command

FULL = """\
import os
def fail(_): raise OSError(28, "No space left on device")
os.fsync = fail
"""
GOOD = b"the last good one"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full when a file is flushed, as with a network file system."""

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("sql", "SELECT 1 AS one", "-o"), "one.csv"),
        (("sql", "SELECT 1 AS one", "-o"), "one.parquet"),
        (("sql", "SELECT 1 AS one", "--timeout", "300", "-o"), "one.json"),
        (("report",), "report.html"),
    ],
)
@pytest.mark.usefixtures("full")
def test_a_full_disk_keeps_the_last_good_file(
    built: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], name: str
) -> None:
    monkeypatch.setattr("warehouse.reader.bounded_query._STATEMENT", FULL + _STATEMENT)
    page = tmp_path / name
    page.write_bytes(GOOD)
    said = command(*words, page, "-t", built)
    assert (said.status, said.err.startswith("error: "), name in said.err) == (2, True, True)
    assert "No space left on device" in said.err
    assert files(tmp_path) == {name: GOOD}


def test_a_full_disk_keeps_the_last_export(
    target: Path, tmp_path: Path, command: Command, request: pytest.FixtureRequest
) -> None:
    words = ("export", tmp_path / "out", "-s", "metrics.leaf_hour", "--format", "csv", "-t", target)
    assert command(*words).status == 0
    before = files(tmp_path)
    request.getfixturevalue("full")
    said = command(*words)
    assert (said.status, "No space left on device" in said.err) == (2, True)
    assert files(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk of 1 MB")
def test_a_disk_that_is_full_indeed_is_one_sentence(target: Path, tmp_path: Path, command: Command) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        (disk / "filler").write_bytes(bytes(40_000))
        for words in (
            ("sql", "SELECT hash(range) FROM range(200000)", "-o", disk / "x.parquet"),
            ("export", disk / "all", "--all"),
            ("export", disk / "one", "--format", "duckdb"),
            ("export", disk / "sheets", "--format", "xlsx"),
        ):
            said = command(*words, "-t", target)
            assert said.status == 2
            assert "full" in said.err or "No space left on device" in said.err
            assert not any(word in said.err for word in ("exception_type", "moved"))
        assert not list(disk.rglob("*.parquet"))
    finally:
        gc.collect()  # a workbook that could not be closed
        subprocess.run(["umount", disk], check=True)


@pytest.mark.usefixtures("full")
def test_a_bundle_stays_on_a_full_disk(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(GOOD)
    monkeypatch.setattr(sys, "argv", ["superset", str(built), "duckdb:////x.duckdb", str(bundle)])
    assert write_bundle() == 2
    assert "No space left" in capsys.readouterr().err
    assert files(tmp_path) == {"bundle.zip": GOOD}


@pytest.mark.parametrize("most", [7, 9])
def test_few_open_files_are_one_sentence(sample: Path, tmp_path: Path, most: int) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "warehouse", "build", "-d", sample, "--quiet", "-t", tmp_path / "new"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)),
    )
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == f"error: only {most} files may be open at once, and more are needed\n       ulimit -n 1024\n"
