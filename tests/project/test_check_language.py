"""Checks: each kind passes or reports failing rows; an error stops the build, a warning does not."""

from __future__ import annotations

import pytest

from tests.conftest import Command
from tests.tiny import Tiny

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}
SHOWN = 5
"""Warnings that a build shows, at most."""


@pytest.fixture
def ports(tiny: Tiny) -> Tiny:
    """`staging.ports` has two ports of one speed and one without. `staging.known` has only the first.

    `staging.more` has the first, too, and one that `staging.ports` lacks.
    """
    tiny.reference("speeds", COLUMNS, "eth0,10", "eth1,40", "eth2,40", "eth3,")
    tiny.model("staging.known", "SELECT port, speed FROM reference.speeds WHERE port = 'eth0'", COLUMNS)
    more = "SELECT port, speed FROM staging.known UNION ALL SELECT 'eth9', NULL"
    tiny.model("staging.more", more, COLUMNS)
    return tiny


def check(tiny: Tiny, *checks: str, grain: str = "port") -> str:
    """Give `staging.ports` these checks, from line 5 on; return its path."""
    lines = ["checks:", *(f"  - {one}" for one in checks)] if checks else []
    return tiny.model("staging.ports", "SELECT port, speed FROM reference.speeds", COLUMNS, f"grain: [{grain}]", *lines)


HOLDS = [
    "unique(port)",
    "UNIQUE(port, speed)",
    "not null(port)",
    "references(port) -> reference.speeds(port)",
    "references(port, speed) -> reference.speeds(port, speed)",
    "referenced(port) by reference.speeds(port)",
    "referenced(port, speed) by staging.more(port, speed)",
    "total(speed) = total(reference.speeds.speed)",
    "total(speed * 2 - speed) = total(reference.speeds.speed)",
    "total(speed) = total(reference.speeds.speed) by port",
    "total(speed) = total(reference.speeds.speed where port <> 'eth3')",
    "total(speed) = total(reference.speeds.speed WHERE (speed > 0) OR speed IS NULL) by port",
    "rows = 4",
    "rows >= 1",
    "rows between 4 and 4",
    "none: SELECT * FROM this WHERE speed > 100",
    "references(port) -> staging.ports(port)",  # a check may name its own model
    "none: SELECT * FROM staging.ports WHERE speed > 100",
    "none: WITH a AS (SELECT max(speed) AS m FROM this) SELECT * FROM a, reference.speeds WHERE speed > m",
    "speed between 10 and 40 or speed is null",
    "port in ('eth0', 'eth1', 'eth2', 'eth3')",
]


def test_every_kind_of_check_can_pass(ports: Tiny) -> None:
    check(ports, *HOLDS)
    assert ports.build().status == 0
    found = ports.ask("SELECT check_text, severity, status, failures FROM meta.checks WHERE model = 'staging.ports'")
    assert found == [(text, "error", "passed", 0) for text in ("grain(port)", *HOLDS)]


FAILS = {
    # check -> number of failing rows, and the rows
    "unique(speed)": (1, ["40  2"]),
    "not null(port, speed)": (1, ["eth3  None"]),
    "references(port) -> staging.known(port)": (3, ["eth1  40", "eth2  40", "eth3  None"]),
    "references(port, speed) -> staging.known(port, speed)": (2, ["eth1  40", "eth2  40"]),  # NULL references nothing
    "referenced(port) by staging.more(port)": (1, ["eth9  None"]),
    "total(speed) = total(staging.known.speed)": (1, ["90  10"]),
    "total(speed) = total(reference.speeds.speed where speed < 40)": (1, ["90  10"]),
    "total(speed) = total(reference.speeds.speed where speed < 40) by port": (2, ["eth1  40  0", "eth2  40  0"]),
    "total(speed) = total(staging.known.speed) by port": (2, ["eth1  40  0", "eth2  40  0"]),  # eth3: NULL counts as 0
    "rows = 3": (1, ["4"]),
    "rows between 5 and 9": (1, ["4"]),
    "none: SELECT port FROM this WHERE speed = 40": (2, ["eth1", "eth2"]),
    "speed < 40": (3, ["eth1  40", "eth2  40", "eth3  None"]),  # NULL is not true
}


def test_a_check_that_fails_shows_its_rows_and_publishes_nothing(ports: Tiny) -> None:
    assert ports.build().status == 0
    before = ports.ask("FROM meta.build")
    for text, (count, rows) in FAILS.items():
        shown = check(ports, text)
        said = ports.build()
        assert said.status == 1, text
        head, *told = said.err[said.err.index("error: ") :].splitlines()
        assert head.startswith(f"error: {shown}:5:5: staging.ports: {text}: {count} row")
        assert sorted(line.strip() for line in told) == rows, text
        assert ports.ask("FROM meta.build") == before, text


