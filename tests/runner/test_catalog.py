"""A catalog after a change equals that of a first build."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.conftest import call
from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR the port", "speed": "BIGINT [bit/s] line rate"}
ROWS = "SELECT port, speed FROM staging.ports"


def everything(target: Path) -> dict[str, object]:
    """Return the content of a catalog without publish time and place; for views their SQL and rows."""
    with duckdb.connect(str(target / "warehouse.duckdb"), read_only=True) as asked:
        names = asked.execute(
            "SELECT schema_name, table_name, comment, '' FROM duckdb_tables() UNION ALL "
            "SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        said: dict[str, object] = {
            "relations": [(*row[:3], str(row[3]).replace(str(target), "")) for row in names],
            "columns": asked.execute(
                "SELECT schema_name, table_name, column_name, column_index, data_type, comment FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY ALL"
            ).fetchall(),
            "schemas": asked.execute(
                "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY 1"
            ).fetchall(),
        }
        for schema, table, _, _ in names:
            without = " EXCLUDE (published_utc, target)" if (schema, table) == ("meta", "build") else ""
            said[f"{schema}.{table}"] = asked.execute(
                f"SELECT *{without} FROM {schema}.{table} ORDER BY ALL"
            ).fetchall()
        return said


def change(tiny: Tiny) -> None:
    """Change a relation of each kind in each way."""
    tiny.model("topology.a", "SELECT port, speed + 1 AS speed FROM staging.ports", COLUMNS)
    tiny.model("topology.b", ROWS, {"port": "VARCHAR", "speed": "BIGINT how fast"}, "checks:", "  - warn: speed > 20")
    tiny.model("topology.c", "SELECT port, speed, 1 AS n FROM staging.ports", {**COLUMNS, "n": "BIGINT"})
    tiny.model("topology.d", ROWS, COLUMNS, "materialize: view")
    tiny.model("topology.fast", ROWS, COLUMNS)
    tiny.file(2, "1,7,2,200,0,0.5")


def remove(tiny: Tiny) -> None:
    """Remove a model, and all of a schema; add one; turn the rows of a reviewed table."""
    (tiny.folder / "models/topology/a.sql").unlink()
    (tiny.folder / "models/metrics/total.sql").unlink()
    (tiny.folder / "models/metrics/hours.sql").unlink()
    tiny.model("topology.e", ROWS, COLUMNS)
    tiny.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth1,40", "eth0,10")


def test_the_catalog_after_changes_equals_that_of_a_first_build(hours: Tiny) -> None:
    for name in "abcd":
        hours.model(f"topology.{name}", ROWS, COLUMNS)
    hours.model("topology.fast", ROWS, COLUMNS, "materialize: view")
    assert hours.build().status == 0
    for step in (change, remove):
        step(hours)
        assert hours.build().status == 0
        other = hours.base / step.__name__
        assert call("build", "-d", hours.data, "-t", other, cwd=hours.base).status == 0
        assert everything(hours.target) == everything(other)
