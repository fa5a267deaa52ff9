"""Checks as SQL: the grain, the conditions of one scan, and the relations that are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.tiny import Tiny
from warehouse.project.check_language import all_checks, ascent, compile_check, relations_of
from warehouse.project.contract import Check
from warehouse.project.model import Model

COLUMNS = {"port": "VARCHAR", "speed": "BIGINT", "seen": "TIMESTAMP"}
ROWS = "('a', 1, TIMESTAMP '2024-01-01 12:00'), ('b', 2, NULL), ('b', 3, NULL), (NULL, 4, NULL)"


@pytest.fixture
def model(tiny: Tiny) -> Model:
    tiny.model("staging.ports", "SELECT port, speed, seen FROM reference.speeds", COLUMNS, "grain: [port, speed]")
    return tiny.project.models["staging.ports"]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA staging")
        connection.execute(f"CREATE TABLE staging.ports AS FROM (VALUES {ROWS}) AS t(port, speed, seen)")
        yield connection


def check_of(text: str) -> Check:
    place: Any = None
    return Check(text, place)


def test_the_check_of_the_grain_comes_first_and_finds_repeated_and_missing_keys(
    tiny: Tiny, engine: duckdb.DuckDBPyConnection
) -> None:
    tiny.model("staging.ports", "SELECT port, speed, seen FROM reference.speeds", COLUMNS, "checks:", "  - rows >= 1")
    model = tiny.project.models["staging.ports"]
    grain, listed = all_checks(model)
    assert (grain.text, grain.place.line, listed.text) == ("grain(port)", 1, "rows >= 1")
    assert sorted(engine.execute(compile_check(grain, model).failing).fetchall(), key=str) == [("b", 2), (None, 1)]


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