def test_a_warning_is_reported_and_the_build_published(ports: Tiny) -> None:
    some = dict(list(FAILS.items())[:SHOWN])
    check(ports, *(f"'warn: {text}'" for text in some))
    said = ports.build()
    assert said.status == 0, said
    found = ports.ask("SELECT check_text, severity, failures FROM meta.checks WHERE status = 'warned'")
    assert found == [(text, "warn", count) for text, (count, _) in some.items()]
    for text, (count, _) in some.items():
        assert f"warn staging.ports: {text}: {count} row" in said.err_text


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


def test_a_check_of_a_partition_names_it(tiny: Tiny) -> None:
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
    "referenced(port, speed) by reference.speeds(port)": "the check refers 2 columns to 1",
    "references(port) -> reference.speeds(prt)": "the check `references(port) -> reference.speeds(prt)` is not valid",
    "total(spd) = total(reference.speeds.speed)": "the check `total(spd) = total(reference.speeds.speed)` is not valid",
    "total(speed) = total(reference.speeds.speed where prt = 'a')": (
        "the check `total(speed) = total(reference.speeds.speed where prt = 'a')` is not valid"
    ),
    "total(speed) = total(reference.speeds.spd)": "the check `total(speed) = total(reference.speeds.spd)` is not valid",
    "spd > 0": "the check `spd > 0` is not valid",
    "speed >": "the check `speed >` is not valid",
    "speed > 'a'": "the check `speed > 'a'` is not valid",
    "'rows >'": "the check `rows >` is not valid",
    "none: SELECT * FROM this WHERE": "the check `none: SELECT * FROM this WHERE` is not valid",
    "none: SELECT spd FROM this": "the check `none: SELECT spd FROM this` is not valid",
}


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_check_is_an_error_at_its_line(ports: Tiny, text: str) -> None:
    shown = check(ports, "speed > 0 or speed is null", text)
    said = ports.build()
    assert said.status == 1
    assert f"error: {shown}:6:5: {INVALID[text]}" in said.err


# age and history ---------------------------------------------------------------------------


@pytest.fixture
def times(tiny: Tiny) -> Tiny:
    """`staging.ports` ends at 16:00, `reference.speeds` at 17:30; an empty table beside them."""
    columns = {"port": "VARCHAR", "seen": "TIMESTAMP"}
    tiny.reference("speeds", columns, "eth0,2024-05-23 17:30:00", "eth1,2024-05-23 15:00:00")
    tiny.model("metrics.total", "SELECT port, seen FROM reference.speeds WHERE port = 'none'", columns)
    return tiny


def at(tiny: Tiny, text: str) -> None:
    moved = "SELECT port, seen - INTERVAL '90 minutes' AS seen FROM reference.speeds"
    tiny.model("staging.ports", moved, {"port": "VARCHAR", "seen": "TIMESTAMP"}, "checks:", f"  - {text}")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("latest(seen) within 90 minutes of latest(reference.speeds.seen)", 0),
        ("latest(seen) within 2 hours of latest(reference.speeds.seen)", 0),
        ("latest(seen) within 89 minutes of latest(reference.speeds.seen)", 1),
        ("LATEST(seen) WITHIN 1 hour OF LATEST(reference.speeds.seen)", 1),
        ("latest(seen) within 1 day of latest(metrics.total.seen)", 0),
        ("latest(seen) within 1 day of now()", 1),
        ("latest(seen) within 99999 days of now()", 0),
        ("latest(whenever) within 1 day of now()", 1),
    ],
)
def test_recent_checks_the_age_of_the_latest_row(times: Tiny, text: str, status: int) -> None:
    at(times, text)
    said = times.build()
    assert said.status == status, said
    if status and "whenever" not in text:
        assert f"{text}: 1 row fails" in said.err


def test_a_table_without_rows_is_not_recent(times: Tiny) -> None:
    at(times, "rows = 2")
    columns = {"port": "VARCHAR", "seen": "TIMESTAMP"}
    lines = ("checks:", "  - latest(seen) within 1 day of latest(staging.ports.seen)")
    times.model("metrics.total", "SELECT port, seen FROM reference.speeds WHERE port = 'none'", columns, *lines)
    assert times.build().status == 1


def test_failing_rows_are_kept_in_the_catalog(ports: Tiny) -> None:
    check(ports, "'warn: speed < 40'", "'warn: none: SELECT *, 1 AS speed FROM this WHERE speed = 10'")
    assert ports.build().status == 0
    found = ports.ask("SELECT check_text, severity, position, failing_row FROM meta.failures WHERE position < 3")
    assert found == [
        ("speed < 40", "warn", 1, '{"port":"eth1","speed":40}'),
        ("speed < 40", "warn", 2, '{"port":"eth2","speed":40}'),
        ("none: SELECT *, 1 AS speed FROM this WHERE speed = 10", "warn", 1, '{"port":"eth0","speed":10,"speed_1":1}'),
    ]
    assert ports.build("--json").status == 0
    assert ports.ask("SELECT count(*) FROM meta.failures") == [(4,)]


