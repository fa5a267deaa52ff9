"""Origins of differences between two builds: files, SELECTs, reviewed tables."""

from __future__ import annotations

from tests.history.diffing import POLL_COLUMNS, POLLS, RAW, SPEEDS, again, compare, differing
from tests.tiny import Tiny


def origins(tiny: Tiny, before: str) -> dict[str, list[tuple[str, str, list[str]]]]:
    found = differing(tiny, before, "--where-from")
    return {
        name: [(one["kind"], one["name"], one["through"]) for one in table["origins"]] for name, table in found.items()
    }


def test_a_corrected_file_is_named_with_the_models_between(polls: Tiny) -> None:
    polls.file(1, "1,101,2,200,0,0.5")
    before = again(polls)
    assert origins(polls, before) == {
        "staging.polls": [("files", "staging.polls", [])],
        "metrics.large": [("files", "staging.polls", [])],
        "metrics.hours": [("files", "staging.polls", [])],
    }
    files = differing(polls, before, "--where-from")["metrics.hours"]["origins"][0]["files"]
    assert files == [["changed", RAW]]
    assert compare(polls, before, "--where-from", "-s", "metrics.hours").out.splitlines()[7:11] == [
        "  from [1]",
        "",
        "[1] 1 raw file that staging.polls reads",
        f"    ~ {RAW}",
    ]


def test_added_and_removed_files_are_named(polls: Tiny) -> None:
    polls.file(2, "1,1,2,200,0,0.5")
    (polls.data / RAW).unlink()
    found = differing(polls, again(polls), "--where-from")["staging.polls"]["origins"]
    assert [one["files"] for one in found] == [[["removed", RAW], ["added", RAW.replace("2401", "2402")]]]


def test_files_are_named_for_any_partition_column(polls: Tiny) -> None:
    """Split by port, read by hour: each part over the hours shows the change in any part by port."""
    by_port = "SELECT PortName AS port, sum(InOctets) AS in_bytes FROM raw.port_counters GROUP BY PortName"
    polls.model("staging.by_port", by_port, {"port": "VARCHAR", "in_bytes": "BIGINT"}, "partition: port")
    polls.model(
        "metrics.shares",
        "SELECT h.hour_utc, sum(h.in_bytes) AS in_bytes, (SELECT sum(in_bytes) FROM staging.by_port) AS of_bytes\n"
        "FROM metrics.hours AS h GROUP BY h.hour_utc",
        {"hour_utc": "TIMESTAMP", "in_bytes": "BIGINT", "of_bytes": "BIGINT"},
        "partition: hour_utc",
    )
    assert polls.build().status == 0
    polls.file(1, "1,101,2,200,0,0.5")
    found = differing(polls, again(polls), "--where-from")
    assert found["staging.by_port"]["origins"][0]["files"] == [["changed", RAW]]
    assert found["metrics.shares"]["rows"]["changed"] == 2
    assert [(one["kind"], one["name"]) for one in found["metrics.shares"]["origins"]] == [
        ("files", "staging.by_port"),
        ("files", "staging.polls"),
    ]


def test_tables_split_by_hour_and_switch_are_compared_where_they_changed(polls: Tiny) -> None:
    columns = {"hour_utc": "TIMESTAMP", "switch": "VARCHAR", **POLL_COLUMNS}
    select = POLLS.replace("f.hour_utc", "f.hour_utc, f.switch")
    polls.model("staging.polls", select, columns, "partition: [hour_utc, switch]", "grain: [hour_utc, switch, ms]")
    polls.model("metrics.all", "SELECT * FROM staging.polls", columns, "partition: hour_utc", "grain: [hour_utc, ms]")
    assert polls.build().status == 0
    polls.file(1, "1,101,2,200,0,0.5")
    found = differing(polls, again(polls), "--where-from")
    assert found.keys() == {"staging.polls", "metrics.all", "metrics.large", "metrics.hours"}
    for table in found.values():
        assert (table["rows"]["changed"], table["rows"]["added"], table["rows"]["removed"]) == (1, 0, 0)
        assert [one["files"] for one in table["origins"]] == [[["changed", RAW]]]
    polls.model("staging.polls", select, columns, "partition: hour_utc", "grain: [hour_utc, switch, ms]")
    assert differing(polls, again(polls)) == {}


def test_a_changed_select_or_reviewed_table_is_named_as_the_origin(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    assert origins(tiny, again(tiny)) == {
        "staging.ports": [("sql", "staging.ports", [])],
        "metrics.total": [("sql", "staging.ports", [])],
    }
    tiny.reference("speeds", SPEEDS, "eth0,10", "eth1,50")
    assert origins(tiny, again(tiny)) == {
        "reference.speeds": [("reference", "reference.speeds", [])],
        "staging.ports": [("reference", "reference.speeds", [])],
        "metrics.total": [("reference", "reference.speeds", ["staging.ports"])],
    }


def test_a_change_within_a_view_is_attributed_to_the_view(polls: Tiny) -> None:
    polls.model(
        "metrics.large",
        "SELECT hour_utc, ms, in_bytes + 1 AS in_bytes FROM staging.polls WHERE in_bytes > 0",
        POLL_COLUMNS,
        "partition: hour_utc",
        "grain: [hour_utc, ms]",
        "materialize: view",
    )
    assert origins(polls, again(polls)) == {"metrics.large": [("sql", "metrics.large", [])]}


def test_nondeterministic_rows_are_reported_as_such(tiny: Tiny) -> None:
    tiny.model("metrics.dice", "SELECT 1 AS name, random() AS speed", {"name": "BIGINT", "speed": "DOUBLE"})
    assert tiny.build().status == 0
    assert origins(tiny, again(tiny)) == {"metrics.dice": [("volatile", "metrics.dice", [])]}


def test_missing_records_of_inputs_are_reported(tiny: Tiny) -> None:
    assert tiny.build().status == 0
    (tiny.target / "state.sqlite").unlink()
    tiny.model("staging.ports", "SELECT port, speed + 1 AS speed FROM reference.speeds", SPEEDS)
    assert origins(tiny, again(tiny))["staging.ports"] == [("unrecorded", "staging.ports", [])]
