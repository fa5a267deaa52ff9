"""Required relations of a SELECT, compared with its result while each relation is empty."""

from __future__ import annotations

import itertools
import json
import re

import duckdb
import pytest

from tests.tiny import Tiny
from warehouse.engine.tree import AGGREGATES, needs

TABLES = ("s.a", "s.b", "s.c")
SELECTS = {
    "SELECT x FROM s.a": "a",
    "SELECT count(*) AS n FROM s.a GROUP BY ALL": "",
    "SELECT a.x FROM s.a AS a JOIN s.b AS b ON a.x = b.x": "a|b",
    "SELECT a.x FROM s.a AS a LEFT JOIN s.b AS b ON a.x = b.x": "a",
    "SELECT b.x FROM s.a AS a RIGHT JOIN s.b AS b ON a.x = b.x": "b",
    "SELECT a.x FROM s.a AS a FULL JOIN s.b AS b ON a.x = b.x": "a b",
    "SELECT a.x FROM s.a AS a POSITIONAL JOIN s.b AS b": "a b",
    "SELECT a.x FROM s.a AS a SEMI JOIN s.b AS b ON a.x = b.x": "a|b",
    "SELECT a.x FROM s.a AS a ANTI JOIN s.b AS b ON a.x = b.x": "a",
    "SELECT x FROM s.a UNION ALL SELECT x FROM s.b UNION ALL SELECT x FROM s.c": "a b c",
    "SELECT x FROM s.a EXCEPT SELECT x FROM s.b": "a",
    "SELECT x FROM s.a UNION ALL BY NAME SELECT 1 AS y, x FROM s.b": "a b",
    "SELECT count(*) AS n FROM s.a": "",
    "SELECT x, count(*) AS n FROM s.a GROUP BY x": "a",
    "SELECT max(x) AS x FROM s.a HAVING count(*) > 0": "a",
    "SELECT max(x) AS x FROM s.a HAVING count(*) = 2": "a",
    "SELECT max(x) AS x FROM s.a HAVING count(*) = 0": "",
    "SELECT max(x) AS x FROM s.a HAVING count(*) > -1": "",
    "SELECT max(x) AS x FROM s.a HAVING count(x) > 0": "",
    "SELECT max(x) AS x FROM s.a HAVING count(*) FILTER (WHERE x > 9) = 0": "",
    "SELECT x, count(*) AS n FROM s.a GROUP BY ALL": "a",
    "SELECT x, count(*) AS n FROM s.a GROUP BY ROLLUP (x)": "",
    "SELECT x FROM s.a WHERE x > (SELECT coalesce(max(x), 0) FROM s.b)": "a",
    "WITH q AS (SELECT x FROM s.a), r AS (SELECT x FROM q JOIN s.b USING (x)) SELECT x FROM r": "a|b",
    "WITH q AS (SELECT sum(x) AS x FROM s.a) SELECT x FROM q": "",
    "SELECT x FROM (SELECT x FROM s.a UNION ALL SELECT x FROM s.b) AS u JOIN s.c AS c USING (x)": "a b|c",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT x FROM r": "",
    "SELECT name, y FROM s.a UNPIVOT (y FOR name IN (x))": "a",
    "WITH q AS (SELECT x FROM s.a JOIN s.b USING (x)) SELECT y FROM q UNPIVOT (y FOR k IN (x AS 'one'))": "a|b",
    "SELECT * FROM s.a PIVOT (count(*) FOR x IN (7))": "",
}


def test_an_empty_required_relation_gives_no_rows() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA s")
    required = {}
    for select in SELECTS:
        [(tree,)] = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [select]).fetchall()
        required[select] = needs(json.loads(tree))
    said = {
        select: {frozenset(f"s.{name}" for name in group.split()) for group in groups.split("|") if group}
        for select, groups in SELECTS.items()
    }
    assert required == said
    for full in itertools.product((True, False), repeat=len(TABLES)):
        for name, is_full in zip(TABLES, full, strict=True):
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT 7 AS x WHERE {is_full}")
        empty = {name for name, is_full in zip(TABLES, full, strict=True) if not is_full}
        for select in (one for one, groups in required.items() if any(group <= empty for group in groups)):
            assert connection.execute(select).fetchall() == [], (select, empty)


def test_all_aggregates_of_the_engine_are_known() -> None:
    rows = (
        duckdb.connect()
        .execute("SELECT DISTINCT function_name, function_type, macro_definition FROM duckdb_functions()")
        .fetchall()
    )
    known = {name for name, kind, _ in rows if kind == "aggregate"}
    over = {name for name, _, text in rows if text and set(re.findall(r"(\w+)\(", text.lower())) & known}

    assert known | over <= AGGREGATES


def test_a_model_without_raw_files_has_no_part_and_is_empty_until_they_are_there(tiny: Tiny) -> None:
    columns = {"line": "INTEGER", "n": "BIGINT"}
    checks = ["line > 0", "references(line) -> metrics.totals(n)"]
    tiny.model("metrics.flows", "SELECT line, count(*) AS n FROM raw.flow GROUP BY ALL", columns)
    tiny.model("metrics.below", "SELECT line FROM metrics.flows", {"line": "INTEGER"}, f"checks: {checks}")
    tiny.model("metrics.totals", "SELECT count(*) AS n FROM metrics.flows", {"n": "BIGINT"})
    made = tiny.made()
    assert "metrics.totals" in made
    assert not made & {"metrics.flows", "metrics.below"}
    assert tiny.ask("FROM metrics.flows") == tiny.ask("FROM metrics.below") == []
    assert tiny.ask("FROM metrics.totals") == [(0,)]
    assert tiny.ask("SELECT kind FROM meta.models WHERE model = 'metrics.below'") == [("table",)]
    for path in tiny.data.rglob("2024052400"):
        header = "SourceServer,DestServer,SourceSwitch,DestSwitch,Time,SourceIp,DestIp,SourceQp,DestQp,Rtt"
        counters = "ReadPkts,WritePkts,SendPkts,NakPkts"
        (path / "2024052400_flow.csv").write_text(f"{header},{counters}\n", encoding="utf-8")
    assert tiny.made() == {"metrics.flows", "metrics.below", "metrics.totals"}


@pytest.mark.parametrize("check", ["rows >= 1", "total(n) = total(staging.ports.speed)"])
def test_a_check_that_an_empty_model_can_fail_is_run(tiny: Tiny, check: str) -> None:
    select = "SELECT line, count(*) AS n FROM raw.flow GROUP BY ALL"
    tiny.model("metrics.flows", select, {"line": "INTEGER", "n": "BIGINT"}, f"checks: ['{check}']")
    said = tiny.build()
    assert said.status == 1
    assert "metrics.flows" in said.err_text
