"""Checks: each kind holds or fails with the rows that fail; an error stops the build, a warning does not."""

from __future__ import annotations

import pytest

from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}


@pytest.fixture
def ports(tiny: Tiny) -> Tiny:
    """`staging.ports` has two ports of one speed and one without; `staging.known` has the first alone."""
    tiny.reference("speeds", COLUMNS, "eth0,10", "eth1,40", "eth2,40", "eth3,")
    tiny.model("staging.known", "SELECT port, speed FROM reference.speeds WHERE port = 'eth0'", COLUMNS)
    return tiny


def check(tiny: Tiny, *checks: str, grain: str = "port") -> str:
    """Give `staging.ports` these checks, from line 5 on; returns its path."""
    lines = ["checks:", *(f"  - {one}" for one in checks)] if checks else []
    return tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, f"grain: [{grain}]", *lines)


HOLDS = [
    "unique(port)",
    "UNIQUE(port, speed)",
    "not null(port)",
    "references(port) -> reference.speeds(port)",
    "references(port, speed) -> reference.speeds(port, speed)",
    "total(speed) = total(reference.speeds.speed)",
    "total(speed * 2 - speed) = total(reference.speeds.speed)",
    "total(speed) = total(reference.speeds.speed) by port",
    "total(1) = total(reference.speeds.one) by speed, port",
    "rows = 4",
    "rows >= 1",
    "rows between 4 and 4",
    "none: SELECT * FROM this WHERE speed > 100",
    "none: WITH a AS (SELECT max(speed) AS m FROM this) SELECT * FROM a, reference.speeds WHERE speed > m",
    "speed between 10 and 40 or speed is null",
    "port in ('eth0', 'eth1', 'eth2', 'eth3')",
]


def test_every_kind_of_check_can_hold(ports: Tiny) -> None:
    check(ports, *HOLDS)
    assert ports.build().status == 0
    found = ports.ask("SELECT check_text, severity, status, failures FROM meta.checks WHERE model = 'staging.ports'")
    assert found == [(text, "error", "passed", 0) for text in ("grain(port)", *HOLDS)]


FAILS = {
    # check: how many rows fail, and which
    "unique(speed)": (1, ["40  2"]),
    "not null(port, speed)": (1, ["eth3  None"]),
    "references(port) -> staging.known(port)": (3, ["eth1  40", "eth2  40", "eth3  None"]),
    "references(port, speed) -> staging.known(port, speed)": (2, ["eth1  40", "eth2  40"]),  # NULL refers to nothing
    "total(speed) = total(staging.known.speed)": (1, ["90  10"]),
    "total(speed) = total(staging.known.speed) by port": (2, ["eth1  40  0", "eth2  40  0"]),  # eth3: NULL is 0
    "rows = 3": (1, ["4"]),
    "rows between 5 and 9": (1, ["4"]),
    "none: SELECT port FROM this WHERE speed = 40": (2, ["eth1", "eth2"]),
    "speed < 40": (3, ["eth1  40", "eth2  40", "eth3  None"]),  # what is NULL is not true
}


@pytest.mark.parametrize("text", FAILS)
def test_a_check_that_fails_shows_its_rows_and_publishes_nothing(ports: Tiny, text: str) -> None:
    assert ports.build().status == 0
    before = ports.ask("FROM meta.build")
    shown = check(ports, text)
    said = ports.build()
    count, rows = FAILS[text]
    assert said.status == 1
    head, *told = said.err[said.err.index("error: ") :].splitlines()
    assert head.startswith(f"error: {shown}:5:5: staging.ports: {text}: {count} row")
    assert sorted(line.strip() for line in told) == rows
    assert ports.ask("FROM meta.build") == before


@pytest.mark.parametrize("text", FAILS)
def test_a_warning_is_told_and_published(ports: Tiny, text: str) -> None:
    check(ports, f"'warn: {text}'")
    said = ports.build()
    assert said.status == 0, said
    count, _ = FAILS[text]
    assert f"warn staging.ports: {text}: {count} row" in said.told
    assert ports.ask("SELECT check_text, severity, failures FROM meta.checks WHERE status = 'warned'") == [
        (text, "warn", count)
    ]


@pytest.mark.parametrize(("grain", "row"), [("speed", "40  2"), ("speed", "None  1")])
def test_the_grain_is_always_checked_unique_and_not_null(ports: Tiny, grain: str, row: str) -> None:
    shown = check(ports, grain=grain)
    said = ports.build()
    assert said.status == 1
    assert f"error: {shown}:1: staging.ports: grain (speed) is not unique: " in said.err
    assert row in said.err


def test_five_rows_are_shown_of_many(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, *(f"eth{number},0" for number in range(1000)))
    check(tiny, "speed > 0")
    said = tiny.build()
    assert "1,000 rows fail" in said.err
    assert said.err.count("  0\n") == 5


def test_a_check_of_a_partition_says_which(tiny: Tiny) -> None:
    tiny.model(
        "metrics.hour",
        "SELECT hour_utc, count(*) AS files FROM raw.files WHERE format IS NOT NULL GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP", "files": "BIGINT"},
        "partition: hour_utc",
        "checks:",
        "  - hour_utc < TIMESTAMP '2024-05-23 17:00:00'",
    )
    said = tiny.build()
    assert said.status == 1
    assert "metrics.hour in 2024-05-23T17: hour_utc < TIMESTAMP" in said.err


def test_the_check_of_a_view_runs_in_every_build(tiny: Tiny) -> None:
    tiny.model(
        "metrics.view",
        "SELECT port FROM staging.ports",
        {"port": "VARCHAR"},
        "materialize: view",
        "checks:",
        "  - rows = 2",
    )
    assert tiny.build().status == 0
    assert tiny.ask("SELECT status FROM meta.checks WHERE model = 'metrics.view'") == [("passed",)]
    tiny.reference("speeds", COLUMNS, "eth0,10")
    said = tiny.build()
    assert said.status == 1
    assert "metrics.view: rows = 2: 1 row" in said.err


INVALID = {
    "unique(prt)": "the check names prt, which is no column of the model",
    "not null(prt)": "the check names prt, which is no column of the model",
    "references(prt) -> reference.speeds(port)": "the check names prt, which is no column of the model",
    "references(port, speed) -> reference.speeds(port)": "the check refers 2 columns to 1",
    "references(port) -> reference.speeds(prt)": "the check `references(port) -> reference.speeds(prt)` is not valid",
    "total(spd) = total(reference.speeds.speed)": "the check `total(spd) = total(reference.speeds.speed)` is not valid",
    "total(speed) = total(reference.speeds.spd)": "the check `total(speed) = total(reference.speeds.spd)` is not valid",
    "spd > 0": "the check `spd > 0` is not valid",
    "speed >": "the check `speed >` is not valid",
    "speed > 'a'": "the check `speed > 'a'` is not valid",
    "'rows >'": "the check `rows >` is not valid",
    "none: SELECT * FROM this WHERE": "the check `none: SELECT * FROM this WHERE` is not valid",
    "none: SELECT spd FROM this": "the check `none: SELECT spd FROM this` is not valid",
}


@pytest.mark.parametrize("text", INVALID)
def test_a_check_that_is_no_sql_is_an_error_at_its_line(ports: Tiny, text: str) -> None:
    shown = check(ports, "speed > 0 or speed is null", text)
    said = ports.build()
    assert said.status == 1
    assert f"error: {shown}:6:5: {INVALID[text]}" in said.err
