"""docs/star.md as an analyst reads it: its five queries equal `metrics.*`, and its wrong queries are wrong."""

from __future__ import annotations

import math
import re
from pathlib import Path

import duckdb

from tests.models.conftest import Planted

PAGE = (Path(__file__).parents[2] / "docs" / "star.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"```sql\n(.*?)```", re.DOTALL)
QUESTIONS = BLOCKS.findall(PAGE.partition("\n## Five questions\n")[2].partition("\n## ")[0])
TRAPS = BLOCKS.findall(PAGE.partition("\n## Traps\n")[2].partition("\n## ")[0])
EXPECTED = (
    (
        "SELECT cluster, leaf_group, sum(in_utilization) / 60 / (SELECT count(*) FROM reference.dim_hour) FROM ({}) "
        "GROUP BY ALL"
    ),
    "SELECT label, tx_bytes FROM ({}) ORDER BY tx_bytes DESC, label LIMIT 10",
    "SELECT label, leaving_share FROM ({})",
    "SELECT label, job_type, state, jobs FROM ({})",
    "SELECT cluster, hour_utc, group_id, sum(bytes)::BIGINT FROM ({}) GROUP BY ALL",
)
METRICS = (
    (
        "SELECT cluster, leaf_group, sum(in_mean_bps) / sum(line_rate_bps) FROM metrics.port_hour "
        "JOIN topology.switches USING (cluster, switch) GROUP BY ALL"
    ),
    (
        "SELECT server, sum(tx_bytes) AS tx_bytes FROM metrics.server_hour GROUP BY ALL "
        "ORDER BY tx_bytes DESC, server LIMIT 10"
    ),
    (
        "SELECT switch, sum(leaving_share * access_in_bytes) / sum(access_in_bytes) FROM metrics.leaf_hour "
        "WHERE starts_with(switch, 'Leaf-') GROUP BY ALL"
    ),
    "SELECT cluster, job_type, state, count(*) FROM metrics.jobs GROUP BY ALL",
    "SELECT cluster, hour_utc, group_id, bytes FROM metrics.traffic_jobs",
)


def compare(opened: duckdb.DuckDBPyConnection) -> int:
    """Compare the answers of the page with those of `metrics`, row by row; return how many questions have rows."""
    assert len(QUESTIONS) == len(EXPECTED)
    answered = 0
    for question, shape, metrics in zip(QUESTIONS, EXPECTED, METRICS, strict=True):
        found, known = (sorted(opened.execute(one).fetchall(), key=str) for one in (shape.format(question), metrics))
        assert len(found) == len(known), question
        answered += bool(known)
        for row, other in zip(found, known, strict=True):
            for cell, value in zip(row, other, strict=True):
                same = math.isclose(cell, value, rel_tol=1e-9) if isinstance(cell, float) else cell == value
                assert same, (row, other)
    return answered


def test_the_five_questions_equal_the_tables_of_metrics(planted: Planted) -> None:
    assert compare(planted.connection) == 5


def test_the_wrong_queries_are_wrong(planted: Planted) -> None:
    check_traps(planted.connection)


def check_traps(opened: duckdb.DuckDBPyConnection) -> None:
    """Compare the right query of each trap with `metrics.*`; the wrong one gives a fifth more at least."""
    right = (
        "SELECT sum(rx_bytes) FROM metrics.server_hour",
        "SELECT sum(in_bytes) FROM metrics.port_hour",
        "SELECT sum(in_mean_bps) / sum(line_rate_bps) FROM metrics.port_hour",
    )
    assert len(TRAPS) == len(right)
    for block, expected in zip(TRAPS, right, strict=True):
        wrong, good, end = block.split(";\n")
        assert end == ""
        values = [opened.execute(one).fetchall()[0][0] for one in (wrong, good, expected)]
        assert math.isclose(values[1], values[2], rel_tol=1e-9), block
        assert values[0] > 1.2 * values[2], block
