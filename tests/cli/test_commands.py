"""Commands: output, help, exit status, mistakes, interrupts, and what a start imports."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

import warehouse
from tests.conftest import Command
from tests.release import only
from tests.tiny import Tiny
from warehouse.base.settings import settle
from warehouse.base.text import WITH_TARGET, for_target
from warehouse.cli import parser
from warehouse.cli.build_commands import print_remarks
from warehouse.runner.reporter import Reporter


def python(code: str, *arguments: str) -> str:
    """Run code in a new Python and return its output."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_doctor_lists_files_and_writes_nothing(tiny: Tiny, command: Command) -> None:
    (tiny.data / "notes.bin").touch()
    (tiny.data / ".DS_Store").touch()
    said = command("doctor", "-d", tiny.data, "-t", tiny.target)
    assert said.status == 0
    assert "1 file ignored\n  .DS_Store\n    left behind by a desktop" in said.out
    assert "c  2024-05-23 16:00 UTC  (2024-05-24 00:00 UTC+8)\n  zhejiang.port_counters: 1 of 1 file read" in said.out
    assert "1 file not recognised\n  notes.bin\n    no known format has such a name" in said.out
    assert f"no warehouse in {tiny.target}: " in said.out
    files = json.loads(command("doctor", "-d", tiny.data, "--json").out)
    assert [(file["status"], file["switch"], file["hour_utc"]) for file in files] == [
        ("ignored", None, None),
        ("read", "Leaf-1", "2024-05-23 16:00:00"),
        ("read", "Leaf-1", "2024-05-23 17:00:00"),
        ("unknown", None, None),
    ]
    assert not tiny.target.exists()
    tiny.build()
    before = sorted(tiny.target.rglob("*"))
    said = command("doctor", "-t", tiny.target)  # the data folders are those of the build
    assert said.status == 0
    assert "\nBuilt  " in said.out
    assert sorted(tiny.target.rglob("*")) == before
    (tiny.target / "warehouse.duckdb").unlink()
    assert "it holds no warehouse.duckdb" in command("doctor", "-t", tiny.target).out


def test_models_and_named_queries_are_shown_without_a_warehouse(command: Command, tmp_path: Path) -> None:
    for line, text in {
        "sql --list": "Which links carry no data, or are cabled elsewhere?\n",
        "sql --list nic": "nic  (also nics, server-nics)\n",
        "lineage metrics.port_hour": "metrics.port_hour  (models/metrics/port_hour.sql)",
        "render port_hour": "SELECT",
    }.items():
        said = command(*line.split())
        assert (said.status, text in said.out) == (0, True), said
    assert list(tmp_path.iterdir()) == []


def test_without_a_command_it_prints_the_state_and_three_next_steps(
    command: Command, built: Path, tmp_path: Path
) -> None:
    said = command()
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("No warehouse in build/warehouse: there is no such folder.\n\nNext   warehouse demo ")

    (tmp_path / "warehouse.toml").write_text(f'target = "{built}"\n', encoding="utf-8")
    said = command()
    assert said.status == 0
    assert said.out.startswith("Built  ")
    assert "\n\nNext   warehouse findings " in said.out
    assert "  warehouse sql --list " in said.out


def test_a_new_project_builds_and_its_tests_pass(command: Command, sample: Path, tmp_path: Path) -> None:
    """Run the commands that `init` prints as next steps."""
    said = command("init", "study")
    assert said.status == 0
    begun = [line.split()[1] for line in said.out.splitlines() if line.startswith("wrote")]
    assert [begun[0], begun[-1]] == ["study/warehouse.toml", "study/sample/:"]
    change, *steps = said.out.partition("Next")[2].replace("&&", "\n").splitlines()
    assert change.split() == ["cd", "study"]
    with only(tmp_path / "shipped", "metrics.server_hour"):
        for step in steps:
            name, *words = shlex.split(step)
            assert name == "warehouse"
            done = command(*words, cwd=tmp_path / "study")
            assert done.status == 0, done
    assert len(done.out.splitlines()) == 11
    again = command("init", "study")
    assert again.status == 2
    assert "study/warehouse.toml is there already" in again.err
    assert command("init", "other", "-d", "none").status == 2
    assert not (tmp_path / "other").exists()
    assert command("init", "other", "-d", sample).status == 0
    settled = tomllib.loads((tmp_path / "other" / "warehouse.toml").read_text(encoding="utf-8"))
    assert settled["data"] == [str(sample)]


