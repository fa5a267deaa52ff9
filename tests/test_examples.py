"""Commands of the README run and print the output below them.

The demo is the slowest test of all (some 20 s of CPU), but it is the first command that everybody runs.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests import readme
from tests.conftest import call
from tests.examples import ROOT, Example, citation_in, examples, same, section
from warehouse.project.model import LAYERS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

README = examples(ROOT / "README.md")
TEXT = readme.README.read_text(encoding="utf-8")
ANEW = "`make readme` writes it anew"
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
    """Return the commands of the README's block that begins with this one."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return (block + text.split(f"```\n{block}")[1].split("```")[0]).splitlines()


def test_five_minutes_from_clone_to_answers(command: Command, tmp_path: Path) -> None:
    said = command("demo")  # as `make demo` does
    assert said.status == 0, said
    shown = readme.shorten(f"{said.err.rstrip()}\n\n{said.out.lstrip()}")
    assert readme.compared(readme.block(TEXT, readme.DEMO)) == readme.compared(shown), ANEW
    nic = _shown("warehouse sql -q nic --server GPU-1")
    assert "Try next:" in nic.output
    assert same(nic.output.split("\n...")[0], _run(f"{nic.command} --format table", tmp_path))
    for line in ASKING:
        assert _run(line, tmp_path)

    asked = [
        line for line in _lines("warehouse findings                             ") if line.startswith("warehouse sql ")
    ]
    asked = [line for line in asked if shlex.split(line, comments=True) != ["warehouse", "sql"]]  # the shell
    assert len(asked) > 4
    for line in asked:
        said = call(*shlex.split(line, comments=True)[1:], cwd=tmp_path)
        assert said.status == 0, f"{line}: {said.err}"
        if "--cite" in line:
            cited = citation_in(said.err)
    assert (tmp_path / "port_hour.parquet").read_bytes().startswith(b"PAR1")
    assert "same" in _run(f"warehouse cite {cited}", tmp_path)

    _contributing(tmp_path)


def _contributing(folder: Path) -> None:
    """Add a column, a failing check and a query, as CONTRIBUTING does, in a project on top."""
    page = ROOT / "CONTRIBUTING.md"
    model = (ROOT / "models" / "metrics" / "port_hour.sql").read_text(encoding="utf-8")
    for hunk in section("Add a column to `port_hour`", "diff")[0].split("...\n"):
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
    [shown] = [block for block in section("Add a check", "") if check in block]
    # either hour may be checked first
    assert shown.split("\n")[0] in said.err_text.replace("in 2024-05-23T17", "in 2024-05-23T16")

    query = folder / "study" / "sql" / "queries" / "quiet-servers.sql"
    query.parent.mkdir(parents=True)
    query.write_text(section("Add a named query", "sql")[0], encoding="utf-8")
    [asked] = [one for one in examples(page) if "quiet-servers" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table --project study", folder))


def test_a_different_count_is_detected() -> None:
    build, built = "Build  86 models, 127 parts, 58 there already  11.1 s", "Built  02a9cc25 → build/warehouse (48 MB)"
    assert readme.compared(build) == readme.compared("Build  86 models, 127 parts, 9 there already  3.0 s")
    assert readme.compared(built) == readme.compared("Built  7136f3eb → build/warehouse (9.1 MB)")
    assert readme.compared(build) != readme.compared(build.replace("86", "87"))
    assert readme.compared(build) != readme.compared(build.replace("127", "128"))
    assert readme.compared("Check  369 passed, 5 warnings") != readme.compared("Check  368 passed, 5 warnings")


@pytest.mark.parametrize("layer", LAYERS)
def test_omissions_in_the_readme_are_marked(layer: str) -> None:
    """Slow parts are listed only on a slow machine, and any layer can have one."""
    said = (
        f"Build  1 part\n       {layer}.a 2024  1 row  0.1 s   3\n       kB\nCheck  2\n\n$ warehouse sql -q one\n1\n\n"
    )
    said += "$ warehouse sql -q nic --server GPU-1\n2\n\n$ warehouse sql -q two\n3\n\nTry next\n"
    assert readme.shorten(said) == (
        "Build  1 part\n...\nCheck  2\n\n...\n\n$ warehouse sql -q nic --server GPU-1\n2\n\n...\n\nTry next\n"
    )


def test_different_outputs_are_detected() -> None:
    [one] = [one for one in README if one.command == "make demo"]
    assert same(one.output, one.output)
    assert not same(one.output, one.output.replace("8 warnings", "9 warnings"))
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not same("a\n...\nd\n", "a\nb\n")
