"""What the README shows is what happens: its commands are run, and say what stands below them.

The demo is the slowest test of all (some 20 s of CPU), as it is the one thing that everybody does first.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tests.conftest import call
from tests.examples import ROOT, Example, examples, same

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

README = examples(ROOT / "README.md")
ASKING = [
    "warehouse ls",
    "warehouse show metrics.port_hour",
    "warehouse lineage metrics.port_hour",
    "warehouse lineage metrics.port_hour.in_bytes",
]
"""Commands of the text around the blocks."""


def _shown(command: str) -> Example:
    return next(one for one in README if one.command == command)


def _run(command: str, folder: Path) -> str:
    said = call(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert said.status == 0, f"{command}: {said.err}"
    return said.out


def _lines(block: str) -> list[str]:
    """The commands of the README's block that begins so."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return (block + text.split(f"```\n{block}")[1].split("```")[0]).splitlines()


def test_five_minutes_from_clone_to_answers(command: Command, tmp_path: Path) -> None:
    said = command("demo")  # what `make demo` runs
    assert said.status == 0, said
    assert same(_shown("make demo").output, said.err), said.err
    nic = _shown("warehouse sql -q nic --server GPU-1")
    assert "Try next:" in nic.output
    assert same(f"...\n$ {nic.command}\n{nic.output}", said.out), said.out
    assert same(nic.output.split("\n...")[0], _run(f"{nic.command} --format table", tmp_path))
    for line in ASKING:
        assert _run(line, tmp_path)

    asked = [line for line in _lines('warehouse sql "SELECT switch') if line.startswith("warehouse sql ")]
    asked = [line for line in asked if shlex.split(line, comments=True) != ["warehouse", "sql"]]  # the shell
    assert len(asked) > 4
    for line in asked:
        said = call(*shlex.split(line, comments=True)[1:], cwd=tmp_path)
        assert said.status == 0, f"{line}: {said.err}"
        if "--cite" in line:
            cited = said.err.split()[-1]
    assert (tmp_path / "port_hour.parquet").read_bytes().startswith(b"PAR1")
    assert "same" in _run(f"warehouse cite {cited}", tmp_path)


def test_outputs_that_differ_are_seen() -> None:
    [one] = [one for one in README if one.command == "make demo"]
    assert same(one.output, one.output)
    assert not same(one.output, one.output.replace("7 suspect links", "8 suspect links"))
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n...\nd\n", "a\nb\n")


def test_a_query_of_ones_own(tmp_path: Path, built: Path) -> None:
    """The named query of CONTRIBUTING, in a project of one's own."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    query = text.split("## Add a named query")[1].split("```sql\n")[1].split("```")[0]
    [shown] = [one for one in examples(ROOT / "CONTRIBUTING.md") if "quiet-servers" in one.command]
    call("init", "study", cwd=tmp_path)
    (tmp_path / "study" / "sql" / "queries").mkdir(parents=True, exist_ok=True)
    (tmp_path / "study" / "sql" / "queries" / "quiet-servers.sql").write_text(query)
    out = _run(f"{shown.command} --format table -t {built}", tmp_path / "study")
    assert out.split("\n")[0].split() == shown.output.split("\n")[0].split()
    assert "GPU-69" in out
    assert "GPU-69" in shown.output
