"""Column lineage: each form of SQL by hand, whole paths, the command. The site resolves every shipped column."""

from __future__ import annotations

import json

import pytest
from sqlglot import exp, parse_one
from sqlglot.lineage import lineage as slow_lineage

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.base.errors import ModelError
from warehouse.engine.tree import AGGREGATES
from warehouse.graph.syntax import schema_of
from warehouse.lineage.column_lineage import Columns
from warehouse.lineage.select_steps import ROWS, Block, Node, blocks_of
from warehouse.project.project import Project

RELATIONS = {"s.t": ["a", "b", "c", "l", "p"], "s.u": ["a", "d"]}

# SELECT: {column: "kind inputs"}; the inputs in the order in which they are named
COLUMNS = {
    "SELECT a FROM s.t": {"a": "copied s.t.a"},
    "SELECT A FROM S.T": {"a": "copied s.t.a"},
    "SELECT a + b AS x, a + 1 AS y FROM s.t": {"x": "computed s.t.a s.t.b", "y": "computed s.t.a"},
    "SELECT sum(a) AS x, sum(a) / b AS y FROM s.t GROUP BY b": {"x": "aggregated s.t.a", "y": "aggregated s.t.a s.t.b"},
    "SELECT count(*) FILTER (WHERE a > 0) AS n FROM s.t": {"n": "aggregated s.t.* s.t.a"},
    "SELECT * EXCLUDE (a) FROM s.u": {"d": "copied s.u.d"},
    "SELECT * REPLACE (a + 1 AS a) FROM s.u": {"a": "computed s.u.a", "d": "copied s.u.d"},
    "SELECT v.*, t.b FROM s.t JOIN s.u AS v ON true": {"a": "copied s.u.a", "d": "copied s.u.d", "b": "copied s.t.b"},
    "WITH q (y) AS (SELECT a FROM s.t) SELECT y FROM q": {"y": "copied q.y"},
    "SELECT x FROM (SELECT a FROM s.t) AS q (x)": {"x": "copied q.x"},
    "SELECT x FROM (VALUES (1), (2)) AS v (x)": {"x": "copied v.x"},
    "SELECT a FROM s.t UNION ALL SELECT d + 1 FROM s.u": {"a": "copied s.t.a; computed s.u.d"},
    "SELECT 1 AS a, 2 AS d UNION ALL BY NAME SELECT * FROM s.u": {
        "a": "literal; copied s.u.a", "d": "literal; copied s.u.d"
    },
    "SELECT k, sum(v) AS x FROM s.t UNPIVOT (v FOR k IN (a, b AS 'of b')) GROUP BY k": {
        "k": "copied t.k", "x": "aggregated t.v"
    },
    "SELECT * FROM s.u PIVOT (sum(d) FOR a IN (1, 2))": {"1": "copied u.1", "2": "copied u.2"},
    "SELECT a, d FROM s.t FULL JOIN s.u USING (a)": {"a": "computed s.t.a s.u.a", "d": "copied s.u.d"},
    "SELECT a + 1 AS x, x * b AS y FROM s.t": {"x": "computed s.t.a", "y": "computed s.t.a s.t.b"},
    "SELECT lag(a) OVER (PARTITION BY b ORDER BY c) AS x FROM s.t": {"x": "computed s.t.a s.t.b s.t.c"},
    "SELECT sum(a) OVER (PARTITION BY b) AS x FROM s.t": {"x": "aggregated s.t.a s.t.b"},
    "SELECT list_filter(l, LAMBDA a: a > b) AS x FROM s.t": {"x": "computed s.t.l s.t.b"},
    "SELECT p.f AS x FROM s.t": {"x": "copied s.t.p"},
    "SELECT unnest(l) AS x FROM s.t": {"x": "computed s.t.l"},
    "SELECT x FROM s.t, unnest(l) AS v (x)": {"x": "copied v.x"},
    "SELECT r.n FROM s.t, range(t.a) AS r (n)": {"n": "copied r.n"},
    "SELECT (SELECT max(d) FROM s.u) AS x FROM s.t": {"x": "aggregated subquery:1._col_0"},
    "SELECT a IN (SELECT d FROM s.u) AS x FROM s.t": {"x": "computed s.t.a subquery:1.d"},
    "SELECT count(t) AS n FROM s.t": {"n": "aggregated s.t.*"},
    "SELECT a FROM s.t JOIN s.u USING (a)": {"a": "copied s.t.a"},
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r": {"n": "copied r.n"},
}  # fmt: skip


SCHEMA = schema_of({name: dict.fromkeys(columns, "BIGINT") for name, columns in RELATIONS.items()})


def walked(sql: str) -> dict[str, Block]:
    return blocks_of("m", sql, SCHEMA, RELATIONS, "m.sql")


def said(block: Block) -> dict[str, str]:
    return {
        name: "; ".join(" ".join([step.kind, *map(str, step.inputs)]) for step in steps)
        for name, steps in block.columns.items()
    }


def test_the_columns_of_a_select() -> None:
    assert {sql: said(walked(sql)[""]) for sql in COLUMNS} == COLUMNS


