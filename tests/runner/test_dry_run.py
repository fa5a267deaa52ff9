"""`warehouse plan` predicts the actions of a build and their reasons."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import Command, Restored
from tests.tiny import HOUR_COLUMNS, HOURS, Tiny
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.store.atomic import hold

SPEED = {"port": "VARCHAR", "speed": "BIGINT"}
Plan = dict[str, str]
"""`model` or `model partition` -> `action: reasons`."""
Change = Callable[[Tiny], object]


@pytest.fixture
def hours(tiny: Tiny, restored: Restored) -> Tiny:
    """Two built chains: one by hour and then over all hours, one from a reference table."""
    return tiny.restore(restored, "two-chains", _write_two_chains)


def _write_two_chains(tiny: Tiny) -> None:
    tiny.by_hour()
    tiny.model("topology.hour", "SELECT hour_utc, bytes FROM staging.hour", HOUR_COLUMNS, "partition: hour_utc")
    over_all = "SELECT max(hour_utc) AS hour_utc, sum(bytes) AS bytes FROM topology.hour"
    tiny.model("metrics.hours", over_all, HOUR_COLUMNS)


@pytest.fixture
def plan(tiny: Tiny, command: Command) -> Callable[..., Plan]:
    """Function that runs `warehouse plan --json` and returns the planned action for each stale part."""

    def run(*options: str) -> Plan:
        said = command("plan", "-d", tiny.data, "-t", tiny.target, "--json", *options)
        assert said.status == 0, said
        return {
            f"{one['model']} {one['partition'] or ''}".strip(): f"{one['action']}: {'; '.join(one['reasons'])}"
            for one in json.loads(said.out)["parts"]
            if one["action"] != "keep"
        }

    return run


def edit(name: str, *changes: tuple[str, str]) -> Change:
    """Return a change of the text of a model."""

    def change(tiny: Tiny) -> None:
        path = tiny.folder / "models" / f"{name.replace('.', '/')}.sql"
        text = path.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    return change


def lose_a_part(tiny: Tiny) -> None:
    (part,) = (tiny.target / "parts" / "staging.ports").rglob("*.parquet")
    part.unlink()


def add_and_remove_models(tiny: Tiny) -> None:
    tiny.model("metrics.new", "SELECT port, speed FROM staging.ports", SPEED)
    (tiny.folder / "models/metrics/total.sql").unlink()


PORTS, TOTAL, ALL_HOURS, HOUR_1, ABOVE_1, HOUR_2, ABOVE_2 = (
    "staging.ports", "metrics.total", "metrics.hours",
    *(f"{model} {hour}" for hour in HOURS for model in ("staging.hour", "topology.hour")),
)  # fmt: skip
NEXT, ABOVE = "maybe: reads staging.ports", "maybe: reads staging.hour"
LATER = {ALL_HOURS: "maybe: reads topology.hour"}
NO_FILE = "drop: no file of it is left"
RANDOM = "volatile: random() at models/staging/ports.sql:8:19"
DOUBLED = ("speed FROM", "speed * 2 AS speed FROM")
ANYTHING = ("speed FROM", "CAST(random() * 9 AS INTEGER) AS speed FROM")


def several(*changes: Change) -> Change:
    return lambda tiny: [change(tiny) for change in changes]


CASES: dict[str, tuple[Change, Plan]] = {
    "a comment and a description": (
        several(edit("staging.hour", ("GROUP BY", "-- all\n GROUP\tby")), edit(PORTS, ("A model", "Another word"))),
        {},
    ),
    "a SELECT and a new hour": (
        several(edit(PORTS, DOUBLED), lambda t: t.file(2, "1,7,2,200,0,0.5")),
        {PORTS: "make: SQL changed", TOTAL: NEXT, "staging.hour 2024-05-23T18": "make: 1 file new",
         "topology.hour 2024-05-23T18": "make: new", **LATER},
    ),
    "a type, the grain, and a file of an hour": (
        several(
            edit(PORTS, ("speed: BIGINT", "speed: INTEGER"), ("grain: [port]", "grain: [port, speed]")),
            lambda t: t.file(1, "1,9,2,200,0,0.5"),
        ),
        {PORTS: "make: columns changed; grain changed", TOTAL: NEXT, HOUR_2: "make: 1 file changed", ABOVE_2: ABOVE,
         **LATER},
    ),
    "a reference table and an hour gone": (
        several(lambda t: t.reference("speeds", SPEED, "eth0,11"), lambda t: t.file(1).unlink()),
        {PORTS: "make: reference.speeds changed", TOTAL: NEXT, ALL_HOURS: "make: topology.hour has other rows",
         HOUR_2: NO_FILE, ABOVE_2: NO_FILE},
    ),
    "models, and a part gone": (
        several(add_and_remove_models, lose_a_part),
        {PORTS: "make: its part is missing or damaged", "metrics.new": "make: new",
         TOTAL: "drop: no such model any more"},
    ),
    "another check": (
        edit(PORTS, ("columns:", "checks:\n  - rows > 1\ncolumns:")),
        {PORTS: "check: not checked yet"},
    ),
    "a volatile function": (edit(PORTS, ANYTHING), {PORTS: f"make: {RANDOM}; SQL changed", TOTAL: NEXT}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_build_does_exactly_what_the_plan_predicts(hours: Tiny, plan: Callable[..., Plan], case: str) -> None:
    change, expected = CASES[case]
    change(hours)
    found = plan()
    assert found == expected
    sure, possible = ({key for key, why in found.items() if why.startswith(one)} for one in ("make", "maybe"))
    made = hours.made()
    assert sure <= made <= sure | possible
    assert plan() == ({} if "volatile" not in case else found | {PORTS: f"make: {RANDOM}"})


def test_a_new_engine_version_rebuilds_everything(
    hours: Tiny, plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = f"make: engine changed: duckdb {DuckDBEngine.version} to duckdb 99.0"
    monkeypatch.setattr(DuckDBEngine, "version", "99.0")
    hours.file(1, "1,9,2,200,0,0.5")
    found = plan()
    assert found[PORTS] == why
    assert found[HOUR_2] == f"{why}; 1 file changed"
    assert all(one.startswith("make") for one in found.values()), "no part of this engine can be there"
    assert hours.made() == found.keys()


def test_before_the_first_build_the_plan_has_all_parts_and_writes_nothing(tiny: Tiny, command: Command) -> None:
    said = command("plan", "-d", tiny.data, "-t", tiny.target)
    assert said == (0, f"make   all: 2 models, 2 parts; nothing is built in {tiny.target} yet\n", "")
    assert not tiny.target.exists()
    tiny.build()
    (manifest,) = tiny.target.glob("builds/*/manifest.json")
    manifest.write_bytes(b"")
    said = command("plan", "-d", tiny.data, "-t", tiny.target)
    assert (said.status, said.out.splitlines()[0]) == (0, "keep   2 models, 2 parts"), "beside a damaged manifest"


def test_parts_of_a_failed_build_are_reused(hours: Tiny, plan: Callable[..., Plan]) -> None:
    edit(PORTS, DOUBLED)(hours)
    edit(TOTAL, ("sum(speed)", "sum(CAST(name AS BIGINT))"))(hours)
    assert hours.build().status == 1
    edit(TOTAL, ("sum(CAST(name AS BIGINT))", "sum(speed)"))(hours)
    for _ in range(2):  # a plan changes nothing
        assert plan() == {TOTAL: "make: staging.ports has other rows"}
    assert hours.made() == {TOTAL}


def test_the_plan_of_a_selection_matches_its_build(hours: Tiny, plan: Callable[..., Plan], command: Command) -> None:
    edit(PORTS, DOUBLED)(hours)
    hours.made()
    edit(PORTS, DOUBLED[::-1])(hours)
    assert plan() == {}, "the parts of before are still there"
    assert hours.made() == set()
    hours.reference("speeds", SPEED, "eth0,11")
    hours.file(1, "1,9,2,200,0,0.5")
    assert plan("-s", PORTS) == {PORTS: "make: reference.speeds changed"}
    said = json.loads(command("plan", "-d", hours.data, "-t", hours.target, "-s", PORTS, "--json").out)
    kept = {one["model"] for one in said["parts"] if one["reasons"] == ["not selected"]}
    assert kept == {TOTAL, "staging.hour"}, "what stands on them is as it was"
    assert [one["reaches"] for one in said["parts"] if one["action"] == "make"] == [[TOTAL]]
    assert hours.made("-s", PORTS) == {PORTS}


def test_a_plan_is_readable_text(hours: Tiny, command: Command) -> None:
    hours.file(2, "1,7,2,200,0,0.5")
    hours.file(0, "1,9,2,200,0,0.5")
    hours.file(1).unlink()
    edit(PORTS, DOUBLED)(hours)
    said = command("plan", "-d", hours.data, "-t", hours.target)
    assert said.status == 0
    assert said.out.splitlines() == [
        "make   2024-05-23T18: 2 parts, 1 file new",
        "drop   2024-05-23T17: 2 parts, no file of it is left",
        "make   staging.ports                 SQL changed",
        "maybe  metrics.total                 reads staging.ports",
        "maybe  metrics.hours                 reads topology.hour",
        "2024-05-23T16",
        "make   staging.hour                  1 file changed",
        "maybe  topology.hour                 reads staging.hour",
    ]


def test_a_build_that_would_only_publish_says_why(hours: Tiny, command: Command) -> None:
    def last() -> str:
        return " ".join(command("plan", "-d", hours.data, "-t", hours.target).out.splitlines()[-1].split())

    with hold(hours.target):  # a plan needs no lock
        assert last().startswith("Up to date ")
    edit(PORTS, ("A model", "Other words"))(hours)
    assert last().startswith("Nothing is made; a build publishes again, since files of the project differ from")
    assert last().endswith("/models/staging/ports.sql.")
    assert hours.made() == set()
    assert hours.ask("SELECT about FROM meta.models WHERE model = 'staging.ports'") == [("Other words.",)]
    (hours.target / "warehouse.duckdb").unlink()
    assert "since files of the target differ from" in last()


def test_bad_lines_found_by_a_build_are_known_to_the_plan(hours: Tiny, plan: Callable[..., Plan]) -> None:
    rows = ["1,100,2,200,0,0.5"] * 50  # a bad line near the top would be found before DuckDB reads it
    rows[40] = f"1,{'9' * 30},2,200,0,0.5"  # hashing does not notice this line: all its characters are valid
    hours.file(1, *rows)
    assert "looking for bad lines" in hours.build().err
    hours.reference("speeds", SPEED, "eth0,11")
    assert plan() == {PORTS: "make: reference.speeds changed", TOTAL: NEXT}
    assert "looking for bad lines" not in hours.build().err
    assert hours.ask("SELECT count(*) FROM raw.rejected_rows") == [(1,)]
