"""The lint: forms that each rule refuses, and others to write, which DuckDB takes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse.base.errors import ModelError
from warehouse.engine.tree import FUNCTIONS
from warehouse.graph.syntax import schema_of
from warehouse.project.model import compile_check
from warehouse.project.project import Project
from warehouse.quality.lint import RULES, lint, lint_project, types_of

QUERIES = Path(__file__).parents[2] / "sql" / "queries"
TYPES = {
    "g": "VARCHAR", "i": "INTEGER", "n": "BIGINT", "d": "DOUBLE", "m": "DECIMAL(18, 4)", "s": "VARCHAR",
    "ts": "TIMESTAMP", "day": "DATE", "l": "VARCHAR[]", "b": "BOOLEAN",
}  # fmt: skip
SCHEMA = schema_of({"staging.t": TYPES})
BY_NAME = "SELECT i, s FROM staging.t UNION ALL BY NAME SELECT"

# rule: (refused, accepted), each an expression over staging.t, or a whole SELECT
CASES = {
    "approximate": [("approx_count_distinct(i)", "count(DISTINCT i)"), ("approx_quantile(d, 0.5)", "median(d)")],
    "by-name": [
        (f"{BY_NAME} i FROM staging.t", f"{BY_NAME} i, NULL AS s FROM staging.t"),
        (f"{BY_NAME} s, i FROM staging.t", f"{BY_NAME} * FROM (SELECT i, s FROM staging.t)"),
    ],
    "cast": [
        ("CAST(l AS VARCHAR)", "array_to_string(l, ',')"),
        ("{'a': i}::VARCHAR", "concat('a ', i)"),
        ("try_cast(s AS BIGINT[])", "try_cast(s AS BIGINT)"),
    ],
    "chance": [
        ("mode(i)", "min(i)"),
        ("arg_max(s, i)", "arg_max(s, struct_pack(a := i, b := s))"),
        ("min_by(s, i)", "min_by(s, (i, s))"),
        ("arg_min_null(s, i)", "arg_min(s, (i, s))"),
    ],
    "double-sum": [
        ("sum(d)", "sum(d::DECIMAL(18, 6))::DOUBLE"),
        ("sum(DISTINCT d)", "sum(DISTINCT n)"),
        ("avg(d)", "avg(n)"),
        ("sum(d) OVER (ORDER BY i)", "sum(n) OVER (ORDER BY i)"),
    ],
    "hash": [("hash(s)", "md5(s)")],
    "last-bits": [("ln(d)", "sqrt(d)"), ("d ** 2", "d * d"), ("atan2(d, d)", "degrees(d)")],
    "order": [
        ("SELECT i FROM staging.t LIMIT 3", "SELECT i FROM staging.t ORDER BY i LIMIT 3"),
        ("SELECT i FROM staging.t OFFSET 3", "SELECT i FROM staging.t ORDER BY ALL OFFSET 3"),
        ("SELECT DISTINCT ON (g) g, i FROM staging.t", "SELECT DISTINCT ON (g) g, i FROM staging.t ORDER BY g, i"),
        ("SELECT a.i FROM staging.t AS a POSITIONAL JOIN staging.t AS b", "SELECT DISTINCT i FROM staging.t"),
        ("row_number() OVER (PARTITION BY g)", "row_number() OVER (PARTITION BY g ORDER BY i)"),
        ("sum(i) OVER (ROWS 1 PRECEDING)", "sum(i) OVER (ORDER BY n ROWS 1 PRECEDING)"),
        ("lag(i) OVER ()", "sum(i) OVER ()"),
        ("any_value(i)", "any_value(i ORDER BY n)"),
        ("first_value(i IGNORE NULLS) OVER ()", "first_value(i IGNORE NULLS) OVER (ORDER BY n)"),
        ("list(DISTINCT s)", "list(DISTINCT s ORDER BY s)"),
        ("list(i) FILTER (WHERE i > 3)", "list(i ORDER BY n) FILTER (WHERE i > 3)"),
        ("string_agg(s, ',')", "string_agg(s, ',' ORDER BY s)"),
        ("json_group_array(s)", "list_sort(l)"),
    ],
    "sample": [("SELECT i FROM staging.t USING SAMPLE 3", "SELECT i FROM staging.t WHERE i % 3 = 0")],
    "source": [
        ("SELECT a FROM read_csv('x.csv')", "SELECT i FROM staging.t"),
        ("SELECT a FROM 'x.csv'", "SELECT r.x FROM range(3) AS r(x)"),
        ("SELECT file FROM glob('*')", "SELECT unnest(l) AS x FROM staging.t"),
    ],
    "statistics": [("stddev_pop(n)", "sum(n * n)"), ("mean(n)", "avg(n)"), ("regr_slope(d, d)", "regr_count(d, d)")],
    "volatile": [("now()", "ts"), ("current_date", "day"), ("random()", "d"), ("uuid()", "s")],
    "zone": [
        ("ts AT TIME ZONE 'UTC'", "ts + INTERVAL '8 hours'"),
        ("to_timestamp(d)", "make_timestamp(n)"),
        ("ts::TIMESTAMPTZ", "s::TIMESTAMP"),
    ],
}
ALLOWED = [
    "SELECT * REPLACE (i + 1 AS i) FROM staging.t",
    "SELECT a.i FROM staging.t AS a ASOF JOIN staging.t AS b ON a.n >= b.n",
    "FROM staging.t SELECT i QUALIFY row_number() OVER (PARTITION BY g ORDER BY i, n) = 1",
    "list_sum(list_transform(l, lambda x: length(x)))",
    "arg_max(s, (i, s), 3)",
    "round(d, 2)::BIGINT",
    "date_part('hour', time_bucket(INTERVAL '10 minutes', ts))",
    "sum(i > 3)",
    "n::HUGEINT",
    "regexp_extract(s, '(.)(.)', ['a', 'b'])",
]
"""Written by who loves DuckDB; the same rows in every run."""


def whole(sql: str) -> str:
    is_whole = sql.startswith(("SELECT ", "FROM ", "WITH ", "PIVOT ", "-- "))
    return sql if is_whole else f"SELECT {sql} AS x FROM staging.t"


def rules(sql: str) -> set[str]:
    return {finding.rule for finding in lint(whole(sql), shown_path="m.sql", schema=SCHEMA)}


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    """A database with the relation that the cases read, without rows."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA staging")
    connection.execute(f"CREATE TABLE staging.t ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    return connection


def test_a_rule_refuses_one_form_and_accepts_another(empty: duckdb.DuckDBPyConnection) -> None:
    assert [rule.name for rule in RULES] == list(CASES)
    for rule, pairs in CASES.items():
        for refused, accepted in pairs:
            assert rule in rules(refused), refused
            assert rules(accepted) == set(), accepted
            empty.execute(whole(accepted))
    for sql in ALLOWED:
        empty.execute(whole(sql))
        assert rules(sql) == set(), sql


def test_all_that_makes_a_model_volatile_is_refused() -> None:
    assert {name for name in FUNCTIONS if rules(f"{name}()") != {"volatile"}} == set()


def test_a_finding_says_where_and_what_to_write() -> None:
    sql = "\n\n\nWITH a AS (\n    SELECT i, hash(d) AS x\n    FROM staging.t\n)\n\nFROM a LIMIT 3\n"
    first, second = lint(sql, shown_path="models/staging/a.sql")
    assert (first.line, first.column, first.rule) == (5, 15, "hash")
    assert (second.line, second.rule) == (9, "order")
    assert str(first) == "models/staging/a.sql:5:15: it differs between versions of DuckDB; md5(x) [hash]"


def test_rules_with_types_wait_for_a_schema() -> None:
    sql = "SELECT '星期五' AS day, sum(d) AS x, hash(d) AS y FROM staging.t"
    assert [(one.column, one.rule) for one in lint(sql, shown_path="m.sql")] == [(35, "hash")]
    assert rules(sql) == {"double-sum", "hash"}
    assert rules("WITH a AS (SELECT g, n / 2 AS half FROM staging.t) SELECT sum(half) AS x FROM a") == {"double-sum"}


def test_an_exception_needs_its_rule_and_a_reason() -> None:
    line = "SELECT ln(d) AS x, hash(d) AS y FROM staging.t"

    def found(comment: str) -> set[str]:
        return rules(f"{line} {comment}")

    assert found("") == {"last-bits", "hash"}
    assert found("-- lint: allow last-bits because readers compare it to 1e-12") == {"hash"}
    assert found("-- lint: allow last-bits, hash because readers compare it to 1e-12") == set()
    assert found("-- lint: allow last-bits, hash") == {"last-bits", "hash", "allow"}
    assert found("-- lint: off") == {"last-bits", "hash", "allow"}
    assert rules(f"-- lint: allow last-bits, hash because of another line\n{line}") == {"last-bits", "hash"}


def test_sql_that_does_not_parse_is_an_error_with_its_place() -> None:
    with pytest.raises(ModelError, match=r"^m\.sql:2:") as caught:
        lint("SELECT\n    (1 FROM t", shown_path="m.sql")
    assert caught.value.exit_status == 1


def test_shipped_models_named_queries_and_checks_pass() -> None:
    project = Project.open()
    texts = {f"sql/queries/{path.name}": path.read_text(encoding="utf-8") for path in QUERIES.glob("*.sql")}
    for model in project.models.values():
        for check in model.checks:
            if check.text.startswith(("none:", "total(")):  # the others are of single rows, or count
                texts[str(check.place)] = compile_check(check, model).failing
    schema = types_of(project)
    found = lint_project(project) + [
        one for shown in texts for one in lint(texts[shown], shown_path=shown, schema=schema)
    ]
    assert [str(one) for one in found] == []
