"""An hour depends on its own files and on the workbook: one more hour, or one without a sheet, changes no other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.release import keep_switches, lay_out_project
from warehouse.graph.dag import Graph
from warehouse.project.check_language import relations_of
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, write_sample
from warehouse.store.manifest import last_manifest
from warehouse.store.partitions import hour_of

HOURLY = "hour_utc"
LATE_PORT = "TwoHundredGigE1/0/1:1"
"""A port of Leaf-5 that only the second hour has."""


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


def test_one_more_hour_is_planned_alone_and_has_the_bytes_that_it_has_alone(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the hourly models, all that they read, and the table that shows which ports have counters."""
    hourly = [name for name, node in graph.nodes.items() if HOURLY in node.model.partition]
    project = lay_out_project(tmp_path / "project", [*hourly, "topology.ports"])
    monkeypatch.setattr(Project, "open", lambda _=None: project)
    root, target = tmp_path / "release", tmp_path / "target"
    write_sample(root, SampleOptions(hours=2, seconds=60, jobs=False, utilization=False))
    first, second = sorted(path for path in root.glob("zhejiang/*/trafficinfo/*") if path.is_dir())
    for hour in (first, second):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-Leaf-5_", "ROCE-ST-leaf-1_")
    (late,) = first.glob("*/Leaf-5_1_1.csv")
    late.unlink()

    shutil.move(second, tmp_path / "kept")
    warehouse.build(root / "zhejiang", target)
    before = _parts(target)
    shutil.move(tmp_path / "kept", second)
    said = call("plan", "-d", root / "zhejiang", "-t", target, "--json", cwd=tmp_path)
    warehouse.build(root / "zhejiang", target)
    after = _parts(target)
    shutil.rmtree(first)
    warehouse.build(root / "zhejiang", tmp_path / "alone")
    alone = _parts(tmp_path / "alone")

    planned = {(part["model"], part["partition"]) for part in json.loads(said.out)["parts"] if part["action"] != "keep"}
    assert {hour_of(partition) for _, partition in planned if partition} == {"2024-05-23T17"}
    assert ("metrics.server_hour", "2024-05-23T17") in planned
    assert {key: after[key] for key in before} == before
    assert {key: after[key] for key in alone} == alone
    assert before.keys() | alone.keys() == after.keys()
    with warehouse.open(target) as connection:
        at = f"WHERE switch = 'Leaf-5' AND port = '{LATE_PORT}'"
        assert connection.execute(f"SELECT count(*) FROM metrics.port_hour {at}").fetchall() == [(1,)]
        assert connection.execute(f"SELECT has_counters FROM topology.ports {at}").fetchall() == [(True,)]
