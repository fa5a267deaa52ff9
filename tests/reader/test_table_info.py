from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from warehouse.base.errors import QueryError
from warehouse.reader.relation import Check, Column
from warehouse.reader.table_info import ls, print_shown, show, shown_as_json, tables_as_json

if TYPE_CHECKING:
    from pathlib import Path


def test_ls_lists_by_name(target: Path) -> None:
    names = [table.name for table in ls(target)]
    assert names == sorted(names)
    assert "raw.port_counters" in names
    [table] = [table for table in ls(target) if table.name == "metrics.port_hour"]
    assert (table.kind, table.rows, table.bytes) == ("partitioned", 5, 500)


def test_ls_takes_a_pattern(target: Path) -> None:
    assert {table.name.split(".")[0] for table in ls(target, "metrics.*")} == {"metrics"}
    assert [table.name for table in ls(target, "NIC")] == ["topology.nic_ports"]
    with pytest.raises(QueryError) as error:
        ls(target, "prot_hour.")
    assert error.value.message == "no table matches prot_hour."


def test_show_describes_a_table(target: Path) -> None:
    shown = show(target, "port_hour", rows=2)
    relation = shown.relation
    assert relation.table.name == "metrics.port_hour"
    assert relation.grain == ("cluster", "switch", "port", "hour_utc")
    assert relation.partition_column == "hour_utc"
    assert relation.columns[6] == Column("in_bytes", "BIGINT", "B", "meaning of in_bytes")
    assert relation.checks == (
        Check("grain is unique", "error", "passed", 0),
        Check("in_utilization <= 1", "warn", "warned", 3),
    )
    assert len(shown.rows) == 2
    assert shown.rows[0][:3] == ("demo", "Leaf-1", "FourHundredGigE1/0/33")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("metrics.prot_hour", "no table metrics.prot_hour\nnearest: metrics.port_hour"),
        ("port_hours", "no table port_hours\nnearest: metrics.port_hour"),
        ("zzz", "no table zzz\nwarehouse ls lists the tables"),
        (
            "port_counters",
            "port_counters may be raw.port_counters or staging.port_counters\ngive the full name",
        ),
    ],
)
def test_show_suggests_the_nearest_name(target: Path, name: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        show(target, name)
    assert str(error.value) == message


def test_unreadable_rows_are_an_error(own_target: Path) -> None:
    (own_target / "parts" / "metrics.port_hour.parquet").unlink()
    with pytest.raises(QueryError, match=r"the rows of metrics\.port_hour cannot be read: .*No files found"):
        show(own_target, "port_hour")


def test_a_description_at_eighty_columns(target: Path) -> None:
    stream = io.StringIO()
    print_shown(show(target, "leaf_hour", rows=1), stream, width=80)
    assert stream.getvalue() == (
        "metrics.leaf_hour  table, 2 rows, 200 B\n"
        "What metrics.leaf_hour is.\n"
        "grain: cluster, switch, hour_utc\n"
        "written in: models/metrics/leaf_hour.sql\n"
        "sources: docs/formats/traffic.md\n"
        "for example: cluster demo · switch Leaf-1 · hour_utc 2024-05-23 16:00:00 ·\n"
        "  access_in_bytes 10.0 kB · access_out_bytes 20.0 kB · uplink_in_bytes 2.50 kB ·\n"
        "  uplink_out_bytes 5.00 kB · in_bytes 12.5 kB · out_bytes 25.0 kB ·\n"
        "  in_out_difference -0.5 · leaving_share 0.5\n"
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
        "cluster  switch  hour_utc             access_in_bytes  access_out_bytes\n"
        "───────────────────────────────────────────────────────────────────────\n"
        "demo     Leaf-1  2024-05-23 16:00:00          10.0 kB           20.0 kB\n"
        "… 6 more columns: uplink_in_bytes, uplink_out_bytes, in_bytes, out_bytes,\n"
        "  in_out_difference, leaving_share\n"
        "  (warehouse sql 'FROM metrics.leaf_hour' --format lines)\n"
    )


def test_json_forms(target: Path) -> None:
    tables = json.loads(json.dumps(tables_as_json(ls(target, "leaf_hour"))))
    assert tables == [
        {
            "name": "metrics.leaf_hour",
            "kind": "table",
            "rows": 2,
            "bytes": 200,
            "about": "What metrics.leaf_hour is.",
        }
    ]
    shown = json.loads(json.dumps(shown_as_json(show(target, "leaf_hour", rows=1))))
    assert shown["name"] == "metrics.leaf_hour"
    assert shown["grain"] == ["cluster", "switch", "hour_utc"]
    assert shown["columns"][0]["about"] == "meaning of cluster"
    assert shown["head"][0]["in_bytes"] == 12500
    assert shown["head"][0]["in_out_difference"] == -0.5
