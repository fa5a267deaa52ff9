"""Each kind of check as SQL: the rows that fail, and the relations that are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.tiny import Tiny
from warehouse.base.errors import ModelError
from warehouse.project.check_language import all_checks, ascent, compile_check, relations_of
from warehouse.project.contract import Check
from warehouse.project.model import Model

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT", "seen": "TIMESTAMP"}
ROWS = "('a', 1, TIMESTAMP '2024-01-01 12:00'), ('b', 2, NULL), ('b', 3, NULL), (NULL, 4, NULL)"
OTHERS = "('a', 1, TIMESTAMP '2024-01-01 12:00'), ('c', 5, NULL), ('b', 5, TIMESTAMP '2024-01-01 10:00')"


@pytest.fixture
def model(tiny: Tiny) -> Model:
    tiny.model("staging.ports", "SELECT port, speed, seen FROM reference.speeds", COLUMNS, "grain: [port, speed]")
    return tiny.project.models["staging.ports"]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA staging; CREATE SCHEMA metrics; SET TimeZone = 'Asia/Shanghai'")
        for name, rows in (("staging.ports", ROWS), ("metrics.other", OTHERS)):
            connection.execute(f"CREATE TABLE {name} AS FROM (VALUES {rows}) AS t(port, speed, seen)")
        connection.execute("CREATE TABLE metrics.late AS SELECT now()::TIMESTAMP AS seen")
        yield connection


def check_of(text: str) -> Check:
    place: Any = None
    return Check(text, place)


FAILING = [
    ("unique(port)", [("b", 2)]),
    ("unique(port, speed)", []),
    ("not null(speed)", []),
    ("not null(speed, port)", [(None, 4)]),
    ("references(port) -> metrics.other(port)", []),
    ("references(port, speed) -> metrics.other(port, speed)", [("b", 2), ("b", 3)]),
    ("referenced(port) by metrics.other(port)", [("c", 5)]),
    ("referenced(port, speed) by metrics.other(port, speed)", [("b", 5), ("c", 5)]),
    ("total(speed) = total(metrics.other.speed)", [(10, 11)]),
    ("total(speed) = total(metrics.other.speed where port <> 'c')", [(10, 6)]),
    ("total(speed + 0.25) = total(metrics.other.speed)", []),
    ("total(speed) = total(metrics.other.speed) by port", [("c", 0, 5), (None, 4, 0)]),
    ("total(speed) = total(metrics.other.speed where port <> 'c') by port", [(None, 4, 0)]),
    ("latest(seen) within 1 second of latest(metrics.other.seen)", []),
    ("latest(seen) within 2 hours of now()", "one"),
    ("rows >= 1", []),
    ("rows = 4", []),
    ("rows > 4", [(4,)]),
    ("rows between 5 and 9", [(4,)]),
    ("none: SELECT speed FROM this WHERE speed > 3", [(4,)]),
    ("speed < 3 or port is null", [("b", 3)]),
    ("port < 'b'", [("b", 2), ("b", 3), (None, 4)]),
]


def test_the_check_of_the_grain_comes_first_and_finds_repeated_and_missing_keys(
    tiny: Tiny, engine: duckdb.DuckDBPyConnection
) -> None:
    tiny.model("staging.ports", "SELECT port, speed, seen FROM reference.speeds", COLUMNS, "checks:", "  - rows >= 1")
    model = tiny.project.models["staging.ports"]
    grain, listed = all_checks(model)
    assert (grain.text, grain.place.line, listed.text) == ("grain(port)", 1, "rows >= 1")
    assert sorted(engine.execute(compile_check(grain, model).failing).fetchall(), key=str) == [("b", 2), (None, 1)]


@pytest.mark.parametrize(("text", "expected"), FAILING, ids=[text for text, _ in FAILING])
def test_the_failing_rows_of_a_check(
    model: Model, engine: duckdb.DuckDBPyConnection, text: str, expected: list[Any] | str
) -> None:
    found = engine.execute(compile_check(check_of(text), model).failing).fetchall()
    if expected == "one":
        assert len(found) == 1
    else:
        width = len(expected[0]) if expected else 2
        rows = [row[:width] for row in found]
        assert sorted(rows, key=str) == sorted(expected, key=str)


def test_latest_times_are_compared_both_ways_and_need_a_row(model: Model, engine: duckdb.DuckDBPyConnection) -> None:
    def fails(other: str | None, mine: str | None, within: str = "2 hours") -> bool:
        engine.execute("CREATE OR REPLACE TABLE metrics.times AS SELECT CAST(? AS TIMESTAMP) AS seen", [other])
        engine.execute("CREATE OR REPLACE TABLE staging.mine AS SELECT CAST(? AS TIMESTAMP) AS seen", [mine])
        text = f"latest(seen) within {within} of latest(metrics.times.seen)"
        sql = compile_check(check_of(text), model._replace(name="staging.mine")).failing
        return bool(engine.execute(sql).fetchall())

    noon = "2024-01-01 12:00"
    assert not fails(noon, "2024-01-01 10:00")
    assert not fails(noon, "2024-01-01 14:00")
    assert fails(noon, "2024-01-01 09:59")
    assert fails(noon, "2024-01-01 14:01")
    assert fails(noon, None)
    assert not fails(None, None)
    assert fails(noon, "2024-01-01 10:00", "119 minutes")


RELATIONS = [
    ("unique(port)", []),
    ("references(port) -> metrics.other(port)", ["metrics.other"]),
    ("referenced(port) by metrics.other(port)", ["metrics.other"]),
    ("total(speed) = total(metrics.other.speed) by port", ["metrics.other"]),
    ("latest(seen) within 1 day of latest(metrics.other.seen)", ["metrics.other"]),
    ("latest(seen) within 1 day of now()", []),
    ("none: FROM this JOIN raw.files JOIN metrics.other JOIN raw.files", ["metrics.other", "raw.files"]),
    ("speed < 3", []),
]


@pytest.mark.parametrize(("text", "relations"), RELATIONS, ids=[text for text, _ in RELATIONS])
def test_the_relations_of_a_check(text: str, relations: list[str]) -> None:
    assert list(relations_of(text)) == relations


def test_conditions_are_compiled_for_one_scan(model: Model) -> None:
    assert compile_check(check_of("speed < 3"), model).predicate == "speed < 3"
    assert (
        compile_check(check_of("not null(port, speed)"), model).predicate
        == '"port" IS NOT NULL AND "speed" IS NOT NULL'
    )


@pytest.mark.parametrize(
    "text",
    [
        "unique(prot)",
        "not null(prot)",
        "references(prot) -> metrics.other(port)",
        "total(speed) = total(metrics.other.speed) by prot",
        "latest(prot) within 1 day of now()",
        "references(port, speed) -> metrics.other(port)",
    ],
)
def test_an_unknown_column_or_an_odd_pair_is_an_error(model: Model, text: str) -> None:
    with pytest.raises(ModelError, match=r"prot|refers 2 columns to 1"):
        compile_check(check_of(text), model)


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        ("('a', 1), ('a', 2), ('b', 1)", 0),
        ("('a', 1), ('a', 1)", 1),
        ("('b', 1), ('a', 2)", 1),
        ("('a', 2), ('a', 1)", 1),
        ("('a', 1), ('b', NULL)", 1),
        ("(NULL, 1)", 1),
    ],
)
def test_the_grain_check_finds_rows_that_do_not_ascend(
    model: Model, engine: duckdb.DuckDBPyConnection, rows: str, fails: int
) -> None:
    check = ascent(model)
    engine.execute(f"CREATE OR REPLACE TABLE staging.sorted AS FROM (VALUES {rows}) AS t(port, speed)")
    sql = f"SELECT count(*) FROM {check.rows.replace('staging.ports', 'staging.sorted')} WHERE {check.fails}"
    assert engine.execute(sql).fetchall() == [(fails,)]
