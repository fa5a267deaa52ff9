"""Commands of the documents run against the sample, in the order of their page; `NOT_RUN` has the exceptions.

Two commands at most answer each of the ten questions of docs/questions.md. `test_examples` compares the output of
commands in README and CONTRIBUTING.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import call
from tests.examples import ROOT, citation_in
from tests.tiny import Tiny

QUESTIONS, SKILL = ROOT / "docs/questions.md", ROOT / "warehouse/cli/SKILL.md"
PAGES = sorted({*ROOT.glob("docs/**/*.md"), ROOT / "bi/superset/README.md", ROOT / "README.md", SKILL} - {QUESTIONS})
NOT_RUN = (
    # packages, servers, other programs; minutes
    "pip install", "apt-get install", "python3 -m venv", "superset", "python3.11 -m venv superset", "export ", "psql ",
    "java ", "Rscript ", "duckdb ", "warehouse publish", "python -m bench", "warehouse export excel/ --format xlsx   ",
    # run by tests/test_examples.py, tests/test_own_data.py and the fixtures `built`, `site` and `report`
    "warehouse build -", "warehouse demo", "warehouse init study/ -d release/", "warehouse sql -q quiet-servers",
    "warehouse docs site/", "warehouse report report.html", "python -c",
    # need more than one build, a project or a listener, or write all tables: tests of history, runner, cli, publish
    "warehouse test --project DIR", "warehouse mcp", "warehouse verify", "warehouse diff", "warehouse rollback",
    "warehouse relocate -t /srv/traces", "warehouse plan -d data/sample", "warehouse export meaning/",
    "warehouse export tables/   ", "warehouse export one/",
    "warehouse export sim/", "python -m bi.superset build/warehouse",
)  # fmt: skip
"""Beginnings of commands that do not run here."""
_BLOCK = re.compile(r"^```(?:(?:sh|bash|console)?\n(.*?)|\w+\n.*?)^```", re.MULTILINE | re.DOTALL)
"""A block of commands; a block in another language has an empty group, and its end begins no block."""
_COMMAND = re.compile(r"(?:\$ )?((?:warehouse|python|pip|apt-get|superset|export|psql|java|Rscript|duckdb)\S* .*)")
_TABLE = re.compile(r"`(warehouse (?:sql .|findings|show|lineage|ls)[^`]*)`")
"""A command in the table of questions."""
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)
ANSWERS = {
    "Which uplink is the fullest?": r"Leaf-2 +FourHundredGigE1/0/34 +spine-1 .* out",
    "Are the spines used evenly?": r"spine-1 .*\nspine-2 .*\nspine-3 .*",
    "Where are the NICs of a server, and what do they do?": r"mlx5_2 +ens10np0 +Leaf-2 +TwoHundredGigE1/0/1:1",
    "Which links are mis-cabled or carry no data?": r"carries no data outward[^~]* server_in_other_group +GPU-69",
    "How much does an iteration of a task send, or why does nobody know?": r"mlx5_2 +(ok|shared) +[\d.]+ [GM]B",
    "Where is uplink_balance.cov from?": r"deviation over mean[^~]*comes from\n[^~]*  raw.port_counters: .*InOctets",
    "How is a table exported and cited?": r"Wrote  2 files of data[^~]*no DOI known[^~]*_balance; .*citation [0-9a-f]+",
    "Who trains together?": r"\bGPU-\d+ GPU-\d+",
    "How long did ITP's jobs wait in the median, or why does nobody know?": r"neither\s+queueing\s+nor\s+start\s+times",
    "Which tables are about jobs?": r"^How long do jobs run and wait\?\n(  metrics\..*\n(    .*\n)+)+",
}
"""Text in the answer on the sample."""


def commands(page: Path) -> list[str]:
    """Return the commands of a page: of its table of questions, and of blocks; with a prompt, only such lines."""
    found = _TABLE.findall(page.read_text(encoding="utf-8").partition("## Questions")[2].partition("\n## ")[0])
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        if _PROMPT.search(block):
            lines = [line for line in lines if line.startswith("$ ")]
        found += [match[1] for line in lines if (match := _COMMAND.fullmatch(line))]
    return found


def work(words: list[str]) -> str:
    """Return a command without the default target and without the name of its output folder."""
    named = ["DIR" if word.endswith("/") else word for word in words]
    return " ".join(named).replace(" -t build/warehouse", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, built: Path, site: Path) -> Path:
    """Return a working folder with the sample's build at `build/warehouse` and its site at `site`."""
    place = tmp_path_factory.mktemp("documented")
    (place / "build").mkdir()
    (place / "build" / "warehouse").symlink_to(built)
    (place / "site").symlink_to(site)
    return place


@pytest.fixture(scope="module")
def ran() -> set[str]:
    """Return what the commands did that ran, on this page or an earlier one."""
    return set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_commands_of_a_page_run(page: Path, folder: Path, sample: Path, ran: set[str]) -> None:
    cited = "ID"
    for command in commands(page):
        if command.startswith(NOT_RUN):
            continue
        words = [{"ID": cited, "DIR": str(sample)}.get(word, word) for word in shlex.split(command, comments=True)]
        if work(words) in ran:
            continue
        ran.add(work(words))
        assert words[0] == "warehouse", f"{command}: run it here, or say in NOT_RUN why not"
        said = call(*words[1:], cwd=folder)
        assert said.status == 0, f"{command}: {said.err}"
        if "--cite" in words:
            cited = citation_in(said.err)


def test_the_lint_of_the_docs_runs(tmp_path: Path) -> None:
    block = next(one for one in _BLOCK.findall((ROOT / "docs/reproducible-sql.md").read_text()) if "python -c" in one)
    project = Tiny(tmp_path).folder.rename(tmp_path / "my-project")
    (project / "warehouse.toml").write_text("shipped = false\n", encoding="utf-8")
    code = shlex.split(block)[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_two_commands_answer_each_of_ten_questions(built: Path, tmp_path: Path) -> None:
    (tmp_path / "warehouse.toml").write_text(f"target = {json.dumps(str(built))}\n", encoding="utf-8")
    [block] = re.findall(
        r"^```\n# (Which uplink.*?)\n```", QUESTIONS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    asked = {question: lines for question, *lines in (part.splitlines() for part in block.split("\n\n# "))}
    assert list(asked) == list(ANSWERS)
    for question, lines in asked.items():
        assert 1 <= len(lines) <= 2
        answer = ""
        for line in lines:
            name, *words = shlex.split(line)
            assert name == "warehouse"
            said = call(*words, *(["--format", "table"] if words[0] == "sql" else []), cwd=tmp_path)
            assert said.status == 0, said
            answer += said.out + said.err
        assert re.search(ANSWERS[question], answer, re.MULTILINE), answer
