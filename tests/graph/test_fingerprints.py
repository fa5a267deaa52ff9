"""Fingerprints and sources: each input of a part is in its fingerprint, and nothing else is; what a part reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, cast

import pytest

from tests.tiny import HOURS, Tiny
from warehouse.base import hashing
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.sources import CsvFiles, Parts, Select
from warehouse.graph.dag import Graph, load_graph
from warehouse.graph.plan import RECIPE, Key, Plan
from warehouse.store.manifest import ALL, Part

HOUR, BYTES = {"hour_utc": "TIMESTAMP"}, {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}
FIRST, _ = HOURS
OF_HOUR = "SELECT make_timestamp(SaveTimeUTC * 1000) AS hour_utc, sum(InOctets) AS bytes FROM raw.port_counters"
JOINED = "FROM raw.port_counters AS r JOIN raw.files AS f ON f.read_path = r.filename"
MODELS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "staging.hour": (f"{OF_HOUR} GROUP BY ALL", BYTES, "partition: hour_utc"),
    "staging.joined": (f"SELECT f.hour_utc, count(*) AS bytes {JOINED} GROUP BY ALL", BYTES, "partition: hour_utc"),
    "topology.files": (
        "SELECT hour_utc, read_path AS path FROM raw.files",
        {**HOUR, "path": "VARCHAR"},
        "materialize: view",
    ),
    "topology.hours": (
        "SELECT hour_utc, bytes FROM staging.hour",
        BYTES,
        "partition: hour_utc\nmaterialize: view",
    ),
    "metrics.hours": ("SELECT max(hour_utc) AS hour_utc FROM staging.hour", HOUR, ""),
    "metrics.each": ("SELECT hour_utc FROM topology.hours", HOUR, "partition: hour_utc"),
    "metrics.seen": (f"SELECT max(f.hour_utc) AS hour_utc {JOINED} JOIN topology.files AS s ON true", HOUR, ""),
    "metrics.beside": (f"SELECT max(f.hour_utc) AS hour_utc {JOINED} JOIN staging.ports AS s ON true", HOUR, ""),
    "metrics.by_view": (f"SELECT max(f.hour_utc) AS hour_utc {JOINED} JOIN topology.hours AS s ON true", HOUR, ""),
}


class RawStub:
    """Raw files with two hours, whose digests and sources are the arguments."""

    def feeds(self, _: str) -> bool:
        return True

    def partitions(self, *_: object) -> set[str]:
        return set(HOURS)

    def digest(self, relation: str, partition: str | None, beside: frozenset[str] = frozenset()) -> str:
        return f"{relation} {partition} {sorted(beside)}"

    def source(self, relation: str, partition: str | None, _: object, beside: frozenset[str] = frozenset()) -> Any:
        return relation, partition, sorted(beside)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(memory_bytes=2**29, spill=tmp_path_factory.mktemp("spill"))) as engine:
        yield engine


class Case:
    """Graph of `MODELS`, finished parts, and the inputs of them."""

    def __init__(self, tiny: Tiny, engine: DuckDBEngine) -> None:
        for name, (select, columns, more) in MODELS.items():
            tiny.model(name, select, dict(columns), *filter(None, [more]))
        self.project, self.engine = tiny.project, engine
        self.graph = load_graph(self.project, engine)
        self.parts: dict[Key, Part] = {}
        for name, node in self.graph.nodes.items():
            for partition in HOURS if node.model.partition else (ALL,):
                key, digest, file = Key(name, partition), f"{name} {partition}", f"{name}/{partition}"
                self.parts[key] = Part(name, partition, "f", digest, 1, 1, file, [], {})

    def inputs(self) -> Plan:
        plan = Plan(self.project, self.graph, cast("Any", RawStub()), self.engine)
        plan.parts = self.parts
        return plan

    def reads(self, name: str, partition: str = ALL) -> Any:
        return self.inputs().inputs_of(Key(name, partition))["inputs"]


@pytest.fixture
def case(tiny: Tiny, engine: DuckDBEngine) -> Case:
    return Case(tiny, engine)


def test_the_inputs_of_a_part_are_its_select_types_engine_and_the_files_of_its_partition(case: Case) -> None:
    assert case.inputs().inputs_of(Key("staging.joined", FIRST)) == {
        "recipe": RECIPE,
        "engine": [case.engine.name, case.engine.version],
        "select": case.graph.nodes["staging.joined"].canonical_hash,
        "columns": [["hour_utc", "TIMESTAMP"], ["bytes", "BIGINT"]],
        "grain": ["hour_utc"],
        "presorted": False,
        "inputs": {
            "raw.files": f"raw.files {FIRST} ['raw.port_counters']",
            "raw.port_counters": f"raw.port_counters {FIRST} []",
        },
    }


@pytest.mark.parametrize(
    ("model", "partition", "files"),
    [
        ("staging.hour", FIRST, None),
        ("metrics.beside", ALL, "raw.files None ['raw.port_counters']"),
        ("metrics.by_view", ALL, "raw.files None ['raw.port_counters']"),
        ("metrics.seen", ALL, "raw.files None []"),
    ],
)
def test_a_model_lists_the_files_of_its_raw_relations_unless_a_view_lists_all(
    case: Case, model: str, partition: str, files: str | None
) -> None:
    assert case.reads(model, partition).get("raw.files") == files


def test_the_digest_of_an_input_is_of_its_content_and_of_the_visible_partitions(case: Case) -> None:
    inputs = case.inputs()
    path = case.project.references["reference.speeds"].path
    types = [("port", "VARCHAR"), ("speed", "BIGINT")]
    hours = hashing.of([[hour, f"staging.hour {hour}"] for hour in HOURS])
    first = hashing.of([[FIRST, f"staging.hour {FIRST}"]])
    view = case.graph.nodes["topology.hours"].canonical
    columns = list(BYTES.items())
    assert inputs.digest("reference.speeds", ALL) == hashing.of([hashing.of_file(path), types])
    assert inputs.digest("staging.ports", FIRST) == hashing.of([[ALL, "staging.ports all"]])
    assert inputs.digest("staging.hour", ALL) == hours
    assert inputs.digest("staging.hour", FIRST) == first
    assert inputs.digest("topology.hours", FIRST) == hashing.of([view, columns, {"staging.hour": first}, None])
    assert inputs.digest("raw.port_counters", ALL) == "raw.port_counters None []"
    assert inputs.digest("raw.port_counters", FIRST) == f"raw.port_counters {FIRST} []"


def test_a_volatile_select_and_what_reads_a_volatile_view_depend_on_the_build(case: Case) -> None:
    def is_stable(name: str) -> bool:
        one, other = (case.inputs().inputs_of(Key(name, FIRST)) for _ in range(2))
        return one == other

    assert is_stable("metrics.each")
    for name in ("topology.hours", "staging.joined"):
        volatile = case.graph.nodes[name]._replace(volatile=(("now()", 0),))
        case.graph = Graph({**case.graph.nodes, name: volatile}, case.graph.source_columns)
    assert not is_stable("metrics.each"), "topology.hours is a view"
    assert not is_stable("staging.joined")
    assert is_stable("staging.hour")


def test_sources_are_the_visible_parts_files_and_views_in_dependency_order(case: Case) -> None:
    inputs = case.inputs()
    view = case.graph.nodes["topology.hours"]
    columns = case.graph.nodes["staging.hour"].model.columns
    of_hour = Parts(columns, (f"staging.hour/{FIRST}",))
    each = inputs.sources(Key("metrics.each", FIRST))
    assert list(each.items()) == [("staging.hour", of_hour), ("topology.hours", Select(view.sql, view.model.columns))]
    paths = tuple(f"staging.hour/{hour}" for hour in HOURS)
    of_all = {"staging.hour": Parts(columns, paths, ("hour_utc",))}
    assert inputs.sources(Key("metrics.hours", ALL)) == of_all, "a query of an hour opens its file alone"
    joined: Any = inputs.sources(Key("staging.joined", FIRST))
    assert joined == {
        "raw.files": ("raw.files", FIRST, ["raw.port_counters"]),
        "raw.port_counters": ("raw.port_counters", FIRST, []),
    }
    reference = case.project.references["reference.speeds"]
    types, seen = {"port": "VARCHAR", "speed": "BIGINT"}, {reference.path: reference.seen}
    expected = CsvFiles(types, (reference.path,), quote='"', filename=False, seen=seen)
    assert inputs.sources(Key("staging.ports", ALL)) == {"reference.speeds": expected}
