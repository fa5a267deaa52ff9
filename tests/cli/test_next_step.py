"""Printed commands: they act on the target that the command before was given."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.settings import settle
from warehouse.base.text import WITH_TARGET, for_target
from warehouse.cli import parser
from warehouse.cli.build_commands import print_remarks
from warehouse.runner.reporter import Reporter


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """Return a folder in which `the target` is that of the sample."""
    (tmp_path / "the target").symlink_to(built)
    return tmp_path


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each command that begins a line, or follows `Next:`."""
    whole = re.sub(r" \\\n +", " ", text)
    found = re.findall(r"^ *(?:Next:)? +warehouse (\w.*?)(?:  .*)?$", whole, re.MULTILINE)
    return [shlex.split(one) for one in dict.fromkeys(found)]


def test_every_command_with_a_target_can_be_a_next_step() -> None:
    [group] = [one for one in parser()._actions if one.dest == "command"]
    assert isinstance(group.choices, dict)
    with_target = {name for name, one in group.choices.items() if "--target" in one._option_string_actions}
    assert with_target == set(WITH_TARGET)


def test_the_printed_commands_run(folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    stream = io.StringIO()
    print_remarks(settle({"target": "the target"}), Reporter(stream, Path("the target")))
    printed = {"build": (stream.getvalue(), 3)}
    for words, count in (("findings", 5), ("show cov", 2), ("lineage metrics.leaf_hour.in_bytes", 1)):
        said = command(*words.split(), "-t", "the target", cwd=folder)
        assert said.status == 0, said
        printed[words] = (said.out, count)
    for words, (text, count) in printed.items():
        assert max(map(len, text.splitlines())) <= 80
        found = commands_in(text)
        assert len(found) >= count, words
        assert all(one[1:3] == ["-t", "the target"] for one in found), found
        for one in found[:3]:
            again = command(*one, cwd=folder)
            assert again.status == 0, again


def test_a_hint_of_an_error_names_the_target(folder: Path, command: Command) -> None:
    said = command("sql", "-q", "zzz", "-t", "the target", cwd=folder)
    assert said.err == "error: no query zzz\n       warehouse sql -t 'the target' --list lists them\n"
    said = command("sql", "SELECT 1", "-t", "no target", cwd=folder)
    assert said.err.endswith("\n       warehouse build -d DIR -t 'no target'\n")


def test_the_usual_target_is_not_named(tiny: Tiny, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (tiny.data / "notes.bin").touch()
    assert f"details: warehouse doctor -t {tiny.target}" in tiny.build().err_text
    monkeypatch.setenv("WAREHOUSE_TARGET", str(tiny.target))
    tiny.file(1, "1,101,2,200,0,0.5")
    said = command("build", "-d", tiny.data, cwd=tiny.base)
    assert said.err_text.count("details: warehouse doctor Build ") == 1
    monkeypatch.delenv("WAREHOUSE_TARGET")
    monkeypatch.chdir(tiny.base)
    Path("warehouse.toml").write_text("target = 'target'\n", encoding="utf-8")
    assert for_target("warehouse findings", tiny.target) == "warehouse findings"
    other = for_target("warehouse build -d DIR", Path("other"))
    assert other == for_target(other, Path("other")) == "warehouse build -d DIR -t other"
