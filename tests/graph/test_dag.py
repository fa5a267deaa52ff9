"""The DAG: dependencies, selectors, and SQL errors found before a build runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.tiny import Tiny
from warehouse.base.errors import ModelError, SettingsError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.graph.dag import Graph, load_graph, select_models

PORT, NAME = {"port": "VARCHAR"}, {"name": "VARCHAR"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(memory_bytes=2**29, spill=tmp_path_factory.mktemp("spill"))) as engine:
        yield engine


def graph_of(tiny: Tiny, engine: DuckDBEngine) -> Graph:
    return load_graph(tiny.project, engine)


def mistake(tiny: Tiny, engine: DuckDBEngine) -> str:
    with pytest.raises(ModelError) as raised:
        load_graph(tiny.project, engine)
    assert raised.value.exit_status == 1
    return str(raised.value)


@pytest.fixture
def chain(tiny: Tiny) -> Tiny:
    """`staging.ports` -> `topology.a` -> `metrics.b` -> `metrics.total`, and `metrics.alone` beside them."""
    tiny.model("topology.a", "SELECT port FROM staging.ports", PORT)
    tiny.model("metrics.b", "SELECT a.port FROM topology.a AS a", PORT)
    tiny.model("metrics.total", "WITH a AS (FROM metrics.b) SELECT max(port) AS name FROM a", NAME)
    tiny.model("metrics.alone", "SELECT 'x' AS name", NAME)
    return tiny


def test_models_come_after_what_they_and_their_checks_read_and_otherwise_by_name(
    chain: Tiny, engine: DuckDBEngine
) -> None:
    chain.model("metrics.alone", "SELECT 'x' AS name", NAME, "checks:", "  - references(name) -> metrics.b(port)")
    order = graph_of(chain, engine).order
    assert order == ("staging.ports", "topology.a", "metrics.b", "metrics.alone", "metrics.total")


@pytest.mark.parametrize(
    ("selectors", "models"),
    [
        ((), "metrics.alone metrics.b metrics.total staging.ports topology.a"),
        (("metrics.b",), "metrics.b"),
        (("metrics",), "metrics.alone metrics.b metrics.total"),
        (("*.a*",), "metrics.alone topology.a"),
        (("+metrics.b",), "metrics.b staging.ports topology.a"),
        (("+metrics.b+",), "metrics.b metrics.total staging.ports topology.a"),
        (("metrics", "topology"), "metrics.alone metrics.b metrics.total topology.a"),
        (("metrics.alone, +topology.a",), "metrics.alone staging.ports topology.a"),
    ],
)
def test_a_selector_names_models(chain: Tiny, engine: DuckDBEngine, selectors: tuple[str, ...], models: str) -> None:
    assert select_models(graph_of(chain, engine), selectors) == set(models.split())


def test_an_unmatched_selector_is_an_error_with_the_nearest_name(chain: Tiny, engine: DuckDBEngine) -> None:
    with pytest.raises(SettingsError) as raised:
        select_models(graph_of(chain, engine), ["metrics.totl"])
    assert str(raised.value) == "--select metrics.totl: no model has this name\nnearest: metrics.total"


MISTAKES = {
    # SELECT of models/metrics/total.sql, which begins in line 8 -> place and text of the error
    "SELECT name,\n  spede FROM (SELECT 'a' AS name, 1 AS speed)": ":9:3: no column spede\nnearest: speed",
    "SELECT 'ü' AS name, sped FROM staging.ports": ":8:21: no column sped\nnearest: speed",
    "SELECT p.prt, p.speed FROM staging.ports AS p": ":8:8: no column prt in p\nnearest: port",
    "SELECT 'a' AS name, CAST(speed AS BIGIT) AS speed FROM staging.ports": ":8:35: no type BIGIT\nnearest: BIGINT",
    "SELECT 'a' AS a,\n  max(port) AS b sum(speed) AS c FROM staging.ports": ':9:18: syntax error at or near "sum"',
    "SELECT 'a' AS name, smu(speed) AS speed FROM staging.ports": ":8:21: no function smu\nnearest: sum",
    "SELECT 'a' AS name, port + 1 AS speed FROM staging.ports": ":8:26: No function matches",
    "SELECT 'a' AS name, speed\nFROM staging.prts": ":9:6: no relation staging.prts\nnearest: staging.ports",
    "SELECT 'a' AS name, speed FROM zzz.zzz": ":8:32: no relation zzz.zzz\nsee `warehouse ls`",
    "SELECT 'a' AS name, speed FROM ports": ":8:32: no relation ports\nnearest: staging.ports",
    "SELECT name, speed FROM metrics.total": ":8:25: the models read each other in a circle: metrics.total",
    "SELECT 'a' AS name, 1 AS speed; SELECT 2": ": a model is one SELECT, not several statements",
    "DROP TABLE staging.ports": ":",
    f"SELECT 'a' AS name, {' + '.join('1' * 600)} AS speed": ": it is nested too deeply",
    "SELECT 'a' AS name, 1 AS sped": ":1: the SELECT does not give speed; sped is not in the contract\nnearest: speed",
    "SELECT 1 AS speed, 'a' AS name": ":1: the SELECT gives its columns in another order than the contract: speed",
    "SELECT 'a' AS name, avg(speed) AS speed FROM staging.ports": ":1: the contract has speed as BIGINT, the SELECT",
}  # fmt: skip


@pytest.mark.parametrize("select", MISTAKES, ids=range(len(MISTAKES)))
def test_an_sql_error_is_reported_with_its_place_before_the_build(
    tiny: Tiny, engine: DuckDBEngine, select: str
) -> None:
    shown = tiny.model("metrics.total", select, {"name": "VARCHAR", "speed": "BIGINT"})
    assert mistake(tiny, engine).startswith(shown + MISTAKES[select])


def test_a_model_cannot_have_the_name_of_a_reference_table(tiny: Tiny, engine: DuckDBEngine) -> None:
    tiny.model("reference.speeds", "SELECT 'x' AS name", NAME)
    assert mistake(tiny, engine) == "models/reference/speeds.sql: reference.speeds is a table of data/, too"


BOTH = "{% macro both(a, b) %}{{ a }} || {{ b }}{% endmacro %}{% macro lines() %}1\n{% endmacro %}"
CALLS = {
    "{{ both('port', 'prt') }}": "no column prt\nnearest: port",
    "{{ bth('a') }}": "a macro fails: 'bth' is undefined\nknown macros: both, lines",
    "{{ both('a') }}": "a macro fails: parameter 'b' was not provided",
    "{{ both( }}": "a macro fails: ",
    "{{ lines() }}": "a macro call renders to several lines; it must stay within its own",
    "{{ ''.__class__.__mro__ }}": "a macro fails: ",
}


def test_a_macro_is_expanded_and_errors_keep_their_line(tiny: Tiny, engine: DuckDBEngine) -> None:
    tiny.write("sql/macros/text.sql", BOTH)
    tiny.model("metrics.total", "SELECT\n{{ both('port', 'port') }} AS name\nFROM staging.ports", NAME)
    assert "port || port AS name" in graph_of(tiny, engine).nodes["metrics.total"].sql
    for macro_call, message in CALLS.items():
        shown = tiny.model("metrics.total", f"SELECT\n{macro_call} AS name\nFROM staging.ports", NAME)
        assert mistake(tiny, engine).startswith(f"{shown}:8: {message}")
    tiny.write("sql/macros/text.sql", "\n{% macro both(a %}")
    assert mistake(tiny, engine).startswith("sql/macros/text.sql:2: the macro file fails: ")
