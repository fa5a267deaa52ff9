"""Semantics as JSON and MetricFlow YAML: valid by schema or tool, and consistent with the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import warehouse
from tests.conftest import Command
from warehouse.project.project import Project
from warehouse.publish.export import semantics_text

Tables = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def said(built: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(semantics_text(built, "json"))
    return found


@pytest.fixture(scope="module")
def tables(said: dict[str, Any]) -> Tables:
    return {one["name"]: one for one in said["tables"]}


@pytest.fixture(scope="module")
def documents(built: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(semantics_text(built, "metricflow")))


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


def test_chosen_tables_alone_go_to_a_pipe(built: Path, command: Command) -> None:
    said = command("export", "--semantics", "json", "-s", "metrics.leaf_hour", "-t", built)
    names = {one["name"] for one in json.loads(said.out)["tables"]}
    assert names == {"metrics.leaf_hour"}
    unknown = command("export", "--semantics", "json", "-s", "metrics.leafhour", "-t", built)
    assert (unknown.status, unknown.out) == (2, "")
    assert "no table metrics.leafhour to export" in unknown.err


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


def test_metricflow_accepts_the_yaml(built: Path, tmp_path: Path, command: Command) -> None:
    """The parser and validator of MetricFlow find no error."""
    pytest.importorskip("dbt_semantic_interfaces")
    from dbt_semantic_interfaces.parsing.dir_to_model import parse_directory_of_yaml_files_to_semantic_manifest
    from dbt_semantic_interfaces.validations.semantic_manifest_validator import SemanticManifestValidator

    done = command("export", "out", "--semantics", "metricflow", "-t", built)
    assert done.status == 0, done.err
    (tmp_path / "alone").mkdir()
    (tmp_path / "out" / "metricflow.yaml").rename(tmp_path / "alone" / "metricflow.yaml")
    parsed = parse_directory_of_yaml_files_to_semantic_manifest(str(tmp_path / "alone"))
    assert not parsed.issues.errors
    issues = SemanticManifestValidator().validate_semantic_manifest(parsed.semantic_manifest)
    assert [str(one) for one in issues.errors] == []
    manifest = parsed.semantic_manifest
    assert len(manifest.semantic_models) > 50
    assert len(manifest.metrics) > 80


def test_metrics_sum_the_right_columns(built: Path, documents: list[dict[str, Any]]) -> None:
    """Expressions match handwritten SQL, and keys find their rows in the dimension."""
    models = {one["semantic_model"]["name"]: one["semantic_model"] for one in documents if "semantic_model" in one}
    metrics = {one["metric"]["name"]: one["metric"] for one in documents if "metric" in one}
    leaf = models["leaf_hour"]
    node = leaf["node_relation"]
    measure = {one["name"]: one for one in leaf["measures"]}["leaf_hour_in_bytes"]
    entities = {one["name"]: one["expr"] for one in leaf["entities"]}
    dimension = models["dim_switch"]
    [key] = [one for one in dimension["entities"] if one["type"] == "primary"]
    with warehouse.open(built) as asked:
        facts = f"SELECT *, {entities['switch_key']} AS k FROM {node['schema_name']}.{node['alias']}"
        joined = asked.execute(
            f"SELECT {measure['agg']}(f.{measure['expr']}) FROM ({facts}) f "
            f"JOIN reference.dim_switch d ON d.{key['expr']} = f.k"
        ).fetchall()
        assert joined == asked.execute("SELECT sum(in_bytes) FROM metrics.leaf_hour").fetchall()
    assert metrics["leaf_hour_leaving_share"]["type_params"] == {
        "numerator": {"name": "leaf_hour_uplink_out_bytes"},
        "denominator": {"name": "leaf_hour_access_in_bytes"},
    }
    assert metrics["leaf_hour_in_bytes"]["config"]["meta"] == {"unit": "B", "shown_in": "TB", "shown_factor": 1e12}
    ports = {one["name"]: one for one in models["port_hour"]["measures"]}
    assert ports["port_hour_line_rate_bps"]["non_additive_dimension"] == {"name": "hour_utc", "window_choice": "max"}
    assert metrics["port_hour_in_utilization"]["type_params"] == {
        "numerator": {"name": "port_hour_in_mean_bps_of_ratio"},
        "denominator": {"name": "port_hour_line_rate_bps_of_ratio"},
    }, "both add up over hours in the ratio, and not alone"
    assert "port_hour_busy_seconds" not in ports, "it does not add up over ports, which MetricFlow cannot say"
    assert "port_hour_in_p50_bps" not in ports, "a median of medians is none"


def test_semantics_are_printed_and_need_a_known_format(built: Path, said: dict[str, Any], command: Command) -> None:
    """Without a folder the output is standard output; other exports need a folder."""
    done = command("export", "--semantics", "json", "-t", built)
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out) == said
    assert command("export", "--semantics", "tmdl", "-t", built).status == 2
    missing = command("export", "-t", built)
    assert missing.status == 2
    assert "the folder to write is missing" in missing.err
