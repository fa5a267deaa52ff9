"""The star: each key of a table above the raw files is found in its dimension, on a sample and on the real files."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

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


def facts(connection: Connection) -> Iterator[tuple[str, set[str]]]:
    """Return the tables that a star may join, with their columns."""
    rows = connection.execute(
        "SELECT model, list(column_name) FROM meta.columns WHERE split_part(model, '.', 1) IN ('topology', 'metrics') "
        "GROUP BY model ORDER BY model"
    ).fetchall()
    yield from ((str(model), set(names)) for model, names in rows)


def lost(connection: Connection) -> dict[str, int]:
    """Return how many rows of each table have a key that its dimension lacks."""
    found = {}
    for table, columns in facts(connection):
        for dimension, keys in KEYS.items():
            if not set(keys) <= columns:
                continue
            known = " AND ".join(f"f.{key} IS NOT NULL" for key in keys)
            same = " AND ".join(f"f.{key} = d.{key}" for key in keys)
            but = f" AND f.cluster <> '{NO_CLUSTER[table]}'" if table in NO_CLUSTER and "cluster" in keys else ""
            row = connection.execute(
                f"SELECT count(*) FROM {table} AS f ANTI JOIN reference.{dimension} AS d ON {same} WHERE {known}{but}"
            ).fetchone()
            assert row
            found[f"{table} {dimension}"] = int(row[0])
    return found


def not_unique(connection: Connection) -> list[str]:
    """Return the dimensions of which a key, a label within its cluster, or a sort key stands twice."""
    found = []
    for dimension, keys in KEYS.items():
        within = "cluster, " if dimension not in ("dim_cluster", "dim_hour") else ""
        for columns in (", ".join(keys), f"{within}label", f"{within}sort_key"):
            doubled = f"SELECT {columns} FROM reference.{dimension} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
            if connection.execute(doubled).fetchone():
                found.append(f"{dimension}({columns})")
    return found


def test_each_key_of_the_sample_is_in_its_dimension(planted: Planted) -> None:
    """The tables of a sample have every key, those of the hour's tables too."""
    counted = lost(planted.connection)
    assert {name: rows for name, rows in counted.items() if rows} == {}
    assert len(counted) > 100
    assert not_unique(planted.connection) == []
    rows = {name: planted.rows(f"SELECT count(*) FROM reference.{name}")[0][0] for name in KEYS}
    assert min(rows.values()) >= 2, rows


def test_a_key_without_its_dimension_is_counted() -> None:
    """A leaf that the dimension lacks is a lost row; a NULL and the rows of other clusters are none."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA reference; CREATE SCHEMA metrics; CREATE SCHEMA meta")
        connection.execute(
            "CREATE TABLE meta.columns AS "
            "SELECT 'metrics.leaf_hour' AS model, unnest(['cluster', 'switch']) AS column_name"
        )
        connection.execute("CREATE TABLE metrics.leaf_hour(cluster VARCHAR, switch VARCHAR)")
        connection.execute("INSERT INTO metrics.leaf_hour VALUES ('c', 'a'), ('c', 'b'), ('d', 'a'), ('d', NULL)")
        connection.execute("CREATE TABLE reference.dim_cluster AS SELECT unnest(['c', 'd']) AS cluster")
        connection.execute("CREATE TABLE reference.dim_switch AS FROM metrics.leaf_hour WHERE switch = 'a'")
        assert lost(connection) == {"metrics.leaf_hour dim_cluster": 0, "metrics.leaf_hour dim_switch": 1}


@pytest.mark.real
def test_each_key_of_the_real_files_is_in_its_dimension(real_built: Connection) -> None:
    """The real files have every key; their fabric is as large as published."""
    assert {name: rows for name, rows in lost(real_built).items() if rows} == {}
    assert not_unique(real_built) == []
    roles = real_built.execute("SELECT role, count(*) FROM reference.dim_switch GROUP BY 1 ORDER BY 1").fetchall()
    assert roles == [("leaf", 20), ("spine", 10), ("storage_leaf", 1)]
    ordered = real_built.execute(
        "SELECT label FROM reference.dim_switch WHERE has_counters ORDER BY sort_key"
    ).fetchall()
    assert [name for (name,) in ordered] == ["Leaf-5", "Leaf-10", "Leaf-13", "Leaf-17", "ST-leaf-1"]
