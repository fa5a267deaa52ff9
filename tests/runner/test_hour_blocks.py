"""Blocks of hours in the views of tables with many parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.conftest import call
from tests.tiny import Tiny
from warehouse.engine import duckdb_sql
from warehouse.runner import catalog_entries, hour_blocks

HOURS = 12
SELECT = """
SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, InOctets AS bytes
FROM raw.port_counters"""
COLUMNS = {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}
ONE_HOUR = "SELECT bytes FROM staging.hour WHERE hour_utc = TIMESTAMP '2024-05-23 17:00:00'"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a table of four parts count as large."""
    for module in (hour_blocks, catalog_entries):
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
    usual = hour_blocks._hours_in

    def hours_in(parts: Sequence[Any], engine: Any) -> Mapping[str, str]:
        found.extend(part.partition for part in parts)
        return usual(parts, engine)

    monkeypatch.setattr(hour_blocks, "_hours_in", hours_in)
    return found


def view(tiny: Tiny) -> str:
    ((text,),) = tiny.ask("SELECT sql FROM duckdb_views() WHERE view_name = 'hour'")
    return str(text)


def explained(tiny: Tiny, sql: str) -> Iterator[str]:
    return (str(line) for (_, line) in tiny.ask(f"EXPLAIN ANALYZE {sql}"))


def test_a_query_of_one_hour_opens_the_files_of_its_block(hours: Tiny) -> None:
    hours.made()
    assert view(hours).count("UNION ALL") == 1
    assert hours.ask(ONE_HOUR) == [(1,)]
    said = "".join(explained(hours, ONE_HOUR)).replace(" ", "")
    assert "TotalFilesRead:8" in said, "the hours of 2024-05-23 in UTC, not the four of the next day"


def test_every_row_is_in_a_block(hours: Tiny) -> None:
    hours.made()
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY ALL") == [(number,) for number in range(HOURS)]


def test_a_table_with_a_row_of_another_hour_has_no_blocks(hours: Tiny) -> None:
    other = f"{SELECT} UNION ALL SELECT TIMESTAMP '2000-01-01', max(InOctets) FROM raw.port_counters"
    hours.model("staging.hour", other, COLUMNS, "partition: hour_utc", "grain: [hour_utc, bytes]")
    hours.made()
    assert "UNION ALL" not in view(hours)
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
    assert "UNION ALL" not in view(hours)
    assert len(hours.ask("SELECT * FROM staging.hour")) == HOURS


def test_an_empty_part_is_in_a_block(hours: Tiny) -> None:
    hours.model(
        "staging.hour", f"{SELECT} WHERE InOctets <> 3", COLUMNS, "partition: hour_utc", "grain: [hour_utc, bytes]"
    )
    hours.made()
    assert view(hours).count("UNION ALL") == 1
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
    for module in (hour_blocks, catalog_entries):
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
