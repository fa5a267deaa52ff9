"""Walk-throughs of README, CONTRIBUTING and docs/models.md print what stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command, MadeOnce, call
from tests.examples import ROOT, changed, examples, same, section
from tests.release import lay_out_project
from warehouse.sample import SampleOptions, write_sample

CONTRIBUTING, MODELS = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "models.md"
BUILD = "build -d data/hour --project study"


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
    """Return a folder with the traffic of a sample of one hour, and a project of the models of this page alone."""
    small = SampleOptions(hours=1, jobs=False, utilization=False, hour_tables=False)

    def make(place: Path) -> None:
        write_sample(place / "data" / "hour", small)
        (place / "study").mkdir()
        lay_out_project(place / "study", ["metrics.port_hour", "metrics.server_hour"])
        _write(place / "study" / "warehouse.toml", "shipped = false\n")

    return made_once("walk-through", make)


def _run(command: str, folder: Path) -> str:
    said = call(*shlex.split(command)[1:], cwd=folder)
    assert said.status == 0, f"{command}: {said.err}"
    return said.out


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_column_a_failing_check_and_a_query(folder: Path) -> None:
    shipped = (ROOT / "models" / "metrics" / "port_hour.sql").read_text(encoding="utf-8")
    model = changed(shipped, section(CONTRIBUTING, "Add a column to `port_hour`", "diff")[0])
    place = _write(folder / "study" / "models" / "metrics" / "port_hour.sql", model)
    _run(f"warehouse {BUILD}", folder)
    [asked] = [one for one in examples(CONTRIBUTING) if "in_peak_to_mean" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table", folder))

    check = "in_peak_to_mean >= 100 or in_peak_to_mean is null"
    place.write_text(model.replace(check.replace("100", "1"), check), encoding="utf-8")
    said = call(*shlex.split(BUILD), cwd=folder)
    assert said.status == 1
    [shown] = [block for block in section(MODELS, "Add a check", "") if check in block]
    assert shown.split("\n")[0] in said.err_text

    _write(folder / "study" / "sql" / "queries" / "quiet-servers.sql", section(MODELS, "Add a named query", "sql")[0])
    [asked] = [one for one in examples(MODELS) if "quiet-servers" in one.command]
    assert same(asked.output, _run(f"{asked.command} --format table --project study", folder))


def test_a_test_of_a_model(command: Command, tmp_path: Path) -> None:
    [test] = section(MODELS, "Test a model", "yaml")
    _write(tmp_path / "study" / "warehouse.toml", "shipped = false\n")
    lay_out_project(tmp_path / "study", ["metrics.leaf_hour"])
    place = tmp_path / "study" / "models" / "metrics" / "leaf_hour.test.yaml"
    for text, status in ((test, 0), (re.sub(r"45, ( *)0\.5", r"46, \g<1>0.5", test), 1)):
        _write(place, text)
        said = command("test", "metrics.leaf_hour", "--project", "study")
        assert said.status == status, said
    [shown] = [one for one in examples(MODELS) if one.command.startswith("warehouse test")]
    assert same(shown.output, said.err + said.out), said.err + said.out
