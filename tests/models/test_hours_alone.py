"""An hour depends on its own files and on the workbook: one more hour, or one without a sheet, changes no other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.release import lay_out_project
from warehouse.graph.dag import Graph
from warehouse.project.check_language import relations_of
from warehouse.project.project import Project
from warehouse.store.manifest import last_manifest
from warehouse.store.partitions import hour_of

HOURLY = "hour_utc"


def _spans_hours(graph: Graph, name: str) -> bool:
    """Return True if the rows of an unpartitioned model depend on which hours are loaded."""
    reads = graph.ancestors(name)
    partitions = {column for read in reads if read in graph.nodes for column in graph.nodes[read].model.partition}
    return HOURLY in partitions or bool(reads & {"raw.port_counters", "raw.link", "raw.nic", "raw.flow", "raw.port"})


def test_no_hourly_model_reads_a_table_that_spans_hours(graph: Graph) -> None:
    found: dict[str, set[str]] = {}
    for name, node in graph.nodes.items():
        checked = {read for check in node.model.checks for read in relations_of(check.text)}
        reads = (graph.ancestors(name) | checked) & graph.nodes.keys() if HOURLY in node.model.partition else set()
        spanning = {r for r in reads if not graph.nodes[r].model.partition and _spans_hours(graph, r)}
        found |= {name: spanning} if spanning else {}
    assert found == {}
    assert _spans_hours(graph, "topology.ports")
    assert not _spans_hours(graph, "topology.port_owners")


def _parts(target: Path) -> dict[tuple[str, str], str]:
    """Return the digest of each hourly part of the published build."""
    manifest = last_manifest(target)
    assert manifest is not None
    return {(p["model"], p["partition"]): p["digest"] for p in manifest.parts if p["partition"]}


def test_an_hour_has_the_bytes_alone_that_it_has_beside_another_which_is_planned_alone(
    graph: Graph, sample: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hourly models and all that they read, of the second hour of the sample; `built` has both hours."""
    hourly = [name for name, node in graph.nodes.items() if HOURLY in node.model.partition]
    project = lay_out_project(tmp_path / "project", hourly)
    monkeypatch.setattr(Project, "open", lambda _=None: project)
    root, target = tmp_path / "release", tmp_path / "target"
    shutil.copytree(sample, root, ignore=shutil.ignore_patterns("2024052400"))
    warehouse.build(root, target)
    alone, beside = _parts(target), _parts(built)
    assert {model for model, _ in alone} >= {"staging.port_seconds", "metrics.server_hour", "metrics.traffic_groups"}
    assert {hour_of(partition) for _, partition in alone} == {"2024-05-23T17"}
    assert {key: beside[key] for key in alone} == alone

    shutil.copytree(sample, root, dirs_exist_ok=True)
    said = call("plan", "-d", root, "-t", target, "--json", cwd=tmp_path)
    planned = {(part["model"], part["partition"]) for part in json.loads(said.out)["parts"] if part["action"] != "keep"}
    assert {hour_of(partition) for _, partition in planned if partition} == {"2024-05-23T16"}
    assert ("metrics.server_hour", "2024-05-23T16") in planned
