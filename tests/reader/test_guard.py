from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.conftest import answered
from warehouse.base.errors import QueryError
from warehouse.reader.connection import connect
from warehouse.reader.guard import check_read_only

Snapshot = Callable[[Path], dict[str, bytes]]

READING = [
    "SELECT 1",
    "FROM metrics.port_hour",
    "(SELECT 1)",
    "WITH a AS (SELECT 1 AS x) FROM a",
    "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a WHERE x < 3) FROM a",
    "SELECT 1 UNION ALL SELECT 2 ORDER BY 1",
    "DESCRIBE metrics.port_hour",
    "SHOW TABLES",
    "SUMMARIZE topology.ports",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "EXPLAIN (FORMAT json) SELECT 1",
    "EXPLAIN (ANALYZE, FORMAT json) SELECT 1",
    "EXPLAIN /* why */ ANALYZE -- really\n (SELECT 1)",
    "EXPLAIN DESCRIBE topology.ports",
    "PRAGMA table_info('metrics.port_hour')",
    "PRAGMA /* x */ version",
    "FROM topology.ports PIVOT (count(*) FOR port_class IN ('access', 'uplink'))",
    "PIVOT topology.ports ON port_class IN ('access') USING count(*)",
    "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b",
    "SELECT list_transform([1, 2], lambda x: x + 1), [y FOR y IN [1]]",
    "SELECT $a AS a, $b AS b",
    "SELECT COLUMNS('.*port.*') FROM topology.ports",
    "FROM read_parquet('x.parquet')",
    "SELECT unnest([1, 2]), random(), uuid(), now()",
    'SELECT \'nextval\', "query" FROM (SELECT 1 AS "query")',
    "SELECT 1; ",
    "SELECT 1; SELECT 2 -- two\n;",
    "SELECT ';' AS a, $$ ; COPY x TO 'y' $$ AS b /* ; */; ",
    "SELECT\u00a01 AS\u3000a; SELECT '\u00a0' ;\u2003SELECT 3",
    "\ufeffSELECT 1",
    "SELECT 'a\r\nb';\r\nSELECT 2",
    "-- only a comment",
    "",
]

PART = "{target}/parts/metrics.port_hour.parquet"
HOSTILE = [
    f"COPY (SELECT 1) TO '{PART}'",
    f"copy/**/(select 1) to '{PART}'",
    f"FROM topology.ports; COPY (SELECT 1) TO '{PART}'",
    f"EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{PART}'",
    f"EXPLAIN ANALYZE (FORMAT json) COPY (SELECT 1) TO '{PART}'",
    f"EXPLAIN (FORMAT json, ANALYZE) /* c */ COPY (SELECT 1) TO '{PART}'",
    f"EXPLAIN -- SELECT 1\n ANALYZE COPY (SELECT 1) TO '{PART}'",
    f"EXPLAIN ANALYZE WITH a AS (COPY (SELECT 1) TO '{PART}') SELECT 1",
    f"WITH a AS (COPY (SELECT 1) TO '{PART}') FROM a",
    f"WITH a AS MATERIALIZED (COPY (SELECT 1) TO '{PART}') FROM a",
    f"WITH a AS (SELECT 1), b AS (COPY a TO '{PART}') FROM b",
    f"WITH a AS (WITH b AS (COPY (SELECT 1) TO '{PART}') FROM b) FROM a",
    f"SELECT 1 UNION ALL (WITH b AS (COPY (SELECT 1) TO '{PART}') SELECT 2)",
    f"DESCRIBE WITH b AS (COPY (SELECT 1) TO '{PART}') SELECT 2",
    f"SUMMARIZE WITH b AS (COPY (SELECT 1) TO '{PART}') SELECT 2",
    f"FROM query('WITH b AS (COPY (SELECT 1) TO ''{PART}'') SELECT 2')",
    "FROM system.main.query('SELECT 1')",
    "FROM query_table('topology.ports')",
    "FROM json_execute_serialized_sql({serialized})",
    "PRAGMA json_execute_serialized_sql({serialized})",
    "CALL json_execute_serialized_sql({serialized})",
    "WITH a AS (INSERT INTO topology.ports DEFAULT VALUES RETURNING *) FROM a",
    "WITH a AS (DELETE FROM topology.ports RETURNING *) FROM a",
    "WITH a AS (UPDATE topology.ports SET server = 'x' RETURNING *) FROM a",
    "SET VARIABLE x = 1",
    "PRAGMA threads = 1",
    "PRAGMA profile_output = '{target}/parts/x'",
    "PRAGMA import_database('{target}')",
    "PRAGMA copy_database('warehouse', 'temp')",
    "PRAGMA add_parquet_key('x', '0123456789112345')",
    "PRAGMA table_info(nextval('x'))",
    "CALL pragma_version()",
    "FROM enable_logging()",
    "FROM enable_profiling(save_location = '{target}/parts/x')",
    "FROM checkpoint()",
    "FROM truncate_duckdb_logs()",
    "FROM which_secret('x', 's3')",
    "FROM arrow_scan(1, 2, 3)",
    "FROM pandas_scan(1)",
    "FROM create_external_resource('x')",
    "CHECKPOINT",
    "BEGIN",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE TABLE x AS PIVOT topology.ports ON port_class USING count(*)",
    f"COPY (PIVOT topology.ports ON port_class USING count(*)) TO '{PART}'",
    "PIVOT topology.ports ON port_class USING count(*)",
    "EXPLAIN PIVOT topology.ports ON port_class USING count(*)",
    f"PREPARE p AS COPY (SELECT 1) TO '{PART}'",
    "EXPLAIN ANALYZE EXECUTE p",
    "EXPLAIN CREATE TABLE x AS SELECT 1",
    "EXPLAIN ANALYZE INSERT INTO topology.ports DEFAULT VALUES",
    "USE system",
    "SELECT \"NextVal\"('s')",
    "SELECT main.nextval('s')",
    "SELECT 1 ORDER BY (SELECT setval('s', 3))",
    "SELECT list_transform([1], lambda x: currval('s'))",
    "SELECT 'HOME'.getenv()",
    f"SELECT 1\0; COPY (SELECT 1) TO '{PART}'",
    f"SELECT\u00a01;\u00a0COPY (SELECT 1) TO '{PART}'",
    f"SELECT '\u00a0';WITH\u00a0a AS (COPY (SELECT 1) TO '{PART}') FROM a",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "-".join(["(1"] * 900) + ")" * 900,
]  # fmt: skip