def test_fifty_rows_of_a_check_are_kept(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, *(f"eth{number},0" for number in range(1000)))
    check(tiny, "'warn: speed > 0'")
    assert tiny.build().status == 0
    assert tiny.ask("SELECT count(*), max(position) FROM meta.failures") == [(50, 50)]


def test_show_has_the_results_and_the_check_that_ended_the_last_build(ports: Tiny, command: Command) -> None:
    def shown() -> str:
        return " ".join(command("show", "staging.ports", "-t", ports.target).out.split())

    check(ports, "'warn: speed < 40 or speed is null'")
    assert ports.build().status == 0
    assert "warned 2 speed < 40 or speed is null" in shown()
    assert (
        "fails speed < 40 or speed is null; meta.failures has more port eth1, speed 40 port eth2, speed 40" in shown()
    )
    ports.reference("speeds", COLUMNS, "eth0,10", "eth1,40", "eth2,")
    assert ports.build().status == 0
    assert "warned 1 speed < 40 or speed is null" in shown()
    place = check(ports, "speed < 40 or speed is null")
    assert ports.build().status == 1
    assert f"the last build ended here: {place}:5:5: speed < 40 or speed is null: 1 rows, " in shown()
    ports.reference("speeds", COLUMNS, "eth0,10")
    assert ports.build().status == 0
    assert "passed 0 speed < 40 or speed is null" in shown()
    assert "ended here" not in shown()


def test_an_error_in_a_check_is_reported_before_any_model_runs(ports: Tiny) -> None:
    shown = check(ports, "spede > 0")
    said = ports.build()
    assert said.status == 1
    assert f"error: {shown}:5:5: the check `spede > 0` is not valid" in said.err
    assert "nearest: speed" in said.err
    assert not list((ports.target / "parts").rglob("*.parquet"))


def test_a_grain_column_may_be_a_keyword(tiny: Tiny) -> None:
    columns = {"order": "BIGINT", "name": "VARCHAR"}
    tiny.model("metrics.ordered", "SELECT 1 AS \"order\", 'a' AS name", columns, "checks:", "  - not null(order)")
    assert tiny.build().status == 0
    tiny.model("metrics.ordered", "SELECT unnest([1, 1]) AS \"order\", 'a' AS name", columns)
    said = tiny.build()
    assert "metrics.ordered: grain (order) is not unique: 1 row fails" in said.err


def test_a_check_says_in_a_sentence_what_fails(ports: Tiny, command: Command) -> None:
    check(
        ports,
        "warn: speed < 40 or speed is null\n    says: '{port} runs at {speed:,} of 10'",
        "speed > 0 or speed is null",
    )
    said = ports.build()
    assert said.status == 0
    assert "warn   staging.ports: eth1 runs at 40 of 10; eth2 runs at 40 of 10\n" in said.err
    assert ports.ask("SELECT position, sentence FROM meta.failures") == [
        (1, "eth1 runs at 40 of 10"),
        (2, "eth2 runs at 40 of 10"),
    ]
    shown = command("show", "staging.ports", "-t", ports.target).out
    assert "meta.failures has more\n  eth1 runs at 40 of 10\n  eth2 runs at 40 of 10\n" in shown
    doctor = command("doctor", "-d", ports.data, "-t", ports.target).out
    assert "  1 warning of checks · warehouse sql -t " in doctor


def test_a_changed_check_message_changes_no_build_and_is_shown(ports: Tiny) -> None:
    check(ports, "warn: speed < 40 or speed is null")
    assert ports.build().status == 0
    before = ports.ask("SELECT build_id FROM meta.build")
    check(ports, "warn: speed < 40 or speed is null\n    says: '{port} is fast'")
    assert ports.made() == set()
    assert ports.ask("SELECT build_id FROM meta.build") == before
    assert ports.ask("SELECT sentence FROM meta.failures") == [("eth1 is fast",), ("eth2 is fast",)]


def test_errors_and_sql_checks_show_their_message(ports: Tiny) -> None:
    place = check(
        ports, "none: SELECT port, speed * 2 AS twice FROM this WHERE speed = 40\n    says: '{port}: {twice:.1f}'"
    )
    said = ports.build()
    assert said.status == 1
    assert f"{place}:5:5: staging.ports: none: SELECT" in said.err
    assert "\n       eth1: 80.0\n" in said.err
    check(ports, "check: speed < 40 or speed is null\n    says: '{port} is fast'")
    assert "eth1 is fast" in ports.build().err


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("{prt} is fast", "`says` names prt, which is no column of the model"),
        ("{port!r} is fast", "`says` cannot be filled: a field is {column}"),
        ("{speed:>10} is fast", "`says` cannot be filled: a field is {column}"),
        ("", "`says` is one sentence"),
    ],
)
def test_a_message_that_cannot_be_filled_is_an_error(ports: Tiny, says: str, error: str) -> None:
    place = check(ports, f"warn: speed < 40\n    says: '{says}'")
    said = ports.build()
    assert said.status == 1
    assert said.err.lstrip().count(place) == 1
    assert error in said.err