# SELECT: what decides its rows
DECIDERS = {
    "SELECT a FROM s.t WHERE b > 1 AND c = 2": ["filter s.t.b s.t.c"],
    "SELECT a FROM s.t GROUP BY a HAVING max(b) > 1": ["filter s.t.b", "group s.t.a"],
    "SELECT a + b AS x, max(c) AS y FROM s.t GROUP BY ALL": ["group s.t.a s.t.b"],
    "SELECT a + b AS x, max(c) AS y FROM s.t GROUP BY 1": ["group s.t.a s.t.b"],
    "SELECT t.a FROM s.t JOIN s.u ON u.a = t.a AND u.d > t.b": ["join s.u.a s.t.a s.u.d s.t.b"],
    "SELECT t.b FROM s.t JOIN s.u USING (a)": ["join s.t.a s.u.a"],
    "SELECT a FROM s.t QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1": ["filter s.t.b s.t.c"],
    "SELECT DISTINCT a, b FROM s.t": ["distinct s.t.a s.t.b"],
    "SELECT DISTINCT ON (b) a FROM s.t": ["distinct s.t.b"],
    "SELECT a FROM s.t ORDER BY b LIMIT 3": ["limit s.t.b"],
    "SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM s.u WHERE u.d = t.c)": ["filter subquery:1.1"],
    "SELECT a FROM s.t UNION SELECT d FROM s.u": ["union s.t.a s.u.d"],
    "SELECT a FROM s.t ORDER BY b": [],
}


def test_what_decides_the_rows_of_a_select() -> None:
    for sql, expected in DECIDERS.items():
        found = walked(sql)[""].deciders
        assert [" ".join([one.kind, *map(str, one.inputs)]) for one in found] == expected


# SELECT: the columns of blocks inside it
BLOCKS = {
    "WITH q AS (SELECT a AS x FROM s.t), r AS (WITH q AS (SELECT d AS x FROM s.u) SELECT x FROM q)"
    " SELECT q.x, r.x AS y FROM q, r": {
        "": {"x": "copied q.x", "y": "copied r.x"},
        "r": {"x": "copied q (2).x"},  # the nearer one of two with one name
        "q (2)": {"x": "copied s.u.d"},
    },
    "SELECT x, k, v FROM s.t AS o UNPIVOT ((v, w) FOR k IN ((a, b), (c, l))) AS z (x)": {
        "z": {"x": "copied s.t.p", "k": "literal", "v": "computed s.t.a s.t.c", "w": "computed s.t.b s.t.l"}
    },
    "WITH q AS (SELECT a, b, c FROM s.t) SELECT * FROM q PIVOT (sum(b) FOR a IN (1, 2)) AS z": {
        "z": {"c": "copied q.c", "1": "aggregated q.b q.a", "2": "aggregated q.b q.a"}
    },
}


def test_the_columns_of_blocks_inside_a_select() -> None:
    for sql, expected in BLOCKS.items():
        found = walked(sql)
        assert {name: said(found[name]) for name in expected} == expected
    assert [(step.kind, step.inputs) for step in found["z"].deciders] == [("group", (Node("m", "q", "c"),))]
    found = walked("SELECT a,\n(SELECT max(d) FROM s.u WHERE u.a = t.b) AS x\nFROM s.t")
    assert [one.column for one in found["subquery:2"].deciders[0].inputs] == ["a", "b"]
    found = walked("SELECT p, k, v\nFROM s.t\nUNPIVOT (v FOR k IN (a,\nb AS 'of b'))")
    assert {step.place for steps in found["t"].columns.values() for step in steps} == {"m.sql:3"}


def test_what_is_not_known_is_an_error_with_its_file() -> None:
    for sql, message in (
        ("SELECT\n  nothing FROM s.t", "m.sql:2: Column 'nothing' could not be resolved"),
        ("SELECT a FROM s.t\nJOIN s.nowhere USING (a)", "m.sql:2: no relation s.nowhere"),
        ("SELECT a FROM", "m.sql:1"),
        ("CREATE TABLE x AS SELECT 1", "m.sql:1: lineage does not know CREATE as a query"),
        ("SELECT min(COLUMNS('a|b')) FROM s.t", "m.sql:1: lineage does not know COLUMNS: name the columns"),
        ("SELECT a FROM s.t UNION ALL BY NAME SELECT d, a FROM s.u", "m.sql:1: UNION BY NAME of other columns"),
        ("PIVOT s.t ON a USING sum(b)", "m.sql:1: lineage does not know PIVOT"),
        ("SELECT * RENAME (a AS z) FROM s.t", "m.sql:1: lineage does not know a star with a pattern or RENAME"),
    ):
        with pytest.raises(ModelError) as caught:
            walked(sql)
        assert str(caught.value).startswith(message)


def test_every_aggregate_is_known_as_one() -> None:
    two = ("regr_", "co", "arg_", "quantile", "percentile", "approx_quantile")
    for name in sorted(AGGREGATES):
        given = "a, 0.5" if name.startswith(two) and name != "count" else "a"
        [step] = walked(f"SELECT {name}({given}) AS x FROM s.t")[""].columns["x"]
        assert step.kind == "aggregated", name


