"""The view of raw polls: windows as the seconds have them, and a question about few ports reads few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.models.conftest import Planted

ASKED = {
    "port = 'TwoHundredGigE1/0/1:1' AND switch = 'Leaf-1'": "",
    "switch = 'Leaf-2'": " AND time_utc < TIMESTAMP '2024-05-23 16:05:00'",
}
"""Conditions on ports, each with one on the time of polls."""


def test_polls_have_the_windows_of_the_seconds(planted: Planted) -> None:
    seconds = """
        SELECT p.cluster, p.switch, p.port, p.hour_utc, sum(covered_ms) AS milliseconds, sum(in_bytes), sum(out_bytes)
        FROM staging.port_seconds JOIN staging.port_files AS p USING (file_key) GROUP BY ALL"""
    polls = """
        SELECT cluster, switch, port, hour_utc, sum(greatest(1, epoch_ms(time_utc) - epoch_ms(window_start_utc))),
            sum(in_bytes), sum(out_bytes)
        FROM staging.port_counters WHERE window_start_utc IS NOT NULL GROUP BY ALL"""
    assert planted.rows(seconds) == planted.rows(polls) != []


@pytest.mark.parametrize("of_ports", ASKED)
def test_windows_are_worked_out_for_the_ports_that_are_asked_for(of_ports: str, planted: Planted) -> None:
    """Else a question about one port would sort the polls of all."""
    [(wanted,)] = planted.rows(
        "SELECT count(*) FROM staging.port_readings AS r "
        f"JOIN (SELECT * EXCLUDE (hour_utc, switch) FROM staging.port_files) AS p USING (file_key) WHERE {of_ports}"
    )
    (_, plan), *_ = planted.connection.execute(
        f"EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM staging.port_counters WHERE {of_ports}{ASKED[of_ports]}"
    ).fetchall()
    operators = _operators(json.loads(plan)["operator"])
    worked = [operator["intermediate_rows"] for operator in operators if operator["type"] == "WINDOW"]
    assert worked == [wanted, wanted]  # the time of the row before, then refreshes among the corrected bytes


def _operators(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from _operators(node.get("children", []))
