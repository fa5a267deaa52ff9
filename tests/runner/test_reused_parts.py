"""Builds rebuild stale parts and reuse all others."""

from __future__ import annotations

import os

import pytest

from tests.runner.conftest import COLUMNS
from tests.tiny import HOURS, Tiny
from warehouse.runner.reporter import Reporter


def test_a_second_build_is_up_to_date(hours: Tiny) -> None:
    first = {"staging.ports", "metrics.total", "metrics.hours", *(f"staging.hour {hour}" for hour in HOURS)}
    assert hours.made() == first
    assert hours.made() == set()


def test_a_model_can_be_split_by_another_column_of_the_files(hours: Tiny) -> None:
    """Split by port: a part sees the files of its port, and all hours of models split by hour."""
    hours.file(0, "1,100,2,200,0,0.5").rename(hours.data / "c" / "trafficinfo" / "2024052400" / "x" / "Leaf-1_1_2.csv")
    hours.file(0, "1,300,2,200,0,0.5")
    path = hours.data / "c" / "trafficinfo" / "2024052400" / "x" / "Leaf-1_1_2.csv"
    path.write_text(path.read_text().replace("1/0/1:1", "1/0/1:2"))
    hours.model(
        "staging.by_port",
        "SELECT PortName AS port, sum(InOctets) AS bytes, (SELECT count(*) FROM staging.hour) AS hours\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"port": "VARCHAR", "bytes": "BIGINT", "hours": "BIGINT"},
        "partition: port",
    )
    made = {one for one in hours.made() if one.startswith("staging.by_port")}
    assert made == {f"staging.by_port port=TwoHundredGigE1%2F0%2F1%3A{half}" for half in (1, 2)}
    assert hours.ask("FROM staging.by_port ORDER BY ALL") == [
        ("TwoHundredGigE1/0/1:1", 400, 2),
        ("TwoHundredGigE1/0/1:2", 100, 2),
    ]
    hours.file(0, "1,500,2,200,0,0.5")
    assert "staging.by_port port=TwoHundredGigE1%2F0%2F1%3A1" in hours.made()
    assert hours.ask("SELECT sum(bytes) FROM staging.by_port") == [(700,)]


