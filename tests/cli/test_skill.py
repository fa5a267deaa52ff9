"""`warehouse skill`: a short SKILL.md whose commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.conftest import Command, call
from warehouse.cli.agent_commands import run_skill

TEXT = (Path(run_skill.__code__.co_filename).with_name("SKILL.md")).read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```\n(.*?)^```", TEXT, re.M | re.S) for line in block.splitlines()]


def test_it_is_printed_and_short(command: Command) -> None:
    assert command("skill") == (0, TEXT, "")
    assert len(TEXT.splitlines()) <= 80
    _, header, _ = TEXT.split("---\n", 2)
    assert yaml.safe_load(header).keys() == {"name", "description"}
    assert len(yaml.safe_load(header)["description"]) <= 1024


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_it_runs(line: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_AGENT", "1")
    name, *words = shlex.split(line)
    said = call(*words, "-t", built, cwd=tmp_path)
    assert (name, said.status) == ("warehouse", 0), said
    assert said.out


def test_its_names_exist(built: Path, command: Command) -> None:
    for name in re.findall(r"`((?:metrics|topology)\.\w+)`", TEXT):
        assert command("show", name, "-t", built).status == 0, name
