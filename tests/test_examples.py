"""Commands of the README run, and print the output below them.

The demo is the slowest test of all (some 20 s of CPU), but it is the first command that everybody runs.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import call
from tests.examples import ROOT, citation_in, examples, same, section

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
_TABLE = TEXT.split("## Questions")[1].split("## Why")[0]
QUESTIONS = re.findall(r"`(warehouse (?:sql|findings|show|lineage|ls) ?[^`]*)`", _TABLE)


def _run(command: str, folder: Path) -> str:
    said = call(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert said.status == 0, f"{command}: {said.err}"
    return said.out


def test_five_minutes_from_clone_to_answers(command: Command, tmp_path: Path) -> None:
    said = command("demo")  # as `make demo` does
    assert said.status == 0, said
    assert "Try next:" in said.out
    assert len(QUESTIONS) > 12
    for line in QUESTIONS:
        if shlex.split(line) != ["warehouse", "sql"]:  # the shell
            assert _run(line, tmp_path), line
    [block] = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    shown = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "GPU-1" in shown.stdout

    said = call("sql", "-q", "nic", "--server", "GPU-1", "--cite", cwd=tmp_path)
    assert "same" in _run(f"warehouse cite {citation_in(said.err)}", tmp_path)

    _contributing(tmp_path)


@pytest.mark.real
def test_the_findings_of_the_readme_are_those_of_the_real_files(real_output: tuple[Path, str]) -> None:
    [shown] = [one for one in examples(ROOT / "README.md") if one.command == "warehouse findings"]
    assert same(shown.output, call("findings", cwd=real_output[0].parents[1]).out)


def _contributing(folder: Path) -> None:
    """Add a column, a failing check and a query, as CONTRIBUTING and docs/models.md do, in a project on top."""
    page, models = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "models.md"
    model = (ROOT / "models" / "metrics" / "port_hour.sql").read_text(encoding="utf-8")
    for hunk in section(page, "Add a column to `port_hour`", "diff")[0].split("...\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] == " ")
        assert model.count(before) == 1, f"not in the model: {before}"
        model = model.replace(before, "".join(line[1:] for line in lines))
    place = folder / "study" / "models" / "metrics" / "port_hour.sql"
    place.parent.mkdir(parents=True)
    place.write_text(model, encoding="utf-8")
    _run("warehouse build -d data/sample --project study -s metrics.port_hour", folder)
    [asked] = [one for one in examples(page) if "in_peak_to_mean" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table", folder))

    check = "in_peak_to_mean >= 100 or in_peak_to_mean is null"
    place.write_text(model.replace(check.replace("100", "1"), check), encoding="utf-8")
    said = call("build", "-d", "data/sample", "--project", "study", cwd=folder)
    assert said.status == 1
    [shown] = [block for block in section(models, "Add a check", "") if check in block]
    # either hour may be checked first
    assert shown.split("\n")[0] in said.err_text.replace("in 2024-05-23T17", "in 2024-05-23T16")

    query = folder / "study" / "sql" / "queries" / "quiet-servers.sql"
    query.parent.mkdir(parents=True)
    query.write_text(section(models, "Add a named query", "sql")[0], encoding="utf-8")
    [asked] = [one for one in examples(models) if "quiet-servers" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table --project study", folder))


def test_different_outputs_are_detected() -> None:
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n...\nd\n", "a\nb\n")
    assert not same("a\n8 warnings\n", "a\n9 warnings\n")
