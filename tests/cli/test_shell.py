"""Shell: statements, options of `warehouse sql`, Tab and history, in a terminal and from a pipe."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.environments import ROOT, environment

COMMAND = [sys.executable, "-m", "warehouse", "sql", "-t"]


def test_a_session_in_a_terminal(target: Path, tmp_path: Path) -> None:
    """Type a statement over two lines, complete with Tab, get an answer; Ctrl-C clears a line, Ctrl-D leaves."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb", "COLUMNS": "80", "LINES": "30"}
    run = subprocess.Popen(
        [*COMMAND, str(target)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C becomes a signal
    )
    os.close(theirs)
    said = ""

    def until(text: str, key: bytes = b"") -> None:
        """Wait for a text; press a key, and again when nothing comes for long."""
        nonlocal said
        ends = time.monotonic() + 60
        os.write(ours, key)
        while text not in said:
            assert time.monotonic() < ends, said
            if select.select([ours], [], [], 8)[0]:
                said += os.read(ours, 65536).decode(errors="replace")
            else:
                os.write(ours, key)
        said = said.partition(text)[2]

    def write(text: bytes) -> None:
        until("warehouse> ")
        os.write(ours, text)

    try:
        write(b"SELECT 'was ' || 'found' AS it, count(*) AS n\r")
        until(" . ")
        os.write(ours, b"FROM topology.swit\t")
        until("ches")  # added by Tab
        os.write(ours, b";\r")
        until("was found  3")
        write(b"SELECT nothing")
        until("nothing")  # Ctrl-C discards keys that readline has seen but not read, and it would wait for others
        until("warehouse> ", key=b"\x03")  # Python may miss a Ctrl-C that comes just before it waits for a key
        os.write(ours, b"-q nic --ser\t")
        until("ver")
        os.write(ours, b" GPU-1\r")
        until("mlx5_0")
        write(b"SELECT nme FROM topology.ports;\r")
        until("no column nme")
        write(b"-q nic --format xml\r")
        until("not one of")
        write(b"COPY topology.ports TO 'x.csv';\r")
        until("COPY is refused")
        write(b"\x04")
        assert run.wait(30) == 0
    finally:
        run.kill()
        run.wait()
        os.close(ours)
    assert "topology.switches" in (tmp_path / "warehouse" / "history").read_text(encoding="utf-8")


CASES = (
    ("", "SELECT 1 AS a\n;\n-- the second\nSELECT 2 AS b", 0, "a\n1\nb\n2\n", ""),
    ("", "--format jsonl 'SELECT 1 AS a'\nSELECT 2 AS b;\nexit\nSELECT 3", 0, '{"a": 1}\nb\n2\n', ""),
    ("", "SELECT x;\nSELECT 1", 2, "", "error: no column x"),
    ("", "-q nic --server 'GPU", 2, "", "error: No closing quotation in: -q nic"),
    ("--limit 1 --format csv", "FROM range(2);\nFROM range(5, 7);", 0, "range\n0\nrange\n5\n", ""),
)


def test_input_from_a_pipe_ends_at_the_first_error(
    target: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    for options, text, status, out, err in CASES:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        said = command("sql", "-t", target, *options.split())
        assert (said.status, said.out, said.err[: len(err)]) == (status, out, err), text


def test_shtab_completes_the_command() -> None:
    """As docs/recipes/README.md says; shtab is MPL-2.0 and no dependency."""
    python = environment("shtab-1.13.0", "shtab==1.13.0\n")
    [packages] = (python.parents[1] / "lib").glob("*/site-packages")
    said = subprocess.run(
        [sys.executable, "-m", "shtab", "--shell", "bash", "warehouse.cli.parser"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    for word in ("build", "verify", "max-rejected"):
        assert word in said.stdout
