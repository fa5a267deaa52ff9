"""Unchanged hours are taken from their records, and anything that they depend on makes them be looked up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Restored
from tests.runner.test_incremental import equal_cell_by_cell
from tests.tiny import HOURS, Tiny
from warehouse.store.part_records import Part
from warehouse.store.partition_records import read_records
from warehouse.store.parts import Store

HOUR = {"hour_utc": "TIMESTAMP", "port": "VARCHAR", "bytes": "BIGINT"}
SELECT = (
    "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, PortName AS port, sum(InOctets) AS bytes"
    " FROM raw.port_counters GROUP BY ALL"
)
SCALED = "SELECT hour_utc, port, bytes * speed AS bytes FROM staging.hour CROSS JOIN topology.speed"
RECORDS = "cache/partitions.msgpack"


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """Tables by hour, alone and joined with a table without hours; a view by hour with a check; a table over all."""
    return tiny.restore(restored, "unchanged-hours", _write_hours)


def _write_hours(tiny: Tiny) -> None:
    tiny.model("staging.hour", SELECT, HOUR, "partition: hour_utc", "checks:", "- 'warn: bytes < 50'")
    tiny.model("topology.speed", "SELECT max(speed) AS speed FROM reference.speeds", {"speed": "BIGINT"})
    tiny.model("metrics.scaled", SCALED, HOUR, "partition: hour_utc", "checks:", "- bytes >= 0")
    tiny.model(
        "metrics.half",
        "SELECT hour_utc, port, bytes // 2 AS bytes FROM metrics.scaled",
        HOUR,
        "partition: hour_utc",
        "materialize: view",
        "checks:",
        "- 'warn: bytes < 50'",
    )
    tiny.model("metrics.all", "SELECT port, sum(bytes) AS bytes FROM metrics.scaled GROUP BY port", PORTS)


PORTS = {"port": "VARCHAR", "bytes": "BIGINT"}
MODELS = ("metrics.scaled", "staging.hour")


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Partitioned parts that were looked up one by one."""
    seen: list[tuple[str, str]] = []
    find = Store.find

    def noted(self: Store, relation: str, partition: str, fingerprint: str) -> Part | None:
        if partition != "all":
            seen.append((relation, partition))
        return find(self, relation, partition, fingerprint)

    monkeypatch.setattr(Store, "find", noted)
    return seen


def checks(tiny: Tiny) -> list[tuple[object, ...]]:
    return tiny.ask("SELECT * FROM meta.checks ORDER BY ALL") + tiny.ask("SELECT * FROM meta.failures ORDER BY ALL")


def test_one_more_hour_looks_up_its_own_parts_alone(hours: Tiny, looked_up: list[tuple[str, str]]) -> None:
    hours.file(2, "1,100,2,200,0,0.5")
    assert hours.made() == {*(f"{model} 2024-05-23T18" for model in MODELS), "metrics.all"}
    assert {partition for _, partition in looked_up} == {"2024-05-23T18"}


def test_the_result_is_that_of_a_build_from_nothing(hours: Tiny) -> None:
    hours.file(2, "1,100,2,200,0,0.5")
    assert hours.build().status == 0
    taken = checks(hours)
    assert sum(row[4] == "warned" for row in taken) == 2 * 3  # a table and a view in three hours
    other = Tiny(hours.base / "other")
    other.folder, other.data = hours.folder, hours.data
    assert other.build("--project", hours.folder).status == 0
    equal_cell_by_cell(hours.target, other.target)
    assert checks(other) == taken


def test_a_changed_file_makes_its_hour_anew(hours: Tiny, looked_up: list[tuple[str, str]]) -> None:
    hours.file(0, "1,200,2,200,0,0.5")
    assert hours.made() == {*(f"{model} {HOURS[0]}" for model in MODELS), "metrics.all"}
    assert {partition for _, partition in looked_up} == {HOURS[0]}


def test_a_changed_table_without_hours_is_compared_in_those_that_read_it(
    hours: Tiny, looked_up: list[tuple[str, str]]
) -> None:
    hours.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10", "eth1,80")
    assert {f"metrics.scaled {hour}" for hour in HOURS} < hours.made()
    assert set(looked_up) == {("metrics.scaled", hour) for hour in HOURS}


def test_a_changed_model_is_made_anew_in_all_hours(hours: Tiny) -> None:
    hours.model("metrics.scaled", SCALED.replace("*", "+"), HOUR, "partition: hour_utc")
    assert hours.made() == {*(f"metrics.scaled {hour}" for hour in HOURS), "metrics.all"}


def test_a_new_check_runs_on_all_hours(hours: Tiny) -> None:
    hours.model("metrics.scaled", SCALED, HOUR, "partition: hour_utc", "checks:", "- bytes < 50")
    said = hours.build()
    assert said.status == 1
    assert "bytes < 50" in said.err


def test_a_missing_part_is_made_again(hours: Tiny) -> None:
    (part,) = (hours.target / "parts" / "metrics.scaled" / HOURS[0]).glob("*.parquet")
    part.unlink()
    assert hours.made() == {f"metrics.scaled {HOURS[0]}"}


def test_a_damaged_part_is_made_again(hours: Tiny) -> None:
    (part,) = (hours.target / "parts" / "metrics.scaled" / HOURS[0]).glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    hours.file(2, "1,100,2,200,0,0.5")
    assert f"metrics.scaled {HOURS[0]}" in hours.made()


@pytest.mark.parametrize("content", [b"", b"x" * 100, None])
def test_without_records_parts_are_looked_up(
    content: bytes | None, hours: Tiny, looked_up: list[tuple[str, str]]
) -> None:
    path: Path = hours.target / RECORDS
    path.unlink() if content is None else path.write_bytes(content)
    hours.file(2, "1,100,2,200,0,0.5")
    assert f"metrics.scaled {HOURS[0]}" not in hours.made()
    assert ("metrics.scaled", HOURS[0]) in looked_up
    assert read_records(hours.target)


def test_paranoid_looks_up_all_parts(hours: Tiny, looked_up: list[tuple[str, str]]) -> None:
    assert hours.build("--paranoid").status == 0
    assert {(model, hour) for model in MODELS for hour in HOURS} <= set(looked_up)


def test_a_build_of_selected_models_leaves_the_records(hours: Tiny, looked_up: list[tuple[str, str]]) -> None:
    before = (hours.target / RECORDS).read_bytes()
    hours.file(0, "1,200,2,200,0,0.5")
    hours.model("metrics.all", "SELECT port, max(bytes) AS bytes FROM metrics.scaled GROUP BY port", PORTS)
    assert hours.build("-s", "staging.hour").status == 0
    assert (hours.target / RECORDS).read_bytes() == before
    looked_up.clear()
    assert hours.made() >= {f"metrics.scaled {HOURS[0]}", "metrics.all"}
    assert {partition for _, partition in looked_up} == {HOURS[0]}


def test_a_volatile_check_runs_in_every_build(hours: Tiny) -> None:
    hours.model("metrics.scaled", SCALED, HOUR, "partition: hour_utc", "checks:", "- 'warn: random() < 2'")
    assert hours.build().status == 0
    first = read_records(hours.target)["hour_utc joined"][HOURS[0]].inputs
    assert hours.build().status == 0
    assert read_records(hours.target)["hour_utc joined"][HOURS[0]].inputs != first
