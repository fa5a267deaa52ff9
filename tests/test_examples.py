"""The demo ends well, and the walk-throughs of CONTRIBUTING and docs/models.md print what stands there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import MadeOnce, call
from tests.examples import ROOT, examples, same, section
from warehouse.sample import SampleOptions, write_sample

BUILD = "build -d data/sample --project study -s metrics.port_hour -s metrics.server_hour"


def test_the_demo_builds_and_asks(built: Path) -> None:
    """The fixture `built` is the demo's build, of less recorded time."""
    said = (built.parent / "demo.txt").read_text(encoding="utf-8")
    assert " -q nic --server GPU-1\n" in said
    assert "Try next:" in said


@pytest.mark.real
def test_the_findings_of_the_readme_are_those_of_the_real_files(real_output: tuple[Path, str]) -> None:
    [shown] = [one for one in examples(ROOT / "README.md") if one.command == "warehouse findings"]
    assert same(shown.output, call("findings", cwd=real_output[0].parents[1]).out)


@pytest.fixture(scope="module")
def folder(made_once: MadeOnce) -> Path:
    """Return a folder with the traffic of the demo's sample."""
    small = SampleOptions(jobs=False, utilization=False, hour_tables=False)
    return made_once("walk-through", lambda place: write_sample(place / "data" / "sample", small))


def _run(command: str, folder: Path) -> str:
    said = call(*shlex.split(command)[1:], cwd=folder)
    assert said.status == 0, f"{command}: {said.err}"
    return said.out


def test_a_column_a_failing_check_and_a_query(folder: Path) -> None:
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
    _run(f"warehouse {BUILD}", folder)
    [asked] = [one for one in examples(page) if "in_peak_to_mean" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table", folder))

    check = "in_peak_to_mean >= 100 or in_peak_to_mean is null"
    place.write_text(model.replace(check.replace("100", "1"), check), encoding="utf-8")
    said = call(*shlex.split(BUILD), cwd=folder)
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
