"""Commands of the documents run against the sample, in the order of their page; `NOT_RUN` has the exceptions.

`test_examples` compares the output of commands in README and CONTRIBUTING, `test_questions` runs docs/questions.md.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import call
from tests.examples import ROOT, citation_in
from tests.tiny import Tiny

README = ROOT / "README.md"
PAGES = sorted({*ROOT.glob("docs/**/*.md"), ROOT / "bi/superset/README.md", README} - {ROOT / "docs/questions.md"})
NOT_RUN = {
    "pip install": "installs packages",
    "apt-get install": "installs packages",
    "superset": "Superset: make e2e",
    "python3.11 -m venv superset": "Superset: make e2e",
    "export ": "Superset: make e2e",
    "warehouse publish": "a PostgreSQL server: tests/publish",
    "psql ": "a PostgreSQL server: tests/reader/test_recipes.py",
    "java ": "Java: tests/reader/test_recipes.py",
    "Rscript ": "R: tests/reader/test_recipes.py",
    "duckdb ": "DuckDB's own shell",
    "python -m bi.superset build/warehouse": "tests/publish/test_superset_bundle.py",
    "python -m bench": "takes minutes",
    "warehouse build -d": "tests/test_examples.py builds",
    "python3 -m venv": "an environment: tests/test_install.py",
    "warehouse demo": "tests/test_examples.py; here it would build over the shared build",
    "warehouse init study/ -d release/": "tests/test_own_data.py",
    "warehouse build --project study": "tests/test_own_data.py",
    "warehouse test --project DIR": "a project with patterns: tests/formats/logs",
    "warehouse build --project DIR": "a project with patterns: tests/formats/logs",
    "warehouse mcp": "tests/cli/test_mcp.py",
    "warehouse verify": "builds again: tests/history/test_verify.py",
    "warehouse diff": "two builds: tests/history",
    "warehouse rollback": "two builds: tests/history",
    "warehouse relocate -t /srv/traces": "a moved target: tests/history",
    "warehouse sql -q quiet-servers": "tests/test_examples.py",
    "warehouse plan -d data/sample": "a changed project: tests/runner/test_dry_run.py",
    "warehouse docs site/": "the fixture site runs it; a project of one's own: tests/site",
    "warehouse report report.html": "the fixture report runs it; with --site: tests/report",
    "warehouse export meaning/": "tests/publish/test_export.py",
    "warehouse export sim/": "tests/publish/test_simulators.py",
    "warehouse export excel/ --format xlsx   ": "ten seconds for all tables; README has two of them",
    "python -c": "test_the_lint_of_the_docs_runs",
}
"""Prefixes of commands, with their requirements or the tests that run them."""
_BLOCK = re.compile(r"^```(?:(?:sh|bash|console)?\n(.*?)|\w+\n.*?)^```", re.MULTILINE | re.DOTALL)
"""A block of commands; a block in another language has an empty group, and its end begins no block."""
_COMMAND = re.compile(r"(?:\$ )?((?:warehouse|python|pip|apt-get|superset|export|psql|java|Rscript|duckdb)\S* .*)")
_TABLE = re.compile(r"`(warehouse (?:sql .|findings|show|lineage|ls)[^`]*)`")
"""A command in the table of questions."""
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)


def commands(page: Path) -> list[str]:
    """Return the commands of a page: of its table of questions, and of blocks; with a prompt, only such lines."""
    found = _TABLE.findall(page.read_text(encoding="utf-8").partition("## Questions")[2].partition("\n## ")[0])
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = block.replace("\\\n", " ").splitlines()
        if _PROMPT.search(block):
            lines = [line for line in lines if line.startswith("$ ")]
        found += [match[1] for line in lines if (match := _COMMAND.fullmatch(line))]
    return found


def reason(command: str) -> str | None:
    """Return why a command is not run here."""
    return next((why for start, why in NOT_RUN.items() if command.startswith(start)), None)


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
        if reason(command):
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