def test_a_changed_model_is_rebuilt_with_downstream_models_whose_rows_change(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed * 2 AS speed FROM reference.speeds", COLUMNS)
    assert tiny.made() == {"staging.ports", "metrics.total"}
    assert tiny.ask("SELECT speed FROM metrics.total") == [(100,)]


def test_models_with_equal_inputs_are_not_rebuilt(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed + 0 AS speed FROM reference.speeds", COLUMNS)
    assert tiny.made() == {"staging.ports"}


@pytest.mark.parametrize(
    "select",
    [
        "-- why\nselect port,\n  speed from reference.speeds -- all",
        "SELECT port, /* speed */ speed FROM reference.speeds;",
    ],
)
def test_comments_and_formatting_rebuild_nothing(tiny: Tiny, select: str) -> None:
    tiny.made()
    tiny.model("staging.ports", select, COLUMNS)
    assert tiny.made() == set()


def test_a_contract_change_without_new_bytes_makes_a_new_build_without_rebuilds(tiny: Tiny) -> None:
    tiny.made()
    before = tiny.ask("SELECT build_id FROM meta.build")
    tiny.model(
        "staging.ports", "SELECT port, speed FROM reference.speeds", {"port": "VARCHAR its name", "speed": "BIGINT"}
    )
    assert tiny.made() == set()
    assert tiny.ask("SELECT build_id FROM meta.build") != before
    assert tiny.ask("SELECT about FROM meta.columns WHERE column_name = 'port' AND model = 'staging.ports'") == [
        ("its name",)
    ]


def test_a_changed_type_or_grain_rebuilds_the_model(tiny: Tiny) -> None:
    tiny.made()
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", {**COLUMNS, "speed": "INTEGER"})
    assert "staging.ports" in tiny.made()
    tiny.model(
        "staging.ports", "SELECT port, speed FROM reference.speeds", {**COLUMNS, "speed": "INTEGER"}, "grain: [speed]"
    )
    assert "staging.ports" in tiny.made()


def test_a_new_row_of_a_reference_table_rebuilds_downstream_models(tiny: Tiny) -> None:
    tiny.made()
    tiny.reference("speeds", COLUMNS, "eth0,10")
    assert tiny.made() == {"staging.ports", "metrics.total"}


def test_a_new_hour_builds_its_part_and_models_over_all_hours(hours: Tiny) -> None:
    hours.made()
    hours.file(2, "1,700,2,200,0,0.5")
    assert hours.made() == {"staging.hour 2024-05-23T18", "metrics.hours"}
    assert hours.ask("SELECT bytes FROM staging.hour ORDER BY hour_utc") == [(100,), (100,), (700,)]


def test_hours_are_built_in_order_after_their_dependencies(hours: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """`metrics.share` of an hour reads `metrics.hours`, which reads all hours of `staging.hour`."""
    select = "SELECT h.hour_utc, h.bytes / a.bytes AS share FROM {} AS h, metrics.hours AS a"
    columns = {"hour_utc": "TIMESTAMP", "share": "DOUBLE"}
    hours.model("metrics.share", select.format("staging.hour"), columns, "partition: hour_utc")
    hours.model(
        "metrics.twice", "SELECT hour_utc, 2 * share AS share FROM metrics.share", columns, "partition: hour_utc"
    )
    made: list[tuple[str, str]] = []
    monkeypatch.setattr(Reporter, "part_started", lambda _, model, partition: made.append((model, partition)))
    assert hours.build("--quiet").status == 0
    first, second = HOURS
    assert [one for one in made if one[0] in ("metrics.hours", "metrics.share", "metrics.twice")] == [
        ("metrics.hours", "all"),
        ("metrics.share", first),
        ("metrics.twice", first),
        ("metrics.share", second),
        ("metrics.twice", second),
    ]


def test_rows_of_a_removed_hour_vanish(hours: Tiny) -> None:
    hours.made()
    hours.file(1).unlink()
    assert hours.made() == {"metrics.hours"}
    assert hours.ask("SELECT count(*) FROM staging.hour") == [(1,)]


def test_a_changed_file_rebuilds_its_hour(hours: Tiny) -> None:
    hours.made()
    hours.file(1, "1,999,2,200,0,0.5")
    assert hours.made() == {f"staging.hour {HOURS[1]}", "metrics.hours"}


def test_a_touched_or_moved_file_rebuilds_nothing(hours: Tiny) -> None:
    hours.made()
    os.utime(hours.file(1, "1,100,2,200,0,0.5"), (1, 1))
    assert hours.made() == set()
    hours.data = hours.data.rename(hours.base / "moved")
    assert hours.made() == set()
    assert hours.ask("SELECT count(*) FROM raw.port_counters") == [(2,)]


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_damaged_part_is_rebuilt(tiny: Tiny, damage: str) -> None:
    tiny.made()
    before = tiny.ask("SELECT build_id FROM meta.build")
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-1])
    assert tiny.made() == {"staging.ports"}
    assert tiny.ask("SELECT build_id FROM meta.build") == before


@pytest.mark.parametrize("damaged", ["state.sqlite", "builds/*/manifest.json"])
def test_a_damaged_state_or_manifest_does_not_stop_a_build(hours: Tiny, damaged: str) -> None:
    hours.made()
    for path in hours.target.glob(damaged):
        path.write_text("{", encoding="utf-8")
    assert hours.made() == set()
    assert hours.ask("SELECT count(*) FROM staging.hour") == [(2,)]


def test_rows_are_sorted_by_grain_whatever_the_select_returns(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth1,40")
    tiny.made()
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    assert tiny.ask(f"SELECT port FROM read_parquet('{part}')") == [("eth0",), ("eth1",), ("eth2",)]


@pytest.mark.parametrize("rows", [("eth0,10", "eth1,40", "eth2,5"), ("eth2,5", "eth0,10", "eth1,40")])
def test_rows_declared_sorted_are_sorted_if_needed(tiny: Tiny, rows: tuple[str, ...]) -> None:
    tiny.reference("speeds", COLUMNS, *rows)
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "presorted: true")
    tiny.made()
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    assert tiny.ask(f"SELECT port, speed FROM read_parquet('{part}')") == [("eth0", 10), ("eth1", 40), ("eth2", 5)]
    assert tiny.made() == set()


def test_a_duplicate_is_found_in_rows_declared_sorted(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, "eth2,5", "eth0,10", "eth2,40")
    tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, "presorted: true")
    said = tiny.build()
    assert said.status == 1
    assert "grain (port) is not unique" in said.err


def test_equal_rows_give_equal_bytes(tiny: Tiny) -> None:
    columns = {"n": "BIGINT", "k": "BIGINT"}
    tiny.model("staging.numbers", "SELECT i AS n, i % 7 AS k FROM range(10000) AS r(i)", columns)
    tiny.model("topology.text", "SELECT n, CAST(CAST(k AS VARCHAR) AS BIGINT) AS k FROM staging.numbers", columns)
    tiny.model("topology.group", "SELECT n, max(k) AS k FROM staging.numbers GROUP BY n", columns)
    tiny.made()
    parts = [path for path in (tiny.target / "parts").glob("[st]*/*/*.parquet") if "ports" not in str(path)]
    assert len({path.read_bytes() for path in parts}) == 1


def test_a_view_has_no_part_and_sees_new_upstream_rows(tiny: Tiny) -> None:
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 20", COLUMNS, "materialize: view")
    tiny.model("metrics.total", "SELECT 'all' AS port, sum(speed) AS speed FROM topology.fast", COLUMNS)
    assert tiny.made() == {"staging.ports", "metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 40)]
    tiny.model("topology.fast", "SELECT port, speed FROM staging.ports WHERE speed > 5", COLUMNS, "materialize: view")
    assert tiny.made() == {"metrics.total"}
    assert tiny.ask("FROM metrics.total") == [("all", 50)]
    assert tiny.ask("SELECT kind, rows FROM meta.models WHERE model = 'topology.fast'") == [("view", None)]
