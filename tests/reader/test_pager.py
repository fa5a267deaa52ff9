"""Answers that are longer than the screen go to the pager; shorter ones and pipes do not."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PAGER = "sed 's/^/paged: /'"


def in_terminal(*words: str | Path, lines: int, pager: str | None = PAGER) -> str:
    """Run a command whose stdout is a terminal of 80 columns, and return what it prints."""
    leader, follower = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("PAGER", "LESS")}
    environment |= {"LINES": str(lines), "COLUMNS": "80", "TERM": "xterm"} | ({"PAGER": pager} if pager else {})
    command = [sys.executable, "-m", "warehouse", *map(str, words)]
    with subprocess.Popen(command, stdout=follower, stdin=follower, env=environment) as process:
        os.close(follower)
        said = b""
        with contextlib.suppress(OSError):  # the terminal is closed
            while read := os.read(leader, 65536):
                said += read
    os.close(leader)
    assert process.returncode == 0
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [("findings",), ("show", "metrics.port_hour"), ("show", "cluster")])
def test_what_is_longer_than_the_screen_is_paged(built: Path, words: tuple[str, ...]) -> None:
    said = in_terminal(*words, "-t", built, lines=12)
    assert all(line.startswith("paged: ") for line in said.splitlines())
    plain = in_terminal(*words, "-t", built, lines=2000)
    assert said.replace("paged: ", "") == plain
    assert in_terminal(*words, "-t", built, lines=12, pager="no-such-pager") == plain
    assert in_terminal(*words, "-t", built, lines=12, pager="''") == plain


def test_less_gets_the_options_of_git(built: Path) -> None:
    said = in_terminal("show", "metrics.port_hour", "-t", built, lines=12, pager="sh -c 'echo $LESS'")
    assert said == "FRX\n"


def test_a_pipe_is_not_paged(built: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", PAGER)
    assert "paged: " not in command("show", "metrics.port_hour", "-t", built).out


def test_ctrl_c_is_for_the_pager(built: Path) -> None:
    pager = f"{sys.executable} -c 'import os, signal; os.kill(os.getppid(), signal.SIGINT); print(42)'"
    assert in_terminal("show", "metrics.port_hour", "-t", built, lines=12, pager=pager) == "42\n"
