"""Semantics as JSON: valid by its schema, and consistent with the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from warehouse.project.project import Project
from warehouse.publish.export import semantics_text

Tables = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def said(built: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(semantics_text(built))
    return found


@pytest.fixture(scope="module")
def tables(said: dict[str, Any]) -> Tables:
    return {one["name"]: one for one in said["tables"]}


def test_the_schema_accepts_the_json_and_rejects_a_wrong_one(built: Path, tmp_path: Path, command: Command) -> None:
    """The published schema accepts the JSON, and rejects a measure without an aggregate."""
    jsonschema = pytest.importorskip("jsonschema")
    done = command("export", "out", "--semantics", "json", "-t", built)
    assert done.status == 0, done.err
    assert done.out.startswith("Wrote  5 files to out: 2 of data, ")
    schema = json.loads((tmp_path / "out" / "semantics.schema.json").read_text(encoding="utf-8"))
    found = json.loads((tmp_path / "out" / "semantics.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(found))
    measure = next(one for table in found["tables"] for one in table["measures"] if one["aggregate"] == "sum")
    for wrong in ({"aggregate": "total"}, {"numerator": "in_bytes"}, {"shown_factor": 0}, {"more": 1}):
        kept = dict(measure)
        measure.update(wrong)
        assert list(validator.iter_errors(found)), wrong
        measure.clear()
        measure.update(kept)
    assert not list(validator.iter_errors(found))


def test_the_json_matches_every_model(tables: Tables) -> None:
    """Each metrics model is there with its time, dimensions, measures and other columns."""
    models = {name: one for name, one in Project.open().models.items() if one.layer == "metrics"}
    assert {name for name in tables if name.startswith("metrics.")} == set(models)
    for name, model in models.items():
        table, semantics = tables[name], model.semantics
        assert (table["about"], table["grain"], table["time"]) == (model.about, list(model.grain), semantics.time)
        assert [one["name"] for one in table["dimensions"]] == [n for n in semantics.dimensions if n != semantics.time]
        measures = {one["name"]: one for one in table["measures"]}
        assert {one.column: (one.how, list(one.not_over), one.unit, one.factor) for one in semantics.measures} == {
            key: (one["aggregate"], one["not_over"], one["shown_in"], one["shown_factor"])
            for key, one in measures.items()
        }
        told = {one["name"] for part in ("dimensions", "measures", "attributes") for one in table[part]}
        assert told | {table["time"]} >= {column.name for column in model.columns}
    leaf = {one["name"]: one for one in tables["metrics.leaf_hour"]["measures"]}
    assert (leaf["in_bytes"]["unit"], leaf["in_bytes"]["shown_in"], leaf["in_bytes"]["shown_factor"]) == (
        "B",
        "TB",
        1e12,
    )
    assert leaf["leaving_share"]["denominator"] == "access_in_bytes"
    assert {"reference.dim_switch", "reference.dim_port", "reference.dim_cluster"} <= tables.keys()


def test_semantics_are_printed_and_need_a_known_format_and_table(
    built: Path, said: dict[str, Any], command: Command
) -> None:
    """Without a folder the output is standard output; other exports need a folder."""
    words = ("export", "--semantics", "json", "-t", built)
    done = command(*words)
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == said
    chosen = json.loads(command(*words, "-s", "metrics.leaf_hour").out)
    assert {one["name"] for one in chosen["tables"]} == {"metrics.leaf_hour"}
    unknown = command(*words, "-s", "metrics.leafhour")
    assert (unknown.status, unknown.out) == (2, "")
    assert "no table metrics.leafhour to export" in unknown.err
    assert command("export", "--semantics", "tmdl", "-t", built).status == 2
    missing = command("export", "-t", built)
    assert (missing.status, "the folder to write is missing" in missing.err) == (2, True)
