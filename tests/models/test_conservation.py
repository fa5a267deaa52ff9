"""The checks that guard JOINs find a row that is lost; an hour depends on its own files and on the workbook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import warehouse
from warehouse.graph.dag import Graph
from warehouse.project.model import compile_check, relations_of

LOST = {
    "topology.servers": "evidence = 'inferred:slot'",
    "topology.sheet_servers": "server = 'GPU-1'",
    "topology.switches": "switch = 'spine-1'",
    "topology.uplinks": "leaf = 'Leaf-1'",
    "topology.port_owners": "evidence = 'workbook' AND switch = 'Leaf-1'",
    "topology.ring_edges": "evidence = 'inferred:ring_pattern'",
    "topology.task_communicators": "is_world",
    "metrics.port_minute": "in_bytes > 0",
    "metrics.port_hour": "in_bytes > 0",
    "metrics.leaf_hour": "in_bytes > 0",
    "metrics.server_hour": "rx_bytes > 0",
    "metrics.rail_seconds": "list_sum(bytes) > 0",
    "metrics.job_periods": "bytes > 0",
    "metrics.sampling_quality": "zero_rows > 0",
    "metrics.spine_hour": "to_leaf_bytes > 0",
    "metrics.uplink_balance": "direction = 'in'",
    "metrics.port_loss_hour": "ecn_marked > 0",
    "metrics.traffic_periods": "unresolved = 'idle'",
    "metrics.task_expected_bytes": "true",
    "metrics.task_summary": "true",
    "metrics.task_traffic": "rx_bytes > 0",
}
"""Models with a check that every row of a kind is there, and which of these rows is taken away."""


@pytest.fixture(scope="module")
def asked(built: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with warehouse.open(built) as connection:
        yield connection


def _failing(asked: duckdb.DuckDBPyConnection, graph: Graph, name: str, rows: str) -> set[str]:
    """Return the checks of a model that fail for these rows in its place."""
    model = graph.nodes[name].model
    failing: set[str] = set()
    for check in model.checks:
        sql = re.sub(rf"\b{name}\b", lambda _: rows, compile_check(check, model).failing)
        if asked.execute(f"SELECT 1 FROM ({sql}) LIMIT 1").fetchall() and not check.warn:
            failing.add(check.text)
    return failing


@pytest.mark.parametrize("name", LOST)
def test_a_lost_row_is_found(asked: duckdb.DuckDBPyConnection, graph: Graph, name: str) -> None:
    grain = ", ".join(graph.nodes[name].model.grain)
    first = f"SELECT {grain} FROM {name} WHERE {LOST[name]} ORDER BY {grain} LIMIT 1"
    assert len(asked.execute(first).fetchall()) == 1
    assert _failing(asked, graph, name, f"(FROM {name})") == set()
    assert _failing(asked, graph, name, f"(FROM {name} ANTI JOIN ({first}) USING ({grain}))")


HOURLY = "hour_utc"


def _spans_hours(graph: Graph, name: str) -> bool:
    """Return True if the rows of an unpartitioned model depend on which hours are loaded."""
    reads = graph.ancestors(name)
    partitions = {column for read in reads if read in graph.nodes for column in graph.nodes[read].model.partition}
    return HOURLY in partitions or bool(reads & {"raw.port_counters", "raw.link", "raw.nic", "raw.flow", "raw.port"})


def test_no_hourly_model_reads_a_table_that_spans_hours(graph: Graph) -> None:
    """tests/runner/test_run.py builds one hour alone, then another."""
    found: dict[str, set[str]] = {}
    for name, node in graph.nodes.items():
        checked = {read for check in node.model.checks for read in relations_of(check.text)}
        reads = (graph.ancestors(name) | checked) & graph.nodes.keys() if HOURLY in node.model.partition else set()
        spanning = {r for r in reads if not graph.nodes[r].model.partition and _spans_hours(graph, r)}
        found |= {name: spanning} if spanning else {}
    assert found == {}
    assert _spans_hours(graph, "topology.ports")
    assert not _spans_hours(graph, "topology.port_owners")
