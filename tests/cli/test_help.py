"""Help with examples, and one sentence for each mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Command
from warehouse.cli import parser

COMMANDS = sorted(next(action for action in parser()._actions if action.dest == "command").choices or ())


def test_help_names_every_command_and_shows_examples(command: Command) -> None:
    said = command("--help")
    assert said.status == 0
    for name in COMMANDS:
        assert re.search(rf"^    {name}( |$)", said.out, re.MULTILINE)
    assert "examples:\n  warehouse demo" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_the_help_of_a_command_is_a_sentence_its_options_and_an_example(command: Command) -> None:
    for name in COMMANDS:
        said = command(name, "--help")
        assert said.status == 0
        usage, sentence, *_ = said.out.split("\n\n")
        assert usage.startswith(f"usage: warehouse {name}")
        assert sentence.endswith(".")
        assert f"\nexample:\n  warehouse {name}" in said.out


MISTAKES = {
    # without a warehouse
    ("build",): "error: no data folder given\n       warehouse build -d DIR",
    ("build", "-d", "none"): "error: no such data folder: none",
    ("build", "-d", ".", "-t", ""): "error: --target is ''",
    ("build", "-d", ".", "--project", "none"): "error: no such project folder: none\n       warehouse init DIR",
    ("sql", "SELECT 1"): "error: no warehouse in build/warehouse",
    ("sql", "SELECT 1", "-q", "nic"): "error: give one of QUERY, --file or --query",
    ("sql", "-q", "nic", "--server"): "error: --server has no value",
    ("sql", "-q", "nic", "--fromat", "csv"): "query nic has no parameter fromat\n       its parameters: server, hca",
    ("build", "--thraeds", "3"): "unrecognized arguments: --thraeds 3\n       nearest: --threads",
    ("build", "--keep", "many"): "error: --keep is 'many', not a number\n       warehouse build --help",
    ("build", "-d", ".", "--scheduler", "x"): "error: --scheduler is 'x', not tcp://HOST:PORT or local:N",
    ("sql", "SELECT 1", "--format", "jsn"): "\n       nearest: json",
    ("sql", "SELECT 1", "--timeout"): "error: --timeout has no value\n       warehouse sql --help",
    ("export",): "error: the folder to write is missing\n       warehouse export DIR",
    ("sample",): "error: missing: DIR\n       warehouse sample --help",
    ("biuld",): "error: no command biuld\n       nearest: build",
    ("lineage", "in_bytes"): "error: no model in_bytes",
    ("export", "metrics.leaf_hour"): "error: metrics.leaf_hour is a table, and the folder to write is missing",
    ("sql", "SELECT 1", "--param", "x"): "error: --param 'x' is not NAME=VALUE",
    ("sample", "s", "--hours", "99"): "error: hours must be between 1 and 24: 99.",
    ("sample", "s", "--full", "--leaves", "12"): "error: --full is a size of its own",
    ("sample", "file"): "error: ",
    ("init", "file"): "error: ",
    ("demo", "file"): "error: ",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_sentence_with_status_2(command: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    said = command(*arguments)
    assert said.status == 2, said
    assert said.out == ""
    assert said.err.count("error: ") == 1
    assert MISTAKES[arguments] in said.err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "in the way"
