"""The star: each key is found in its dimension, and the queries of docs/star.md give the numbers of `metrics`."""

from __future__ import annotations

import math
import re
from pathlib import Path

import duckdb

from tests.models.conftest import Planted

Connection = duckdb.DuckDBPyConnection
KEYS = {
    "dim_cluster": ("cluster",),
    "dim_switch": ("cluster", "switch"),
    "dim_port": ("cluster", "switch", "port"),
    "dim_server": ("cluster", "server"),
    "dim_nic": ("cluster", "server", "nic"),
    "dim_hour": ("hour_utc",),
}
"""The dimensions, and the columns that a row of each is named by."""
NO_CLUSTER = {"metrics.findings": "all"}
"""A value of `cluster` that names none: what is found in all of them."""
PAGE = (Path(__file__).parents[2] / "docs" / "star.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"```sql\n(.*?)```", re.DOTALL)
QUESTIONS = BLOCKS.findall(PAGE.partition("\n## Five questions\n")[2].partition("\n## ")[0])
TRAPS = BLOCKS.findall(PAGE.partition("\n## Traps\n")[2].partition("\n## ")[0])
ANSWERS = (
    (
        (
            "SELECT cluster, leaf_group, sum(in_utilization) / 60 / (SELECT count(*) FROM reference.dim_hour) "
            "FROM ({}) GROUP BY ALL"
        ),
        (
            "SELECT cluster, leaf_group, sum(in_mean_bps) / sum(line_rate_bps) FROM metrics.port_hour "
            "JOIN topology.switches USING (cluster, switch) GROUP BY ALL"
        ),
    ),
    (
        "SELECT label, tx_bytes FROM ({}) ORDER BY tx_bytes DESC, label LIMIT 10",
        (
            "SELECT server, sum(tx_bytes) AS tx_bytes FROM metrics.server_hour GROUP BY ALL "
            "ORDER BY tx_bytes DESC, server LIMIT 10"
        ),
    ),
    (
        "SELECT label, leaving_share FROM ({})",
        (
            "SELECT switch, sum(leaving_share * access_in_bytes) / sum(access_in_bytes) FROM metrics.leaf_hour "
            "WHERE starts_with(switch, 'Leaf-') GROUP BY ALL"
        ),
    ),
    (
        "SELECT label, job_type, state, jobs FROM ({})",
        "SELECT cluster, job_type, state, count(*) FROM metrics.jobs GROUP BY ALL",
    ),
    (
        "SELECT cluster, hour_utc, group_id, sum(bytes)::BIGINT FROM ({}) GROUP BY ALL",
        "SELECT cluster, hour_utc, group_id, bytes FROM metrics.traffic_jobs",
    ),
)
"""For each question the shape in which its answer is compared, and the same of `metrics`."""
RIGHT = (
    "SELECT sum(rx_bytes) FROM metrics.server_hour",
    "SELECT sum(in_bytes) FROM metrics.port_hour",
    "SELECT sum(in_mean_bps) / sum(line_rate_bps) FROM metrics.port_hour",
)
"""For each trap the right answer by `metrics`."""


def lost(connection: Connection) -> dict[str, int]:
    """Return how many rows of each table have a key that its dimension lacks."""
    tables = connection.execute(
        "SELECT model, list(column_name) FROM meta.columns WHERE split_part(model, '.', 1) IN ('topology', 'metrics') "
        "GROUP BY model ORDER BY model"
    ).fetchall()
    found = {}
    for table, columns in tables:
        for dimension, keys in KEYS.items():
            if set(keys) <= set(columns):
                known = " AND ".join(f"f.{key} IS NOT NULL" for key in keys)
                same = " AND ".join(f"f.{key} = d.{key}" for key in keys)
                but = f" AND f.cluster <> '{NO_CLUSTER[table]}'" if table in NO_CLUSTER and "cluster" in keys else ""
                [(rows,)] = connection.execute(
                    f"SELECT count(*) FROM {table} AS f ANTI JOIN reference.{dimension} AS d ON {same} "
                    f"WHERE {known}{but}"
                ).fetchall()
                found[f"{table} {dimension}"] = int(rows)
    return found


def test_each_key_of_the_sample_is_in_its_dimension(planted: Planted) -> None:
    """The tables of a sample have every key, those of the hour's tables too."""
    counted = lost(planted.connection)
    assert {name: rows for name, rows in counted.items() if rows} == {}
    assert len(counted) > 100
    for dimension in KEYS:
        within = "cluster, " if dimension not in ("dim_cluster", "dim_hour") else ""
        for column in ("label", "sort_key"):
            twice = f"SELECT {column} FROM reference.{dimension} GROUP BY {within}{column} HAVING count(*) > 1"
            assert planted.rows(twice) == [], f"{column} of {dimension} within a cluster"
        assert planted.rows(f"SELECT count(*) >= 2 FROM reference.{dimension}") == [(True,)], dimension


def test_the_five_questions_equal_the_tables_of_metrics(planted: Planted) -> None:
    for question, (shape, metrics) in zip(QUESTIONS, ANSWERS, strict=True):
        found, known = planted.rows(shape.format(question)), planted.rows(metrics)
        assert len(found) == len(known) > 0, question
        for row, other in zip(found, known, strict=True):
            for cell, value in zip(row, other, strict=True):
                same = math.isclose(cell, value, rel_tol=1e-9) if isinstance(cell, float) else cell == value
                assert same, (row, other)


def test_the_wrong_queries_are_wrong(planted: Planted) -> None:
    """The right query of each trap equals `metrics`; the wrong one gives a fifth more at least."""
    for block, metrics in zip(TRAPS, RIGHT, strict=True):
        wrong, good, end = block.split(";\n")
        assert end == ""
        values = [planted.rows(one)[0][0] for one in (wrong, good, metrics)]
        assert math.isclose(values[1], values[2], rel_tol=1e-9), block
        assert values[0] > 1.2 * values[2], block