def test_statements_that_only_read_pass(connection: duckdb.DuckDBPyConnection) -> None:
    for sql in READING:
        check_read_only(connection, sql)


def test_statements_with_side_effects_are_refused(own_target: Path, snapshot: Snapshot) -> None:
    before = snapshot(own_target.parent)
    messages = {}
    with connect(own_target) as engine:
        writing = f"WITH a AS (COPY (SELECT 1) TO '{PART.format(target=own_target)}') SELECT 1"
        [(tree,)] = engine.execute("SELECT json_serialize_sql($1)", [writing]).fetchall()
        serialized = "'" + json.dumps(json.loads(tree)).replace("'", "''") + "'"
        for sql in HOSTILE:
            try:
                check_read_only(engine, sql.replace("{target}", str(own_target)).replace("{serialized}", serialized))
            except QueryError as error:
                messages[sql] = error.message
    assert messages.keys() == set(HOSTILE)
    assert not any("\n" in message for message in messages.values())
    for form in ("table", "csv"):  # a refused statement does not run
        with pytest.raises(QueryError, match="COPY is refused"):
            answered(own_target, HOSTILE[0].replace("{target}", str(own_target)), format=form)
    assert snapshot(own_target.parent) == before


def test_every_function_with_side_effects_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    """Check that every function with side effects is refused or listed here as harmless."""
    harmless = {
        "current_connection_id", "current_query", "current_query_id", "current_transaction_id", "error",
        "gen_random_uuid", "random", "setseed", "sleep_ms", "stats", "uuid", "uuidv4", "uuidv7",
        "vector_type",
    }  # fmt: skip
    rows = connection.execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE has_side_effects")
    for (name,) in rows.fetchall():
        if name not in harmless:
            with pytest.raises(QueryError, match=f"the function {name} is refused"):
                check_read_only(connection, f"SELECT {name}()")


def test_a_refusal_has_position_reason_and_alternative(connection: duckdb.DuckDBPyConnection) -> None:
    only_read = "is refused: a warehouse is only read, at"
    for sql, said in {
        "COPY (SELECT 1) TO 'x.csv'": f"COPY {only_read} 1:1\nwarehouse sql -o FILE writes the rows",
        "SELECT 'é';\n  EXPLAIN ANALYZE\n COPY (SELECT 1) TO 'x'": f"EXPLAIN COPY {only_read} 3:2\n",
        "CREATE TEMP TABLE x AS SELECT 1": f"CREATE {only_read} 1:1\nWITH name AS (SELECT ...) names a step",
        "SELECT 'é',\n  nextval('s')": "the function nextval is refused: it does more than read, at 2:3",
        "EXPLAIN SELECT nextval('s')": "the function nextval is refused: it does more than read, at 1:16",
        "WITH a AS (COPY (SELECT 1) TO 'x') FROM a": "COPY inside WITH is refused",
        "PIVOT topology.ports ON port_class USING count(*)": "PIVOT without a list of values is",
        "USE metrics": f"USE {only_read} 1:1\nwrite schema.table",
        "SELEC 1": 'syntax error at or near "SELEC", at 1:1',
    }.items():
        with pytest.raises(QueryError) as error:
            check_read_only(connection, sql)
        assert str(error.value).startswith(said)


def test_statements_have_position_and_parameters(connection: duckdb.DuckDBPyConnection) -> None:
    sql = "-- é\nSELECT $a /* ; */ ; -- x\n SELECT $b, $a;;"
    first, second = check_read_only(connection, sql)
    # DuckDB 2.0.1 counts a comment above a statement to its text, 2.0.0 does not.
    assert first.text.removeprefix("-- é\n") == "SELECT $a /* ; */ "
    assert (first.kind, first.parameters) == ("SELECT", frozenset("a"))
    assert second.text.removeprefix(" -- x\n").removeprefix("-- x\n").strip() == "SELECT $b, $a"
    assert second.parameters == {"a", "b"}
    assert sql.encode()[second.start :].decode().startswith(second.text)
