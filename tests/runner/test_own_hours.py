"""Views of tables with many parts: a query of one hour opens the files of this hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.conftest import call
from tests.tiny import Tiny
from warehouse.engine import duckdb_sql
from warehouse.runner import catalog_entries, own_hours

HOURS = 12
SELECT = """
SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, InOctets AS bytes
FROM raw.port_counters"""
COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a table of four parts count as large."""
    for module in (own_hours, catalog_entries):
        monkeypatch.setattr(module, "MANY_PARTS", 3)


@pytest.fixture
def hours(tiny: Tiny, old: None) -> Tiny:
    """Twelve hours of one row each, on two days, in UTC; not built."""
    tiny.model("staging.hour", SELECT, COLUMNS, "partition: hour_utc", "grain: [hour_utc, bytes]")
    for hour in range(HOURS):
        tiny.file(hour, f"1,{hour},2,200,0,0.5")
    return tiny


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Partitions whose files are examined."""
    found: list[str] = []
    usual = own_hours._hours_in

    def hours_in(parts: Sequence[Any], engine: Any) -> Mapping[str, str]:
        found.extend(part.partition for part in parts)
        return usual(parts, engine)

    monkeypatch.setattr(own_hours, "_hours_in", hours_in)
    return found


def view(tiny: Tiny) -> str:
    ((text,),) = tiny.ask("SELECT sql FROM duckdb_views() WHERE view_name = 'hour'")
    return str(text)


def explained(tiny: Tiny, sql: str) -> Iterator[str]:
    return (str(line) for (_, line) in tiny.ask(f"EXPLAIN ANALYZE {sql}"))


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("hour_utc = TIMESTAMP '2024-05-23 17:00:00'", 1),
        ("hour_utc IN (TIMESTAMP '2024-05-23 17:00:00', TIMESTAMP '2024-05-24 01:00:00')", 2),
        ("hour_utc BETWEEN TIMESTAMP '2024-05-23 18:00:00' AND TIMESTAMP '2024-05-23 20:59:59'", 3),
        ("hour_utc::DATE = DATE '2024-05-24'", 4),
    ],
)
def test_a_query_of_some_hours_opens_their_files_alone(hours: Tiny, condition: str, files: int) -> None:
    hours.made()
    sql = f"SELECT hour_utc, bytes FROM staging.hour WHERE {condition}"
    assert len(hours.ask(sql)) == files
    said = "".join(explained(hours, sql)).replace(" ", "")
    assert f"ScanningFiles:{files}/{HOURS}" in said
    assert f"TotalFilesRead:{files}" in said


def test_a_query_of_an_hour_that_is_not_there_has_no_row(hours: Tiny) -> None:
    hours.made()
    assert hours.ask("SELECT bytes FROM staging.hour WHERE hour_utc = TIMESTAMP '2023-05-23 17:00:00'") == []


def test_the_hour_is_that_in_the_parts(hours: Tiny) -> None:
    hours.made()
    written = f"read_parquet('{hours.target}/parts/staging.hour/*/*.parquet')"
    assert hours.ask(f"SELECT typeof(hour_utc), * FROM {written} ORDER BY ALL") == hours.ask(
        "SELECT typeof(hour_utc), * FROM staging.hour ORDER BY ALL"
    )


def test_every_row_is_there(hours: Tiny) -> None:
    hours.made()
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY ALL") == [(number,) for number in range(HOURS)]


def test_with_a_row_of_another_hour_the_hour_is_read_from_the_parts(hours: Tiny) -> None:
    other = f"{SELECT} UNION ALL SELECT TIMESTAMP '2000-01-01', max(InOctets) FROM raw.port_counters"
    hours.model("staging.hour", other, COLUMNS, "partition: hour_utc", "grain: [hour_utc, bytes]")
    hours.made()
    assert "filename" not in view(hours)
    assert len(hours.ask("SELECT * FROM staging.hour")) == 2 * HOURS
    assert len(hours.ask("SELECT * FROM staging.hour WHERE year(hour_utc) = 2000")) == HOURS


@pytest.mark.parametrize("rows", ["NULL::TIMESTAMP", "TIMESTAMP '2024-05-23 16:00:00.000001'"])
def test_a_row_without_hour_or_within_the_hour_is_of_another_hour(hours: Tiny, rows: str) -> None:
    hours.model(
        "staging.hour",
        f"SELECT {rows} AS hour_utc, InOctets AS bytes FROM raw.port_counters",
        COLUMNS,
        "partition: hour_utc",
        "grain: [bytes]",
    )
    hours.made()
    assert "filename" not in view(hours)
    assert len(hours.ask("SELECT * FROM staging.hour")) == HOURS


def test_an_hour_as_text_is_read_from_the_parts(hours: Tiny) -> None:
    text = f"SELECT hour_utc::VARCHAR AS hour_utc, bytes FROM ({SELECT})"
    hours.model("staging.hour", text, COLUMNS | {"hour_utc": "VARCHAR"}, "partition: hour_utc", "grain: [hour_utc]")
    hours.made()
    assert "filename" not in view(hours)
    assert hours.ask("SELECT max(hour_utc) FROM staging.hour") == [("2024-05-24 03:00:00",)]


def test_an_empty_part_is_one_of_its_hour(hours: Tiny) -> None:
    hours.model(
        "staging.hour", f"{SELECT} WHERE InOctets <> 3", COLUMNS, "partition: hour_utc", "grain: [hour_utc, bytes]"
    )
    hours.made()
    assert "filename" in view(hours)
    assert len(hours.ask("SELECT * FROM staging.hour")) == HOURS - 1


def test_parts_are_examined_once(hours: Tiny, examined: list[str]) -> None:
    hours.made()
    assert len(examined) == HOURS
    examined.clear()
    hours.file(HOURS, "1,12,2,200,0,0.5")
    hours.made()
    assert examined == ["2024-05-24T04"]


def test_a_table_of_few_parts_is_not_examined(
    hours: Tiny, examined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (own_hours, catalog_entries):
        monkeypatch.setattr(module, "MANY_PARTS", HOURS)
    hours.made()
    assert examined == []


def test_a_view_of_many_files_is_relocated(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_sql, "_FEW_FILES", 2)
    hours.made()
    assert "string_split" in view(hours)
    hours.target = hours.target.rename(hours.base / "moved")
    said = call("relocate", "-t", hours.target, cwd=hours.base)
    assert said.out.startswith("Moved  1 build"), said
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY ALL") == [(number,) for number in range(HOURS)]
    assert str(hours.base / "target") not in view(hours)
