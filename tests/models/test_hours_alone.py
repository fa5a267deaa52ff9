"""An hour depends on its own files and on the workbook: one more hour, or one without a sheet, changes no other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import warehouse
from tests.conftest import call
from tests.release import keep_switches, lay_out_project
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import Graph, load_graph
from warehouse.project.check_language import relations_of
from warehouse.project.project import Project
from warehouse.sample import SampleOptions, write_sample
from warehouse.store.manifest import last_manifest
from warehouse.store.partitions import hour_of

CLUSTER = "zhejiang/cluster_sample"
HOURLY = "hour_utc"
LATE_PORT = "Leaf-5_1_1.csv"
"""A port that only the last hour has."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    spill = tmp_path_factory.mktemp("spill")
    with closing(DuckDBEngine(memory_bytes=2**30, spill=spill)) as engine:
        return load_graph(Project.open(), engine)


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


@pytest.fixture(scope="module")
def three_hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three hours of a minute, two leaves and a storage leaf each; two of them without one port."""
    root = tmp_path_factory.mktemp("three-hours")
    write_sample(root, SampleOptions(hours=3, seconds=60, jobs=False, utilization=False))
    for hour in _hours(root):
        keep_switches(hour, "ROCE-Leaf-1_", "ROCE-Leaf-5_", "ROCE-ST-leaf-1_")
    for hour in _hours(root)[:2]:
        (late,) = hour.glob(f"*/{LATE_PORT}")
        late.unlink()
    return root


def _hours(root: Path) -> list[Path]:
    return sorted(path for path in (root / CLUSTER / "trafficinfo").iterdir() if path.is_dir())


def _release(three_hours: Path, base: Path, hours: Iterable[int]) -> Path:
    """A release with these of the three hours, and the workbook."""
    root = base / "release"
    shutil.copytree(three_hours / CLUSTER, root / CLUSTER, ignore=shutil.ignore_patterns("trafficinfo"))
    for hour in hours:
        _add(three_hours, root, hour)
    return root


def _add(three_hours: Path, root: Path, hour: int) -> None:
    source = _hours(three_hours)[hour]
    shutil.copytree(source, root / CLUSTER / "trafficinfo" / source.name)


def _parts(target: Path) -> dict[tuple[str, str], str]:
    """The digest of each hourly part of the published build."""
    manifest = last_manifest(target)
    assert manifest is not None
    return {(p["model"], p["partition"]): p["digest"] for p in manifest.parts if p["partition"]}


class Grown(NamedTuple):
    """Target of two hours to which a build added the third."""

    target: Path
    planned: set[tuple[str, str]]
    before: dict[tuple[str, str], str]
    after: dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def hourly(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build with the hourly models alone, all that they read, and the table that shows which ports have counters."""
    names = [name for name, node in graph.nodes.items() if HOURLY in node.model.partition]
    project = lay_out_project(tmp_path_factory.mktemp("project"), [*names, "topology.ports"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: project)
        yield


@pytest.fixture(scope="module")
def grown(hourly: None, three_hours: Path, tmp_path_factory: pytest.TempPathFactory) -> Grown:
    base = tmp_path_factory.mktemp("grown")
    root, target = _release(three_hours, base, range(2)), base / "target"
    warehouse.build(root, target)
    before = _parts(target)
    _add(three_hours, root, 2)
    said = call("plan", "-d", root, "-t", target, "--json", cwd=base)
    assert said.status == 0, said
    parts = [part for part in json.loads(said.out)["parts"] if part["action"] != "keep"]
    warehouse.build(root, target)
    return Grown(target, {(part["model"], part["partition"] or "all") for part in parts}, before, _parts(target))


def test_one_more_hour_is_planned_alone_and_leaves_the_others_as_they_are(grown: Grown) -> None:
    of_hours = {(model, partition) for model, partition in grown.planned if partition != "all"}
    assert {hour_of(part) for _, part in of_hours} == {"2024-05-23T18"}
    assert ("metrics.server_hour", "2024-05-23T18") in of_hours
    assert {key: grown.after[key] for key in grown.before} == grown.before
    with warehouse.open(grown.target) as connection:
        late = "FROM metrics.port_hour WHERE switch = 'Leaf-5' AND port = 'TwoHundredGigE1/0/1:1'"
        assert connection.execute(f"SELECT count(*) {late}").fetchone() == (1,)
        ports = "SELECT has_counters FROM topology.ports WHERE switch = 'Leaf-5' AND port = 'TwoHundredGigE1/0/1:1'"
        assert connection.execute(ports).fetchall() == [(True,)]


def test_an_hour_has_equal_bytes_alone_and_last(grown: Grown, three_hours: Path, tmp_path: Path) -> None:
    warehouse.build(_release(three_hours, tmp_path, [2]), tmp_path / "target")
    alone = _parts(tmp_path / "target")
    assert alone
    assert {key: grown.after[key] for key in alone} == alone