# a path from end to end ---------------------------------------------------------------------


@pytest.fixture
def fleet(tiny: Tiny) -> Tiny:
    tiny.model(
        "metrics.total",
        "WITH fast AS (\n  SELECT speed, port\n  FROM staging.ports\n  WHERE speed > 10\n)\n"
        "SELECT 'all' AS name, sum(speed) AS speed, count(*) AS ports\nFROM fast",
        {"name": "VARCHAR", "speed": "BIGINT", "ports": "BIGINT"},
    )
    return tiny


def test_a_path_names_each_step_with_file_line_and_kind_and_what_decides_its_rows(
    fleet: Tiny, command: Command
) -> None:
    summary = """\
metrics.total.speed  aggregated models/metrics/total.sql:14
    sum(speed) AS speed

reads
  staging.ports: speed

metrics.total.speed comes from
  reference.speeds: speed
    data/speeds.csv
  by way of staging.ports

"""
    steps = """\
metrics.total.speed  aggregated models/metrics/total.sql:14
└ fast.speed  copied models/metrics/total.sql:10
  └ staging.ports.speed  copied models/staging/ports.sql:8
    └ reference.speeds.speed  data/speeds.csv

rows decided by
  filter   models/metrics/total.sql:12  staging.ports.speed
"""
    following = f"Next:  warehouse lineage -t {fleet.target} metrics.total.speed --steps\n"
    for more, end in ((), following), (("--steps",), steps):
        said = command("lineage", "metrics.total.speed", *more, "-t", fleet.target)
        assert (said.status, said.out) == (0, summary + end)

    told = json.loads(command("lineage", "total.ports", "--json", "-t", fleet.target).out)
    place, inputs = "models/metrics/total.sql", ["metrics.total/fast.*"]
    first = {"column": "metrics.total.ports", "kind": "aggregated", "place": f"{place}:14", "inputs": inputs}
    assert (told["column"], told["steps"][0]) == ("metrics.total.ports", first)
    assert told["ends"] == ["reference.speeds.*"]
    assert told["rows"] == [{"how": "filter", "place": f"{place}:12", "columns": ["staging.ports.speed"]}]
    [step] = json.loads(command("lineage", "total.name", "--json").out)["steps"]
    assert (step["kind"], step["place"]) == ("literal", "models/metrics/total.sql:14")


def test_a_column_that_is_not_there_is_a_sentence(fleet: Tiny, command: Command) -> None:
    for name, message in (
        ("metrics.total.sped", "error: metrics.total has no column sped nearest: speed"),
        ("metrics.totl.speed", "error: no model metrics.totl nearest: metrics.total"),
        ("reference.speeds.zz", "error: reference.speeds has no column zz it has port, speed"),
    ):
        done = command("lineage", name)
        assert (done.status, done.err_text) == (2, message)


def test_what_decides_the_rows_of_a_subquery_decides_those_around_it(tiny: Tiny) -> None:
    where = "WHERE EXISTS (SELECT 1 FROM staging.ports AS p WHERE p.speed = s.speed)"
    tiny.model("metrics.total", f"SELECT port FROM reference.speeds AS s {where}", {"port": "VARCHAR"})
    [found] = Columns(tiny.project).trace("metrics.total", "port").deciders
    assert [str(one) for one in found.inputs] == ["staging.ports.speed", "reference.speeds.speed"]


def test_a_column_of_a_python_model_is_made_of_all_that_it_declares_to_read(tiny: Tiny) -> None:
    head = "about: A model.\nreads: [staging.ports]\ngrain: [port]\ncolumns:\n  port: VARCHAR"
    tiny.write("models/metrics/twice.py", f'"""---\n{head}\n---"""\ndef model(ports):\n    return ports\n')
    trace = Columns(tiny.project).trace("metrics.twice", "port")
    [origin] = trace.origins[trace.column]
    assert (origin.kind, origin.place) == ("computed", "models/metrics/twice.py:3")
    assert [str(one) for one in trace.ends] == ["reference.speeds.port", "reference.speeds.speed"]


def test_the_columns_are_those_that_sqlglot_finds_its_slow_way() -> None:
    """An independent computation, for a model that it understands whole."""
    project, name = Project.open(), "metrics.uplink_balance"
    shipped = Columns(project)
    tree = parse_one(project.render(project.models[name]), read="duckdb")
    for column in project.models[name].columns:
        theirs = set()
        for node in slow_lineage(column.name, tree.copy(), schema=shipped._schema, dialect="duckdb").walk():
            if isinstance(node.expression, exp.Table) and node.expression.db:
                theirs.add((f"{node.expression.db}.{node.expression.name}", node.name.rpartition(".")[2]))
        inside = [given for origin in shipped.origins(Node(name, "", column.name)) for given in origin.inputs]
        found = {(one.relation, one.column) for one in shipped._outside_of(inside) if one.column != ROWS}
        assert found == theirs, column.name
