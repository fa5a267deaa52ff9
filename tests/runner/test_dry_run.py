"""`warehouse plan` predicts the actions of a build and their reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command, Restored
from tests.store.test_up_to_date import while_it_runs
from tests.tiny import HOURS, Tiny
from warehouse.engine.duckdb import DuckDBEngine

SPEED, HOUR = {"port": "VARCHAR", "speed": "BIGINT"}, {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"}
TOTAL = {"name": "VARCHAR", "speed": "BIGINT"}
HOURLY = """WITH polls AS (
    SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, InOctets FROM raw.port_counters
)
SELECT hour_utc, sum(InOctets) AS bytes FROM polls GROUP BY hour_utc"""
Plan = dict[str, tuple[str, str]]
"""`model` or `model partition` -> (action, reasons)."""


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """Two built chains: one by hour and then over all hours, one from a reference table."""
    return tiny.restore(restored, "two-chains", _write_two_chains)


def _write_two_chains(tiny: Tiny) -> None:
    tiny.model("staging.hour", HOURLY, HOUR, "partition: hour_utc")
    tiny.model("topology.hour", "SELECT hour_utc, bytes FROM staging.hour", HOUR, "partition: hour_utc")
    tiny.model("metrics.hours", "SELECT max(hour_utc) AS hour_utc, sum(bytes) AS bytes FROM topology.hour", HOUR)


@pytest.fixture
def plan(tiny: Tiny, command: Command) -> Callable[..., Plan]:
    """Function that runs `warehouse plan --json` and returns the planned action for each stale part."""

    def run(*options: str) -> Plan:
        said = command("plan", "-d", tiny.data, "-t", tiny.target, "--json", *options)
        assert said.status == 0, said
        return {
            f"{one['model']} {one['partition'] or ''}".strip(): (one["action"], "; ".join(one["reasons"]))
            for one in json.loads(said.out)["parts"]
            if one["action"] != "keep"
        }

    return run


def edit(tiny: Tiny, name: str, old: str, new: str) -> Path:
    path = tiny.folder / "models" / f"{name.replace('.', '/')}.sql"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def gone(tiny: Tiny, model: str) -> None:
    (part,) = (tiny.target / "parts" / model).rglob("*.parquet")
    part.unlink()


def add_and_remove(tiny: Tiny) -> None:
    tiny.model("metrics.new", "SELECT port, speed FROM staging.ports", SPEED)
    (tiny.folder / "models/metrics/total.sql").unlink()


OVER_ALL = {"metrics.hours": ("maybe", "reads topology.hour")}
FIRST, SECOND = (f"staging.hour {hour}" for hour in HOURS)
ABOVE = {f"topology.hour {hour}": ("maybe", "reads staging.hour") for hour in HOURS}
Change = Callable[[Tiny], object]
CASES: dict[str, tuple[Change, dict[str, tuple[str, str]]]] = {
    "comments and descriptions": (
        lambda t: (
            edit(t, "staging.hour", "GROUP BY", "-- all\n GROUP\tby"),
            edit(t, "staging.hour", "A model", "Another word"),
        ),
        {},
    ),
    "a column": (
        lambda t: edit(t, "staging.ports", "speed FROM", "speed * 2 AS speed FROM"),
        {"staging.ports": ("make", "SQL changed: speed"), "metrics.total": ("maybe", "reads speed of staging.ports")},
    ),
    "a column that nobody reads": (
        lambda t: edit(t, "staging.ports", "SELECT port", "SELECT upper(port) AS port"),
        {
            "staging.ports": ("make", "SQL changed: port"),
            "metrics.total": ("maybe", "reads staging.ports, but nothing of it that changes"),
        },
    ),
    "a CTE and a clause": (
        lambda t: (
            edit(t, "staging.hour", "InOctets FROM", "InOctets + 0 AS InOctets FROM"),
            edit(t, "staging.hour", "FROM polls", "FROM polls WHERE InOctets >= 0"),
        ),
        {
            FIRST: ("make", "SQL changed: WITH polls, WHERE"),
            SECOND: ("make", "SQL changed: WITH polls, WHERE"),
            **ABOVE,
            **OVER_ALL,
        },
    ),
    "a type and the grain": (
        lambda t: (
            edit(t, "staging.ports", "speed: BIGINT", "speed: INTEGER"),
            edit(t, "staging.ports", "grain: [port]", "grain: [port, speed]"),
        ),
        {
            "staging.ports": ("make", "type changed: speed; grain changed"),
            "metrics.total": ("maybe", "reads staging.ports"),
        },
    ),
    "a new column": (
        lambda t: t.model(
            "staging.ports", "SELECT port, speed, 1 AS n FROM reference.speeds", {**SPEED, "n": "BIGINT"}
        ),
        {
            "staging.ports": ("make", "SQL changed: n; column added: n"),
            "metrics.total": ("maybe", "reads staging.ports"),
        },
    ),
    "a reference table": (
        lambda t: t.reference("speeds", SPEED, "eth0,11"),
        {
            "staging.ports": ("make", "reference.speeds changed"),
            "metrics.total": ("maybe", "reads staging.ports"),
        },
    ),
    "a new hour": (
        lambda t: t.file(2, "1,7,2,200,0,0.5"),
        {
            "staging.hour 2024-05-23T18": ("make", "1 file new"),
            "topology.hour 2024-05-23T18": ("make", "new"),
            **OVER_ALL,
        },
    ),
    "a file of an hour corrected": (
        lambda t: t.file(1, "1,9,2,200,0,0.5"),
        {
            SECOND: ("make", "1 file changed"),
            f"topology.hour {HOURS[1]}": ("maybe", "reads staging.hour"),
            **OVER_ALL,
        },
    ),
    "an hour gone": (
        lambda t: t.file(1).unlink(),
        {
            "metrics.hours": ("make", "topology.hour has other rows"),
            SECOND: ("drop", "no file of it is left"),
            f"topology.hour {HOURS[1]}": ("drop", "no file of it is left"),
        },
    ),
    "a new model, and one gone": (
        add_and_remove,
        {"metrics.new": ("make", "new"), "metrics.total": ("drop", "no such model any more")},
    ),
    "another check": (
        lambda t: edit(t, "staging.ports", "columns:", "checks:\n  - rows > 1\ncolumns:"),
        {"staging.ports": ("check", "not checked yet")},
    ),
    "a part gone": (
        lambda t: gone(t, "staging.ports"),
        {
            "staging.ports": ("make", "its part is missing or damaged"),
            "metrics.total": ("maybe", "reads staging.ports"),
        },
    ),
    "a volatile function": (
        lambda t: edit(t, "staging.ports", "speed FROM", "CAST(random() * 9 AS INTEGER) AS speed FROM"),
        {
            "staging.ports": ("make", "volatile: random() at models/staging/ports.sql:8:19; SQL changed: speed"),
            "metrics.total": ("maybe", "reads staging.ports"),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_build_does_exactly_what_the_plan_predicts(hours: Tiny, plan: Callable[..., Plan], case: str) -> None:
    change, expected = CASES[case]
    change(hours)
    found = plan()
    assert found == expected
    sure, possible = ({key for key, (action, _) in found.items() if action == wanted} for wanted in ("make", "maybe"))
    made = hours.made()
    assert sure <= made <= sure | possible
    assert plan() == ({} if "volatile" not in case else found | {"staging.ports": VOLATILE})


VOLATILE = ("make", "volatile: random() at models/staging/ports.sql:8:19")


def test_changed_files_are_reasons_for_their_parts_under_any_partition_column(
    hours: Tiny, plan: Callable[..., Plan]
) -> None:
    port = {"port": "VARCHAR", "bytes": "BIGINT"}
    by_port = "SELECT PortName AS port, sum(InOctets) AS bytes FROM raw.port_counters GROUP BY PortName"
    hours.model("staging.by_port", by_port, port, "partition: port")
    hours.made()
    hours.file(1, "1,9,2,200,0,0.5")
    part = "staging.by_port port=TwoHundredGigE1%2F0%2F1%3A1"
    assert plan()[part] == ("make", "1 file changed")
    assert part in hours.made()


def test_a_new_engine_version_rebuilds_everything(
    hours: Tiny, plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DuckDBEngine.version
    monkeypatch.setattr(DuckDBEngine, "version", "99.0")
    hours.file(1, "1,9,2,200,0,0.5")
    found = plan()
    assert found["staging.ports"] == ("make", f"engine changed: duckdb {real} to duckdb 99.0")
    assert found[SECOND] == ("make", f"engine changed: duckdb {real} to duckdb 99.0; 1 file changed")
    assert {action for action, _ in found.values()} == {"make"}, "no part of this engine can be there"
    assert hours.made() == found.keys()


def test_before_the_first_build_the_plan_has_all_parts_and_writes_nothing(tiny: Tiny, command: Command) -> None:
    said = command("plan", "-d", tiny.data, "-t", tiny.target)
    assert said == (0, f"make   all: 2 models, 2 parts; nothing is built in {tiny.target} yet\n", "")
    assert not tiny.target.exists()
    tiny.build()
    (manifest,) = tiny.target.glob("builds/*/manifest.json")
    manifest.write_bytes(b"")
    said = command("plan", "-d", tiny.data, "-t", tiny.target)
    assert (said.status, said.out.partition(":")[0]) == (0, "keep   2 models, 2 parts"), "beside a damaged manifest"


def test_parts_of_a_failed_build_are_reused(hours: Tiny, plan: Callable[..., Plan]) -> None:
    edit(hours, "staging.ports", "speed FROM", "speed * 2 AS speed FROM")
    edit(hours, "metrics.total", "sum(speed)", "sum(CAST(name AS BIGINT))")
    assert hours.build().status == 1
    edit(hours, "metrics.total", "sum(CAST(name AS BIGINT))", "sum(speed)")
    for _ in range(2):  # a plan changes nothing
        assert plan() == {"metrics.total": ("make", "staging.ports has other rows")}
    assert hours.made() == {"metrics.total"}


def test_the_plan_of_a_selection_matches_its_build(hours: Tiny, plan: Callable[..., Plan], command: Command) -> None:
    edit(hours, "staging.ports", "speed FROM", "speed * 2 AS speed FROM")
    hours.made()
    edit(hours, "staging.ports", "speed * 2 AS speed FROM", "speed FROM")
    assert plan() == {}, "the parts of before are still there"
    assert hours.made() == set()
    hours.reference("speeds", SPEED, "eth0,11")
    hours.file(1, "1,9,2,200,0,0.5")
    assert plan("-s", "staging.ports") == {"staging.ports": ("make", "reference.speeds changed")}
    said = json.loads(command("plan", "-d", hours.data, "-t", hours.target, "-s", "staging.ports", "--json").out)
    kept = {one["model"] for one in said["parts"] if one["reasons"] == ["not selected"]}
    assert kept == {"metrics.total", "staging.hour"}, "what stands on them is as it was"
    assert [one["reaches"] for one in said["parts"] if one["action"] == "make"] == [["metrics.total"]]
    assert hours.made("-s", "staging.ports") == {"staging.ports"}


def test_a_plan_is_readable_text(hours: Tiny, command: Command) -> None:
    hours.file(2, "1,7,2,200,0,0.5")
    hours.file(0, "1,9,2,200,0,0.5")
    hours.file(1).unlink()
    edit(hours, "staging.ports", "speed FROM", "speed * 2 AS speed FROM")
    said = command("plan", "-d", hours.data, "-t", hours.target)
    assert said.status == 0
    assert said.out.splitlines() == [
        "make   2024-05-23T18: 2 parts, 1 file new",
        "drop   2024-05-23T17: 2 parts, no file of it is left",
        "make   staging.ports                 SQL changed: speed",
        "maybe  metrics.total                 reads speed of staging.ports",
        "maybe  metrics.hours                 reads topology.hour",
        "2024-05-23T16",
        "make   staging.hour                  1 file changed",
        "maybe  topology.hour                 reads staging.hour",
    ]


def test_a_build_that_would_only_publish_says_why(hours: Tiny, command: Command) -> None:
    def last() -> str:
        return command("plan", "-d", hours.data, "-t", hours.target).out.splitlines()[-1]

    assert last().startswith("Up to date  ")
    edit(hours, "staging.ports", "A model", "Other words")
    assert last() == "Nothing is made; a build publishes again, since what tables or columns mean has changed."
    assert hours.made() == set()
    (hours.target / "warehouse.duckdb").unlink()
    assert last() == f"Nothing is made; a build publishes again, since {hours.target}/warehouse.duckdb is gone."


def test_a_plan_needs_no_lock(hours: Tiny, plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    hours.reference("speeds", SPEED, "eth0,11")
    seen: list[Plan] = []
    with monkeypatch.context() as patch:
        while_it_runs(patch, lambda: seen.append(plan()))
        assert hours.build().status == 0
    assert seen[0].keys() == {"staging.ports", "metrics.total"}


def test_bad_lines_found_by_a_build_are_known_to_the_plan(hours: Tiny, plan: Callable[..., Plan]) -> None:
    rows = ["1,100,2,200,0,0.5"] * 50  # a bad line near the top would be found before DuckDB reads it
    rows[40] = f"1,{'9' * 30},2,200,0,0.5"  # hashing does not notice this line: all its characters are valid
    hours.file(1, *rows)
    said = hours.build()
    assert "looking for bad lines" in said.err
    hours.reference("speeds", SPEED, "eth0,11")
    assert plan() == CASES["a reference table"][1]
    again = hours.build()
    assert "looking for bad lines" not in again.err
    assert hours.ask("SELECT count(*) FROM raw.rejected_rows") == [(1,)]