def test_a_query_prints_only_its_answer_and_escapes_what_the_encoding_lacks(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that there is no other output even at exit, when a module may report leaks."""
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    for limits in ([], ["--timeout", "300"]):
        command = [sys.executable, "-m", "warehouse", "sql", "SELECT 'é' || chr(9654) AS x", *limits, "-t", str(target)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"x\n\xe9\\u25b6\n", b""), limits


def test_interrupts_end_with_status_130_and_a_full_disk_is_one_sentence(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise errors.pop(0)

    full = OSError(28, "No space left on device", "some/file")
    again = duckdb.ConnectionException("connection is busy with another call")  # of a second Ctrl-C
    again.__context__ = KeyboardInterrupt()
    errors = [KeyboardInterrupt(), RuntimeError("Query interrupted"), again, full]
    monkeypatch.setattr("warehouse.ingest.raw_files.check_roots", failing)
    assert [tiny.build() for _ in range(3)] == [(130, "", "interrupted\n")] * 3
    said = tiny.build()
    assert (said.status, said.err.partition(" is full: ")[0]) == (2, f"error: the disk of {tiny.target}")


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    """Interrupt the main thread in an object's `__del__`, where Python drops the exception."""
    code = (
        "import time\n"
        "from warehouse.cli import main, doctor_commands as data\n"
        "class Dying:\n"
        "    def __del__(self): raise KeyboardInterrupt\n"
        "def run(given):\n"
        "    Dying()\n"
        "    time.sleep(10)\n"
        "    return 0\n"
        "data.run_doctor = run\n"
        "print(main(['doctor']))"
    )
    assert python(code) == "130\n"


def test_a_closed_or_full_stream_is_no_traceback(target: Path, tmp_path: Path) -> None:
    reader, closed_pipe = os.pipe()
    os.close(reader)
    for words, stream, status, said in (
        ("", ">&-", 0, ""),
        ("ls -t nope", ">&-", 2, "error: no warehouse in nope: there is no such folder\n"),
        ("ls -t nope", "2>&-", 2, ""),
        (f"ls -t {target}", f">&{closed_pipe}", 0, ""),  # as `warehouse ls | head -1`
        (f"sql 'SELECT 1' --timeout 300 -t {target}", ">/dev/full", 2, "error: No space left on device\n"),
    ):
        command = ["/bin/bash", "-c", f"exec {shlex.quote(sys.executable)} -m warehouse {words} {stream}"]
        done = subprocess.run(
            command, cwd=tmp_path, pass_fds=[closed_pipe], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr[: len(said) or None]) == (status, said), words
    os.close(closed_pipe)


COMMANDS: dict[str, argparse.ArgumentParser] = dict(
    next(action for action in parser()._actions if action.dest == "command").choices or ()
)


def test_every_command_with_a_target_can_be_a_next_step() -> None:
    with_target = {name for name, one in COMMANDS.items() if "--target" in one._option_string_actions}
    assert with_target == set(WITH_TARGET)


def test_help_names_every_command_each_with_a_sentence_its_options_and_an_example(command: Command) -> None:
    every = command("--help").out
    assert "examples:\n  warehouse demo" in every
    assert max(map(len, every.splitlines())) <= 80
    for name in COMMANDS:
        assert re.search(rf"^    {name}( |$)", every, re.MULTILINE)
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
    ("export",): "error: missing: DIR",
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


def test_a_mistake_is_one_sentence_with_status_2(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for arguments, message in MISTAKES.items():
        said = command(*arguments)
        assert (said.status, said.out, said.err.count("error: ")) == (2, "", 1), arguments
        assert message in said.err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "in the way"


HEAVY = {"duckdb", "_duckdb", "sqlglot", "jinja2", "rich", "numpy", "openpyxl", "pyarrow", "scipy", "yaml", "zstandard"}


LOADED = """
import sys
from warehouse.cli import main
for words in {}:
    try:
        main(words)
    except SystemExit:
        pass
print("\\n", *sorted(sys.modules))
"""


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    said = python(LOADED.format([["--version"], ["sql", "--help"]]))
    assert said.startswith(f"warehouse {warehouse.__version__}\n")
    assert {name.partition(".")[0] for name in said.splitlines()[-1].split()} & HEAVY == set()


def test_a_build_and_a_query_load_the_engine_without_its_python_layer(tiny: Tiny) -> None:
    tiny.write("warehouse.toml", "shipped = false\n")
    words = ["build", "--project", str(tiny.folder)], ["sql", "SELECT 1"]
    loaded = set(python(LOADED.format([[*one, "-t", str(tiny.target)] for one in words])).splitlines()[-1].split())
    assert loaded & {"_duckdb", "duckdb", "importlib.metadata"} == {"_duckdb"}


def test_a_query_can_come_from_a_file_or_from_stdin(
    target: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1 AS one", encoding="utf-8")
    for text, words, status, out in (
        ("", "-f q.sql", 0, "one\n1\n"),
        ("SELECT 2 AS two", "-", 0, "two\n2\n"),
        ("", "-", 2, ""),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        said = command("sql", *words.split(), "-t", target)
        assert (said.status, said.out) == (status, out), words


# printed commands act on the target that the command before was given ----------------------------


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
