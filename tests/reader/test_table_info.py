from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from warehouse.base.errors import QueryError
from warehouse.reader.connection import connect
from warehouse.reader.relation import Check, Column
from warehouse.reader.table_info import as_json, list_tables, print_relation, show


def test_tables_are_listed_by_name_or_pattern(target: Path) -> None:
    with closing(connect(target)) as connection:
        names = [table.name for table in list_tables(connection)]
        assert names == sorted(names)
        assert "raw.port_counters" in names
        [table] = list_tables(connection, "METRICS.port_hour")
        assert (table.kind, table.rows, table.bytes) == ("partitioned", 5, 500)
        with pytest.raises(QueryError, match=r"^no table matches metrics\.prot\*"):
            list_tables(connection, "metrics.prot*")


def test_show_describes_a_table(target: Path) -> None:
    relation = show(target, "port_hour")
    assert relation.table.name == "metrics.port_hour"
    assert relation.grain == ("cluster", "switch", "port", "hour_utc")
    assert relation.partition_column == "hour_utc"
    assert relation.columns[6] == Column("in_bytes", "BIGINT", "B", "meaning of in_bytes")
    assert relation.checks == (
        Check("grain is unique", "error", "passed", 0),
        Check("in_utilization <= 1", "warn", "warned", 3),
    )
    found = json.loads(json.dumps(as_json(relation)))
    assert (found["name"], found["grain"][0]) == ("metrics.port_hour", "cluster")
    assert found["columns"][0]["about"] == "meaning of cluster"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("metrics.prot_hour", "no table metrics.prot_hour\nnearest: metrics.port_hour"),
        ("port_hours", "no table port_hours\nnearest: metrics.port_hour"),
        ("zzz", "no table zzz\nwarehouse ls lists the tables"),
        ("port_counters", "port_counters may be raw.port_counters or staging.port_counters\ngive the full name"),
    ],
)
def test_show_suggests_the_nearest_name(target: Path, name: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        show(target, name)
    assert str(error.value) == message


def test_a_description_at_eighty_columns(target: Path) -> None:
    stream = io.StringIO()
    print_relation(show(target, "leaf_hour"), stream, width=80, target=Path("build/warehouse"))
    assert stream.getvalue() == (
        "metrics.leaf_hour  table, 2 rows, 200 B\n"
        "What metrics.leaf_hour is.\n"
        "grain: cluster, switch, hour_utc\n"
        "written in: models/metrics/leaf_hour.sql\n"
        "sources: docs/formats/traffic.md\n"
        "\n"
        "column             type       unit  meaning\n"
        "────────────────────────────────────────────────────────────────\n"
        "cluster            VARCHAR          meaning of cluster\n"
        "switch             VARCHAR          meaning of switch\n"
        "hour_utc           TIMESTAMP        meaning of hour_utc\n"
        "access_in_bytes    BIGINT     B     meaning of access_in_bytes\n"
        "access_out_bytes   BIGINT     B     meaning of access_out_bytes\n"
        "uplink_in_bytes    BIGINT     B     meaning of uplink_in_bytes\n"
        "uplink_out_bytes   BIGINT     B     meaning of uplink_out_bytes\n"
        "in_bytes           BIGINT     B     meaning of in_bytes\n"
        "out_bytes          BIGINT     B     meaning of out_bytes\n"
        "in_out_difference  DOUBLE           meaning of in_out_difference\n"
        "leaving_share      DOUBLE           meaning of leaving_share\n"
        "\n"
        "Next:  warehouse sql 'FROM metrics.leaf_hour LIMIT 5'\n"
    )
