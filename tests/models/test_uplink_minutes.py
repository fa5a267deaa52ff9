"""Balance of uplinks by minute: the planted minute is found, and the null is that of a fair hash."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import warehouse
from bench.hash_null import simulated
from tests.models.conftest import Planted

TABLE = Path(__file__).parents[2] / "data" / "hash_null.csv"
CELLS = ((3, 11), (9, 64), (10, 256), (30, 57), (30, 1024))
"""Uplinks and flows, among them those of the sample and of the five real switches."""


def test_the_planted_minute_is_the_only_one_above_a_fair_hash(planted: Planted) -> None:
    [trap] = planted.traps("uneven_minute")
    listed = warehouse.query("uneven-minutes", planted.target, limit=1000)
    names = [column[0] for column in listed.description]
    rows = [dict(zip(names, row, strict=True)) for row in listed.fetchall()]
    [above] = [row for row in rows if row["over_null"] > 1]
    assert rows[0] == above
    assert (above["leaf"], above["direction"]) == (trap["switch"], trap["direction"])
    assert (str(above["minute_utc"]), above["fullest_uplink"]) == (trap["minute_utc"], trap["uplink"])
    counted = "SELECT switch, minute_utc FROM metrics.uplink_balance_minute WHERE cov > hash_null_p99"
    assert [(leaf, str(minute)) for leaf, minute in planted.rows(counted)] == [(trap["switch"], trap["minute_utc"])]


@pytest.mark.parametrize(("uplinks", "flows"), CELLS)
def test_the_null_is_that_of_ten_thousand_fair_hashes(uplinks: int, flows: int) -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["uplinks"]) == uplinks and int(row["flows"]) <= flows]
    percentile = float(rows[-1]["chi_square_p99"])
    draws = simulated(np.random.default_rng(7), uplinks, flows, 10_000)
    assert np.mean(draws > percentile) <= 0.013, "also where many draws hit the percentile"
    assert np.mean(draws >= percentile * (1 - 3e-5)) >= 0.007
    assert np.mean(draws > percentile * 1.5**2) < 0.001, "chance rarely has 1.5 times the limit"
