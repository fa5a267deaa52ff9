"""A catalog after a change equals that of a first build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Restored, call
from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR the port", "speed": "BIGINT [bit/s] line rate"}
HOUR = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}
HOURLY = (
    "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes "
    "FROM raw.port_counters GROUP BY ALL"
)


@pytest.fixture
def built(tiny: Tiny, restored: Restored) -> Tiny:
    """Relations of every kind."""
    return tiny.restore(restored, "every-kind", _write_every_kind)


def _write_every_kind(tiny: Tiny) -> None:
    for name in "abcd":
        tiny.model(f"topology.{name}", "SELECT port, speed FROM staging.ports", COLUMNS)
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports", COLUMNS, "materialize: view")
    tiny.model("staging.hour", HOURLY, HOUR, "partition: hour_utc")


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


CHANGES: dict[str, Callable[[Tiny], object]] = {
    "rows of a table": lambda t: t.model("topology.a", "SELECT port, speed + 1 AS speed FROM staging.ports", COLUMNS),
    "what a column means": lambda t: t.model(
        "topology.a", "SELECT port, speed FROM staging.ports", {"port": "VARCHAR", "speed": "BIGINT how fast"}
    ),
    "another column": lambda t: t.model(
        "topology.a", "SELECT port, speed, 1 AS n FROM staging.ports", {**COLUMNS, "n": "BIGINT"}
    ),
    "a table that becomes a view": lambda t: t.model(
        "topology.a", "SELECT port, speed FROM staging.ports", COLUMNS, "materialize: view"
    ),
    "a view that becomes a table": lambda t: t.model("topology.fast", "SELECT port, speed FROM staging.ports", COLUMNS),
    "a model gone": lambda t: (t.folder / "models/topology/a.sql").unlink(),
    "a schema gone": lambda t: (t.folder / "models/metrics/total.sql").unlink(),
    "a new model": lambda t: t.model("topology.e", "SELECT port, speed FROM staging.ports", COLUMNS),
    "rows of a reviewed table": lambda t: t.reference(
        "speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth1,40", "eth0,10"
    ),
    "a new hour": lambda t: t.file(2, "1,7,2,200,0,0.5"),
    "only a check": lambda t: t.model(
        "topology.a", "SELECT port, speed FROM staging.ports", COLUMNS, "checks:", "  - warn: speed > 20"
    ),
}


@pytest.mark.parametrize("first", range(3))
def test_the_catalog_after_changes_equals_that_of_a_first_build(built: Tiny, first: int) -> None:
    for change in list(CHANGES)[first::3]:
        CHANGES[change](built)
        assert built.build().status == 0
    other = built.base / "other"
    assert call("build", "-d", built.data, "-t", other, cwd=built.base).status == 0
    assert everything(built.target) == everything(other)


def test_a_failed_build_leaves_no_file_of_a_catalog(tiny: Tiny) -> None:
    tiny.model("metrics.total", "SELECT error('late') AS speed FROM staging.ports", {"speed": "BIGINT"})
    assert tiny.build("--threads", "2", "--memory", "4GB").status == 1
    assert not list(tiny.target.glob(".*"))
    assert not list((tiny.target / "tmp").glob("*"))
