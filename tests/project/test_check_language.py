"""Checks: each kind passes or reports failing rows; an error stops the build, a warning does not."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.errors import ModelError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import load_graph

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT"}


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


CASES: dict[str, list[str]] = {
    # check -> its failing rows
    "UNIQUE(port)": [],
    "unique(speed)": ["40 2"],
    "not null(port)": [],
    "not null(port, speed)": ["eth3 None"],
    "references(port) -> staging.ports(port)": [],  # a check may name its own model
    "references(port) -> staging.known(port)": ["eth1 40", "eth2 40", "eth3 None"],
    "references(port, speed) -> staging.known(port, speed)": ["eth1 40", "eth2 40"],  # NULL references nothing
    "referenced(port) by staging.more(port)": ["eth9 None"],
    "referenced(port, speed) by staging.more(port, speed)": [],
    "total(speed * 2 - speed) = total(reference.speeds.speed)": [],
    "total(speed) = total(staging.known.speed)": ["90 10"],
    "total(speed) = total(reference.speeds.speed) by port": [],
    "total(speed) = total(staging.known.speed) by port": ["eth1 40 0", "eth2 40 0"],  # eth3: NULL counts as 0
    "total(speed) = total(reference.speeds.speed WHERE (speed > 0) OR speed IS NULL) by port": [],
    "total(speed) = total(reference.speeds.speed where speed < 40) by port": ["eth1 40 0", "eth2 40 0"],
    "rows = 3": ["4"],
    "rows between 5 and 9": ["4"],
    "none: SELECT port FROM this WHERE speed = 40": ["eth1", "eth2"],
    "none: SELECT *, 1 AS speed FROM this WHERE speed = 10": ["eth0 10 1"],  # two columns of one name
    "none: WITH a AS (SELECT max(speed) AS m FROM this) SELECT * FROM a, reference.speeds WHERE speed > m": [],
    "speed between 10 and 40 or speed is null": [],
    "speed < 40": ["eth1 40", "eth2 40", "eth3 None"],  # NULL is not true
}


def test_each_form_finds_its_failing_rows_and_a_warning_stops_no_build(ports: Tiny, command: Command) -> None:
    check(ports, *(f'"warn: {text}"' if rows else text for text, rows in CASES.items()))
    said = ports.build()
    assert said.status == 0, said.err
    results = ports.ask("SELECT check_text, severity, status, failures FROM meta.checks WHERE model = 'staging.ports'")
    assert results[0] == ("grain(port)", "error", "passed", 0)
    assert results[1:] == [
        (text, "warn" if rows else "error", "warned" if rows else "passed", len(rows)) for text, rows in CASES.items()
    ]
    shown: dict[str, list[str]] = {text: [] for text in CASES}
    for text, row in ports.ask("SELECT check_text, failing_row FROM meta.failures ORDER BY check_text, position"):
        shown[str(text)].append(" ".join(str(value) for value in json.loads(str(row)).values()))
    assert shown == CASES
    assert "warn   staging.ports: not null(port, speed): 1 row" in said.err
    told = " ".join(command("show", "staging.ports", "-t", ports.target).out.split())
    assert "warned 3 speed < 40" in told
    assert "fails speed < 40; meta.failures has more port eth1, speed 40 port eth2, speed 40" in told


@pytest.mark.parametrize(
    ("text", "grain", "what", "rows"),
    [
        ("speed < 40", "port", "5:5: staging.ports: speed < 40: 3 rows fail", ["eth1  40", "eth2  40", "eth3  None"]),
        ("rows > 0", "speed", "1: staging.ports: grain (speed) is not unique: 2 rows fail", ["40  2", "None  1"]),
    ],
)
def test_a_check_that_fails_shows_its_rows_and_publishes_nothing(
    ports: Tiny, text: str, grain: str, what: str, rows: list[str]
) -> None:
    assert ports.build().status == 0
    before = ports.ask("FROM meta.build")
    shown = check(ports, text, grain=grain)
    said = ports.build()
    assert said.status == 1
    head, *told = said.err[said.err.index("error: ") :].splitlines()
    assert head == f"error: {shown}:{what}"
    assert [line.strip() for line in told] == rows
    assert ports.ask("FROM meta.build") == before


def test_five_rows_are_shown_of_many_and_fifty_are_kept(tiny: Tiny) -> None:
    tiny.reference("speeds", COLUMNS, *(f"eth{number},0" for number in range(1000)))
    check(tiny, "'warn: speed > 0'")
    assert tiny.build().status == 0
    assert tiny.ask("SELECT count(*), max(position) FROM meta.failures") == [(50, 50)]
    check(tiny, "speed > 0")
    said = tiny.build()
    assert "1,000 rows fail" in said.err
    assert said.err.count("  0\n") == 5


def test_checks_of_a_partition_a_view_and_a_keyword_name_what_fails(tiny: Tiny) -> None:
    """The check of a view runs in every build."""
    view = ("materialize: view", "checks:", "  - rows = 2")
    tiny.model("metrics.view", "SELECT port FROM staging.ports", {"port": "VARCHAR"}, *view)
    assert tiny.build().status == 0
    assert tiny.ask("SELECT status FROM meta.checks WHERE model = 'metrics.view'") == [("passed",)]
    tiny.reference("speeds", COLUMNS, "eth0,10")
    said = tiny.build()
    assert said.status == 1
    assert "metrics.view: rows = 2: 1 row" in said.err
    tiny.reference("speeds", COLUMNS, "eth0,10", "eth1,10")
    shown = tiny.model(
        "metrics.hour",
        "SELECT hour_utc, count(*) AS files FROM raw.files WHERE format IS NOT NULL GROUP BY hour_utc",
        {"hour_utc": "TIMESTAMP", "files": "BIGINT"},
        "partition: hour_utc",
        "checks:",
        "  - hour_utc < TIMESTAMP '2024-05-23 17:00:00'",
    )
    assert "metrics.hour in 2024-05-23T17: hour_utc < TIMESTAMP" in tiny.build().err
    (tiny.folder / shown).unlink()
    select = "SELECT unnest([1, 1]) AS \"order\", 'a' AS name"
    tiny.model("metrics.ordered", select, {"order": "BIGINT", "name": "VARCHAR"}, "checks:", "  - not null(order)")
    assert "metrics.ordered: grain (order) is not unique: 1 row fails" in tiny.build().err


AGES = {
    "latest(end) within 90 minutes of latest(reference.speeds.end)": 0,
    "latest(end) within 89 minutes of latest(reference.speeds.end)": 1,
    "LATEST(end) WITHIN 1 hour OF LATEST(reference.speeds.end)": 1,
    "latest(end) within 1 day of latest(metrics.total.end)": 0,  # a table without rows
    "latest(end) within 1 day of now()": 1,
    "latest(end) within 99999 days of now()": 0,
}


def test_recent_checks_the_age_of_the_latest_row(tiny: Tiny) -> None:
    columns = {"port": "VARCHAR", "end": "TIMESTAMP"}  # a keyword of SQL
    tiny.reference("speeds", columns, "eth0,2024-05-23 17:30:00", "eth1,2024-05-23 15:00:00")
    moved = 'SELECT port, "end" - INTERVAL 90 MINUTES AS "end" FROM reference.speeds'
    none = 'SELECT port, "end" FROM reference.speeds WHERE port IS NULL'
    tiny.model("staging.ports", moved, columns, "checks:", *(f"  - 'warn: {text}'" for text in AGES))
    tiny.model("metrics.total", none, columns)
    text = "latest(end) within 1 day of latest(staging.ports.end)"
    tiny.model("metrics.none", none, columns, "checks:", f"  - warn: {text}", "    says: 'no row until {other}'")
    assert tiny.build().status == 0
    found = "SELECT check_text, failures FROM meta.checks WHERE model = '{}' AND severity = 'warn'"
    assert tiny.ask(found.format("staging.ports")) == list(AGES.items())
    assert [failures for _, failures in tiny.ask(found.format("metrics.none"))] == [1], "no row is not recent"
    said = "SELECT sentence FROM meta.failures WHERE model = 'metrics.none'"
    assert tiny.ask(said) == [("no row until 2024-05-23 16:00:00",)]


# mistakes ----------------------------------------------------------------------------------------

NONE = "no relation staging.prts"
INVALID = {
    # check -> error
    "unique(prt)": "the check names prt, which is no column of the model",
    "references(port, speed) -> reference.speeds(port)": "the check refers 2 columns to 1",
    "references(port) -> staging.prts(port)": f"{NONE}\nnearest: staging.ports",
    "none: SELECT * FROM staging.prts": NONE,
    "total(speed) = total(reference.speeds.speed where prt = 'a')": "",
    "spede > 0": "",
    "speed >": "",
    "none: SELECT spd FROM this": "",
}
"""An empty error is the usual one: the check is not valid."""
UNSAID = {
    "{prt} is fast": "`says` names prt, which is no column of the model",
    "{port!r} is fast": "`says` cannot be filled: a field is {column}",
}


def test_an_invalid_check_or_sentence_is_an_error_at_its_line(ports: Tiny) -> None:
    with closing(DuckDBEngine(memory_bytes=2**29, spill=ports.base)) as engine:
        for text, what in INVALID.items():
            shown = check(ports, "speed > 0 or speed is null", text)
            with pytest.raises(ModelError) as raised:
                load_graph(ports.project, engine)
            assert str(raised.value).startswith(f"{shown}:6:5: {what or f'the check `{text}` is not valid: '}"), text
            assert "spede" not in text or "nearest: speed" in str(raised.value)
    for says, what in UNSAID.items():
        shown = check(ports, f"warn: speed < 40\n    says: '{says}'")
        with pytest.raises(ModelError) as raised:
            _ = ports.project.models
        assert str(raised.value).startswith(shown)
        assert what in str(raised.value)
    shown = check(ports, "speed > 0 or speed is null", "speed > 'a'")  # invalid for the rows
    assert f"error: {shown}:6:5: the check `speed > 'a'` is not valid" in ports.build().err


def test_a_check_says_in_a_sentence_what_fails_and_another_sentence_rebuilds_nothing(
    ports: Tiny, command: Command
) -> None:
    check(ports, "warn: speed < 40 or speed is null\n    says: '{port} runs at {speed:,} of 10'")
    said = ports.build()
    assert said.status == 0
    assert "warn   staging.ports: eth1 runs at 40 of 10; eth2 runs at 40 of 10\n" in said.err
    shown = command("show", "staging.ports", "-t", ports.target).out
    assert "meta.failures has more\n  eth1 runs at 40 of 10\n  eth2 runs at 40 of 10\n" in shown
    doctor = command("doctor", "-d", ports.data, "-t", ports.target).out
    assert "  1 warning of checks · warehouse sql -t " in doctor
    check(ports, "warn: speed < 40 or speed is null\n    says: '{port} is fast'")
    assert ports.made() == set()
    assert ports.ask("SELECT sentence FROM meta.failures") == [("eth1 is fast",), ("eth2 is fast",)]
    shown = check(ports, "none: SELECT port, speed * 2 AS twice FROM this WHERE speed = 40\n    says: '{port} is fast'")
    said = ports.build()
    assert said.status == 1
    assert f"{shown}:5:5: staging.ports: " in said.err
    assert "\n       eth1 is fast\n" in said.err
