"""An hour depends on its own files and on the workbook; tests/runner/test_run.py builds one alone, then another."""

from __future__ import annotations

from warehouse.graph.dag import Graph
from warehouse.project.check_language import relations_of

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
