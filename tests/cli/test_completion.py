"""Tab completion: installed shells read the scripts, which name the options of the command line."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import Command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_completes_commands_options_and_queries(run_cli: Command, shell: str) -> None:
    said = run_cli("completion", shell)
    assert said.status == 0
    for word in ("build", "verify", "completion", "hottest-uplinks", "max-rejected"):
        assert word in said.out
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=said.out, encoding="utf-8", check=True)


def test_bash_completes_a_command_an_option_and_a_query(run_cli: Command) -> None:
    script = run_cli("completion", "bash").out
    for line, wanted in (
        ("warehouse ver", "verify"),
        ("warehouse build --para", "--paranoid"),
        ("warehouse sql -q suspect-l", "suspect-links"),
    ):
        words = line.split(" ")
        typed = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
        code = f'{script}\n{typed}; _warehouse; echo "${{COMPREPLY[@]}}"'
        found = subprocess.run(["bash", "-c", code], capture_output=True, encoding="utf-8", check=True)
        assert found.stdout.split() == [wanted]
