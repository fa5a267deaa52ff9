"""Scores of jobs in the traffic, and hours without jobs."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from bench.jobs_traffic import BY_KIND, BY_PERIOD, TOTALS, score, shifted, surrogate
from tests.models.planted_hours import dense, table

TRUTH = [
    {"job_id": job, "server": server, "kind": kind, "rails": rails, "period_seconds": 20.0}
    for job, kind, servers, rails in (
        *(("a", "stages", "123", [1, 2]), ("a", "stages", "4", [3]), ("b", "stages", "567", [1])),
        *(("c", "plain", "89", [1]), ("d", "single", "0", [1])),
    )
    for server in servers
]
JOBS = (
    "SELECT job_id, servers, together, best, whole, is_held, odd, odd_found, period, is_stated FROM jobs ORDER BY ALL"
)
WRONG = "SELECT kind, count(*) FROM wrong GROUP BY ALL"


def scored(groups: dict[int, str], group: int) -> duckdb.DuckDBPyConnection:
    """Return the scores of an hour whose groups have these servers, of which one has a period."""
    members = [{"group_id": number, "server": server} for number, servers in groups.items() for server in servers]
    period = {"group_id": group, "period_seconds": 20.05, "period_error_seconds": 0.1}
    tables = [pa.Table.from_pylist(rows) for rows in (TRUTH, members, [period])]
    return score([[table.append_column("hour", pa.array([7] * len(table))) for table in tables]])


def test_scores_count_what_is_right_and_what_is_wrong() -> None:
    right = scored({1: "1234", 2: "567", 3: "89"}, 1)
    assert right.execute(JOBS).fetchall() == [
        ("a", 4, 6, 4, 4, True, 1, 1, 20.05, True),
        ("b", 3, 3, 3, 3, True, 0, 0, None, None),
        ("c", 2, 1, 2, 2, True, 0, 0, None, None),
    ]
    assert right.execute(WRONG).fetchall() == []
    assert right.execute(BY_PERIOD).fetchone() == (
        "16 to 120",
        3,
        "100.0%",
        "33.3%",
        "100.0%",
        "0.0%",
        "0.2500%",
        "100.0%",
    )
    wrong = scored({1: "1235", 2: "890x"}, 2)
    assert wrong.execute(JOBS).fetchall() == [
        ("a", 4, 3, 3, 4, True, 1, 0, None, None),
        ("b", 3, 0, 1, 4, False, 0, 0, None, None),
        ("c", 2, 1, 2, 4, False, 0, 0, None, None),
    ]
    assert dict(wrong.execute(WRONG).fetchall()) == {"all": 8, "stages": 3, "plain": 4, "single": 3, "no job": 3}
    assert wrong.execute(TOTALS).fetchall() == [(2, 2, 1, 0)]
    assert wrong.execute(BY_KIND).fetchall() == [
        ("plain", 1, "100.0%", "0.0%", 1, "100.0%", "20.0%"),
        ("stages", 2, "0.0%", "0.0%", 9, "33.3%", "50.0%"),
        ("all", 3, "33.3%", "0.0%", 10, "40.0%", "33.3%"),
    ]


def test_null_hours_keep_the_bytes_of_each_rail_and_part_the_servers() -> None:
    rng = np.random.default_rng(1)
    wave = np.convolve(rng.integers(0, 10**9, 3600), np.ones(9), "same").astype(np.int64)
    rails = table(
        [(server, rail, "Leaf-1") for server in "ab" for rail in (1, 2)], np.stack([wave] * 4), np.full((4, 3600), 900)
    )
    for make in (shifted, surrogate):
        moved, longest = dense(make(rails, np.random.default_rng(2)))
        assert (longest > 0).all()
        assert (np.sort(moved) == np.sort(wave)).all()
        assert (moved[0] == moved[1]).all()  # rails of one server stay together
        alike = [np.corrcoef(moved[0, 300:3500], np.roll(moved[2], lag)[300:3500])[0, 1] for lag in range(-15, 16)]
        assert max(alike) < 0.35
