"""Findings as the command, the build and the queries tell them; clean samples have no warning."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import warehouse
from tests.conftest import call
from tests.release import only
from warehouse.base.text import fields
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, write_sample

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import Planted

BESIDE = {"fullest_link": "hottest-uplinks", "less_from_spine": "miscabled"}
"""Queries that show what a sentence names beside its own subject: the fullest uplink; the uplink that is the cause."""


def test_the_command_tells_warnings_first_and_the_same_as_json(planted: Planted, tmp_path: Path) -> None:
    said = call("findings", "-t", planted.target, cwd=tmp_path)
    assert said.status == 0
    assert said.out.startswith("11 warnings\n\nlink silent one way: The uplink Leaf-7 1/0/37 is silent inward: ")
    out = said.out.replace(f" -t {planted.target}", "")  # a command is not broken
    assert max(map(len, out.splitlines())) <= 80
    told = json.loads(call("findings", "-t", planted.target, "--json", cwd=tmp_path).out)
    assert [one["severity"] for one in told] == ["warning"] * 11 + ["note"] * (len(told) - 11)
    assert out.endswith(f"\n\nand {len(told) - 12} more: warehouse sql -q findings\n")
    assert [one["what"] in said.out for one in told[:12]] == [True] * 12
    asked = json.loads(call("sql", "-t", planted.target, "-q", "findings", "--json", cwd=tmp_path).out)
    assert [one["sentence"] for one in asked] == [one["sentence"] for one in told]


def test_the_command_of_a_finding_shows_each_port_server_and_spine_that_it_names(
    planted: Planted, tmp_path: Path
) -> None:
    for kind, sentence, command in planted.rows("SELECT kind, sentence, look_further FROM metrics.findings"):
        shown = call(*command.split()[1:], "--format", "table", "-t", planted.target, cwd=tmp_path)
        assert (command.split()[0], shown.status) == ("warehouse", 0), command
        said = shown.out
        if beside := BESIDE.get(kind):
            said += call("sql", "-q", beside, "-t", planted.target, cwd=tmp_path).out
        ports = re.findall(r"\b\d/\d/\d+(?::\d)?", sentence)
        named = re.findall(r"\b(?:GPU|ST-leaf|spine)-\d+(?:/\d+)?|\bLeaf-\d+\b(?!\.)", sentence)
        assert ports or named or kind in ("observation", "idle_servers", "claims_differ"), sentence
        assert [
            name for name in (*ports, *named) if not re.search(rf"{re.escape(name)}(?!\d)", command + said)
        ] == [], said


def test_the_build_ends_with_at_most_eight_lines_of_findings(planted: Planted, tmp_path: Path) -> None:
    said = call("sql", "-t", planted.target, "-q", "after-build", "--format", "csv", cwd=tmp_path).out
    assert said.splitlines()[-1].strip('"') == "Next:  warehouse findings  (11 warnings, 11 notes, in sentences)"
    lines = [line for line in said.splitlines() if "warning" in line or "note" in line]
    assert len(lines) == 8
    assert max(map(len, lines)) <= 73


def test_a_clean_sample_has_no_warning(tmp_path: Path) -> None:
    clean = SampleOptions(seed=1, hours=1, seconds=60, planted=False, jobs=False, utilization=False, hour_tables=False)
    write_sample(tmp_path / "sample", clean)
    with only(tmp_path / "project", "metrics.findings"):
        warehouse.build(tmp_path / "sample" / "zhejiang", tmp_path / "target")
    with warehouse.open(tmp_path / "target") as connection:
        assert connection.execute("FROM metrics.suspect_links").fetchall() == []
        severities = connection.execute("SELECT severity, count(*) FROM metrics.findings GROUP BY ALL").fetchall()
    assert severities == [("note", 2)]
    assert call("findings", "-t", tmp_path / "target", cwd=tmp_path).out.startswith("No warnings\n\n2 notes\n")


def test_each_warning_of_a_model_has_a_sentence_that_its_rows_fill(planted: Planted) -> None:
    project = Project.open(None)
    warned = [(model, check) for model in project.models.values() for check in model.checks if check.warn]
    assert len(warned) > 20
    assert [(model.name, check.text) for model, check in warned if not check.says] == []
    for model, check in warned:
        if check.text.startswith("none:"):
            asked = re.sub(r"\bthis\b", model.name, check.text.removeprefix("none:"))
            given = [name for name, *_ in planted.connection.execute(f"DESCRIBE {asked}").fetchall()]
        else:
            given = [column.name for column in model.columns]
        assert set(fields(check.says)) <= set(given), check.says
