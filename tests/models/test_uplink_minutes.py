"""Balance of uplinks by minute: its sums are the counters, and its null is that of a fair hash."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from bench.hash_null import simulated
from tests.models.conftest import Planted

TABLE = Path(__file__).parents[2] / "data" / "hash_null.csv"
CELLS = ((3, 11), (9, 7), (9, 64), (10, 43), (10, 256), (30, 12), (30, 57), (30, 104), (30, 1024), (64, 128))
"""Uplinks and flows, among them those of the sample and of the five real switches."""


def test_totals_are_the_bytes_of_port_minute(planted: Planted) -> None:
    moved = planted.rows(
        "SELECT m.switch, m.minute_utc, d.way, sum(CASE d.way WHEN 'in' THEN m.in_bytes ELSE m.out_bytes END)::BIGINT"
        " FROM metrics.port_minute AS m JOIN topology.ports AS p USING (cluster, switch, port)"
        " CROSS JOIN (VALUES ('in'), ('out')) AS d (way)"
        " WHERE p.port_class IN ('uplink', 'storage_uplink') GROUP BY ALL"
    )
    assert moved == planted.rows("SELECT switch, minute_utc, direction, total_bytes FROM metrics.uplink_balance_minute")
    assert len(moved) == 9 * 2 * 30  # leaves, directions, minutes


def test_flows_are_those_of_the_flow_table_where_a_leaf_has_any(planted: Planted) -> None:
    sources = "SELECT DISTINCT starts_with(switch, 'ST-'), flows_source FROM metrics.uplink_balance_minute"
    assert planted.rows(sources) == [(False, "flow"), (True, "access_ports")]


@pytest.mark.parametrize(("uplinks", "flows"), CELLS)
def test_the_null_is_that_of_ten_thousand_fair_hashes(uplinks: int, flows: int) -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["uplinks"]) == uplinks and int(row["flows"]) <= flows]
    percentile = float(rows[-1]["chi_square_p99"])
    draws = simulated(np.random.default_rng(7), uplinks, flows, 10_000)
    assert np.mean(draws > percentile * (1 + 1e-5)) <= 0.013
    assert np.mean(draws >= percentile * (1 - 1e-5)) >= 0.007
