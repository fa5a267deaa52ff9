"""The view of raw polls: windows as the seconds have them, and a question about few ports reads few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.models.conftest import Planted

ASKED = {
    "a port": "port = 'TwoHundredGigE1/0/1:1' AND switch = 'Leaf-1'",
    "some minutes of a switch": "switch = 'Leaf-2' AND time_utc < TIMESTAMP '2024-05-23 16:05:00'",
    "an hour": "hour_utc = TIMESTAMP '2024-05-23 17:00:00'",
    "nothing": "switch = 'there is none'",
}


def test_polls_have_the_windows_of_the_seconds(planted: Planted) -> None:
    seconds = """
        SELECT p.cluster, p.switch, p.port, p.hour_utc, sum(covered_ms) AS milliseconds, sum(in_bytes), sum(out_bytes)
        FROM staging.port_seconds JOIN staging.port_files AS p USING (file_key) GROUP BY ALL"""
    polls = """
        SELECT cluster, switch, port, hour_utc, sum(greatest(1, epoch_ms(time_utc) - epoch_ms(window_start_utc))),
            sum(in_bytes), sum(out_bytes)
        FROM staging.port_counters WHERE window_start_utc IS NOT NULL GROUP BY ALL"""
    assert planted.rows(seconds) == planted.rows(polls) != []


def test_polls_without_a_window_moved_nothing(planted: Planted) -> None:
    rows = planted.rows(
        "SELECT DISTINCT in_bytes, out_bytes, list_contains(flags, 'no_refresh') FROM staging.port_counters "
        "WHERE window_start_utc IS NULL"
    )
    assert rows == [(0, 0, True)]


def test_phases_of_switches_are_the_planted_ones(planted: Planted) -> None:
    """In both hours, but for chance: between two polls the refresh may be anywhere."""
    rows = planted.rows(
        "SELECT switch, refresh_phase_ms, refresh_spread_ms, refresh_readings FROM metrics.sampling_quality"
    )
    true = {one["switch"]: one["phase_ms"] for one in planted.truth["switch_phases"]}
    assert [row[0] for row in rows] == sorted([*true, *true])
    for switch, phase, spread, readings in rows:
        off = (phase - true[switch] + 500) % 1000 - 500
        assert abs(off) <= 30, (switch, phase, true[switch])
        assert spread <= 50
        assert readings > 1000


@pytest.mark.parametrize("asked", ASKED)
def test_windows_are_worked_out_for_the_ports_that_are_asked_for(asked: str, planted: Planted) -> None:
    """Else a question about one port would sort the polls of all."""
    of_ports = ASKED[asked].partition(" AND time_utc")[0]
    wanted = planted.rows(
        "SELECT count(*) FROM staging.port_readings AS r "
        f"JOIN (SELECT * EXCLUDE (hour_utc, switch) FROM staging.port_files) AS p USING (file_key) WHERE {of_ports}"
    )[0][0]
    (_, plan), *_ = planted.connection.execute(
        f"EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM staging.port_counters WHERE {ASKED[asked]}"
    ).fetchall()
    operators = _operators(json.loads(plan)["operator"])
    worked = [operator["intermediate_rows"] for operator in operators if operator["type"] == "WINDOW"]
    assert worked == [wanted, wanted]  # the time of the row before, then refreshes among the corrected bytes


def _operators(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from _operators(node.get("children", []))
