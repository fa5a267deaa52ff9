"""The lint: forms that each rule refuses, and others to write, which DuckDB and the translation take."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from warehouse.checks import compile_check
from warehouse.errors import ModelError
from warehouse.lint import EQUAL, FUNCTIONS, WHY, Finding, contracts_of, lint, lint_project
from warehouse.model import Column
from warehouse.project import Project
from warehouse.spark_dialect import to_spark

QUERIES = Path(__file__).parents[1] / "sql" / "queries"
TYPES = {
    "g": "VARCHAR",
    "i": "INTEGER",
    "n": "BIGINT",
    "d": "DOUBLE",
    "m": "DECIMAL(18, 4)",
    "s": "VARCHAR",
    "ts": "TIMESTAMP",
    "day": "DATE",
    "l": "VARCHAR[]",
    "b": "BOOLEAN",
}
CONTRACTS = {"staging.t": [Column(name, kind) for name, kind in TYPES.items()]}

# rule: (refused, accepted), each an expression over staging.t, or a whole SELECT
CASES = {
    "absent": [
        ("SELECT i FROM (SELECT * REPLACE (i + 1 AS i) FROM staging.t)", "i + 1"),
        ("SELECT i FROM staging.t UNION ALL BY NAME SELECT i FROM staging.t", "i"),
        ("SELECT a.i FROM staging.t AS a POSITIONAL JOIN staging.t AS b", "i"),
        ("SELECT a.i FROM staging.t AS a ASOF JOIN staging.t AS b ON a.n >= b.n", "i"),
        ("SELECT i FROM staging.t ORDER BY i LIMIT 10%", "i"),
        ("l[1:2]", "l[1]"),
        ("[x FOR x IN l]", "list_transform(l, lambda x: x || '')"),
        ("s SIMILAR TO 'a|b'", "regexp_matches(s, '^(a|b)$')"),
        ("s GLOB 'a*'", "s LIKE 'a%'"),
        ("max(i, 3)", "max(i)"),
        ("prefix(s, 'a')", "starts_with(s, 'a')"),
    ],
    "approximate": [("approx_count_distinct(i)", "count(DISTINCT i)")],
    "boolean-sum": [("sum(i > 3)", "count(*) FILTER (WHERE i > 3)")],
    "chance": [
        ("any_value(i)", "min(i)"),
        ("first(i ORDER BY n)", "arg_min(i, struct_pack(a := n, b := i))"),
    ],
    "columns": [("min(COLUMNS('i|n'))", "min(i)")],
    "date-arithmetic": [
        ("day - DATE '2024-01-01'", "date_diff('day', DATE '2024-01-01', day)"),
        ("day + INTERVAL '1 day'", "CAST(day + INTERVAL '1 day' AS DATE)"),
        ("ts - TIMESTAMP '2024-01-01'", "epoch_us(ts) - epoch_us(TIMESTAMP '2024-01-01')"),
    ],
    "date-diff": [("date_diff('week', ts, ts)", "date_diff('day', ts, ts)")],
    "decimal-average": [("avg(m)", "sum(m)::DOUBLE / count(m)")],
    "decimal-division": [("m / 3", "m::DOUBLE / 3")],
    "decimal-literal": [("d * 0.55", "d * 0.55e0"), ("n * 1.0", "quantile_cont(n, [0.1, 0.9])")],
    "double-division": [("d // 2", "CAST(floor(d / 2e0) AS BIGINT)")],
    "double-sum": [("sum(d)", "sum(d::DECIMAL(18, 6))::DOUBLE"), ("avg(d)", "avg(n)")],
    "double-text": [
        ("CAST(d AS VARCHAR)", "CAST(n AS VARCHAR)"),
        ("s || d", "s || n"),
        ("concat(s, d)", "concat(s, n)"),
        ("CAST(l AS VARCHAR)", "string_agg(s, ',' ORDER BY i)"),
    ],
    "epoch-ms": [("epoch_ms(ts)", "epoch_us(ts) // 1000")],
    "extract": [("extract(SECOND FROM ts)", "(epoch_us(ts) // 1000000) % 60")],
    "floor": [("floor(d)", "CAST(floor(d) AS BIGINT)")],
    "function": [("list_resize(l, 3)", "list_filter(l, lambda x: x <> '')")],
    "in-value": [
        ("i IN (SELECT n FROM staging.t)", "SELECT i FROM staging.t WHERE i IN (SELECT n FROM staging.t)"),
    ],
    "integer-cast": [("CAST(d AS BIGINT)", "CAST(round(d) AS BIGINT)"), ("m::INTEGER", "floor(m)::INTEGER")],
    "interval": [("ts + INTERVAL (i) SECOND", "ts + i * INTERVAL '1 second'")],
    "is-nan": [("isnan(d)", "coalesce(isnan(d), false)")],
    "last-bits": [("ln(d)", "sqrt(d)"), ("d ** 2", "d * d"), ("stddev_pop(n)", "sum(n * n)")],
    "list": [
        ("list_contains(l, s)", "coalesce(list_contains(l, s), false)"),
        ("s = ANY(l)", "coalesce(list_contains(l, s), false)"),
        ("list_transform(l, lambda x, k: k)", "list_transform(l, lambda x: x || '')"),
        (
            "list(DISTINCT s ORDER BY s)",
            "SELECT list(s ORDER BY s) AS x FROM (SELECT DISTINCT s FROM staging.t)",
        ),
        ("list_sort(l)", "list(s ORDER BY s)"),
    ],
    "list-length": [("length(l)", "array_length(l)")],
    "order": [
        ("SELECT i FROM staging.t LIMIT 3", "SELECT i FROM staging.t ORDER BY i LIMIT 3"),
        (
            "SELECT DISTINCT ON (g) g, i FROM staging.t",
            "SELECT DISTINCT ON (g) g, i FROM staging.t ORDER BY g, i",
        ),
        ("row_number() OVER (PARTITION BY g)", "row_number() OVER (PARTITION BY g ORDER BY i)"),
        ("lag(i) OVER ()", "sum(i) OVER ()"),
        ("list(i)", "list(i ORDER BY n)"),
        ("string_agg(s, ',')", "string_agg(s, ',' ORDER BY s)"),
        ("arg_max(s, i)", "arg_max(s, struct_pack(a := i, b := s))"),
    ],
    "outer-star": [
        ("SELECT * FROM staging.t", "SELECT i FROM (SELECT * FROM staging.t)"),
        ("SELECT t.* FROM staging.t AS t", "SELECT t.i FROM staging.t AS t"),
        ("SELECT * EXCLUDE (i) FROM staging.t", "count(*)"),
        ("FROM staging.t", "FROM staging.t SELECT i"),
    ],
    "pivot": [("PIVOT staging.t ON g USING sum(i)", "sum(i) FILTER (WHERE g = 'a')")],
    "range": [
        ("unnest(range(0, 10, 2))", "unnest(range(0, 10))"),
        ("SELECT range FROM range(3)", "SELECT x FROM range(3) AS r(x)"),
    ],
    "regexp": [
        ("regexp_replace(s, 'a', 'b')", "regexp_replace(s, 'a', 'b', 'g')"),
        ("regexp_matches(s, 'a', 'i')", "regexp_matches(s, '(?i)a')"),
    ],
    "round": [("round(d, 2)", "round(d * 100) / 100")],
    "sample": [("SELECT i FROM staging.t USING SAMPLE 3", "SELECT i FROM staging.t WHERE i % 3 = 0")],
    "source": [("SELECT a FROM read_csv('x.csv')", "SELECT i FROM staging.t")],
    "spark": [("quantile_disc(n, [0.1, 0.9])", "quantile_disc(n, 0.1)")],
    "struct": [
        ("row(i, n)", "struct_pack(a := i, b := n)"),
        ("(i, n) < (1, 2)", "i < 1 OR (i = 1 AND n < 2)"),
        ("max(struct_pack(a := i))", "arg_max(i, struct_pack(a := i))"),
    ],
    "substr": [
        ("substr(s, 0, 2)", "substr(s, 1, 2)"),
        ("left(s, -1)", "substr(s, 1, greatest(length(s) - 1, 0))"),
    ],
    "text": [("printf('%03d', i)", "lpad(i::VARCHAR, 3, '0')"), ("hash(s)", "md5(coalesce(s, ''))")],
    "text-index": [("s[1]", "l[1]")],
    "time": [("date_part('hour', ts)", "extract(HOUR FROM ts)"), ("age(ts, ts)", "epoch_us(ts)")],
    "time-format": [
        ("strftime(ts, '%Y-%m-%dT%H')", "strftime(ts, '%Y-%m-%d') || 'T' || strftime(ts, '%H:%M:%S.%g')"),
        ("strftime(ts, '%j')", "extract(DOY FROM ts)"),
        ("strptime(s, '%H.%g')", "strptime(s, '%Y-%m-%d %H:%M:%S')"),
    ],
    "trunc": [("trunc(d)", "CAST(CASE WHEN d < 0 THEN ceil(d) ELSE floor(d) END AS BIGINT)")],
    "try-cast": [
        (
            "try_cast(s AS BIGINT)",
            "CASE WHEN regexp_matches(s, '^[0-9]{1,18}$') THEN try_cast(s AS BIGINT) END",
        )
    ],
    "type": [
        ("n::HUGEINT", "n::DECIMAL(38, 0)"),
        ("n::UBIGINT", "n::BIGINT"),
        ("ts::TIMESTAMPTZ", "s::TIMESTAMP"),
    ],
    "unnest": [
        ("SELECT unnest(l) AS a, unnest(l) AS b FROM staging.t", "unnest(l)"),
        ("SELECT u FROM unnest([1, 2]) WITH ORDINALITY AS q(u, o)", "SELECT u FROM unnest([1, 2]) AS q(u)"),
        (
            "SELECT unnest([sum(i) OVER ()]) AS u FROM staging.t",
            "SELECT unnest([i]) AS u, sum(i) OVER () AS n FROM staging.t",
        ),
    ],
    "volatile": [("now()", "ts"), ("current_date", "day"), ("random()", "d"), ("uuid()", "s")],
    "window": [
        ("sum(i) OVER (ORDER BY n GROUPS 1 PRECEDING)", "sum(i) OVER (ORDER BY n ROWS 1 PRECEDING)"),
        ("count(DISTINCT i) OVER (PARTITION BY g)", "count(DISTINCT i)"),
        ("arg_max(i, (n, i)) OVER (PARTITION BY g)", "max(i) OVER (PARTITION BY g)"),
    ],
    "zone": [("ts AT TIME ZONE 'UTC'", "ts + INTERVAL '8 hours'"), ("to_timestamp(d)", "make_timestamp(n)")],
}
PAIRS = [pytest.param(rule, *pair, id=f"{rule}: {pair[0]}") for rule, pairs in CASES.items() for pair in pairs]


def whole(sql: str) -> str:
    is_whole = sql.startswith(("SELECT ", "FROM ", "WITH ", "PIVOT ", "-- "))
    return sql if is_whole else f"SELECT {sql} AS x FROM staging.t"


def rules(sql: str) -> set[str]:
    return {finding.rule for finding in lint(whole(sql), shown_path="m.sql", contracts=CONTRACTS)}


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    """A database with the relation that the cases read, without rows."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA staging")
    connection.execute(f"CREATE TABLE staging.t ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    return connection


@pytest.mark.parametrize(("rule", "refused", "accepted"), PAIRS)
def test_a_rule_refuses_one_form_and_accepts_another(
    rule: str, refused: str, accepted: str, empty: duckdb.DuckDBPyConnection
) -> None:
    assert rule in rules(refused)
    assert rules(accepted) == set()
    empty.execute(whole(accepted))
    assert to_spark(whole(accepted))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {*WHY, "spark"}


def test_no_function_is_both_equal_and_different() -> None:
    assert not EQUAL & FUNCTIONS.keys()


def test_a_finding_says_where_and_what_to_write() -> None:
    sql = "\n\n\nWITH a AS (\n    SELECT i, round(d, 2) AS x\n    FROM staging.t\n)\n\nSELECT * FROM a\n"
    first, second = lint(sql, shown_path="models/staging/a.sql")
    assert (first.line, first.column, first.rule) == (5, 15, "round")
    assert (second.line, second.column, second.rule) == (9, 8, "outer-star")
    assert str(first) == "models/staging/a.sql:5:15: halves differ; round(x * 100) / 100 [round]"


def test_columns_are_counted_in_characters() -> None:
    (finding,) = lint("SELECT '星期五' AS a, round(1e0, 2) AS b", shown_path="m.sql")
    assert finding.column == 20


def test_rules_with_types_wait_for_contracts() -> None:
    sql = "SELECT sum(d) AS x FROM staging.t"
    assert lint(sql, shown_path="m.sql") == []
    assert [finding.rule for finding in lint(sql, shown_path="m.sql", contracts=CONTRACTS)] == ["double-sum"]


def test_types_are_traced_through_queries() -> None:
    sql = "WITH a AS (SELECT g, n / 2 AS half FROM staging.t) SELECT g, sum(half) AS x FROM a GROUP BY ALL"
    assert rules(sql) == {"double-sum"}


def test_what_is_allowed_must_still_be_translated() -> None:
    sql = "\n\nSELECT list(i) AS x FROM staging.t -- lint: allow order because it is counted only"
    assert [(one.line, one.rule) for one in lint(sql, shown_path="m.sql")] == [(3, "spark")]


def test_an_exception_needs_its_rule_and_a_reason() -> None:
    line = "SELECT ln(d) AS x, round(d, 2) AS y FROM staging.t"

    def found(comment: str) -> set[str]:
        return rules(f"{line} {comment}")

    assert found("") == {"last-bits", "round"}
    assert found("-- lint: allow last-bits because readers compare it to 1e-12") == {"round"}
    assert found("-- lint: allow last-bits, round because readers compare it to 1e-12") == set()
    assert found("-- lint: allow last-bits, round") == {"last-bits", "round", "allow"}
    assert found("-- lint: off") == {"last-bits", "round", "allow"}
    assert rules(f"-- lint: allow last-bits, round because of another line\n{line}") == {"last-bits", "round"}


def test_sql_that_does_not_parse_is_an_error_with_its_place() -> None:
    with pytest.raises(ModelError, match=r"^m\.sql:2:") as caught:
        lint("SELECT\n    (1 FROM t", shown_path="m.sql")
    assert caught.value.exit_status == 1


def test_findings_come_in_order_of_place() -> None:
    found = lint("SELECT ln(d), floor(d),\n exp(d) FROM t", shown_path="m.sql")
    assert found == sorted(found)
    assert [(one.line, one.rule) for one in found] == [(1, "last-bits"), (1, "floor"), (2, "last-bits")]


def test_the_shipped_models_pass() -> None:
    findings: list[Finding] = lint_project(Project.open())
    assert not findings, "\n".join(map(str, findings))


EVERY_RUN = {"approximate", "chance", "double-sum", "order", "sample"}
"""Rules for what differs from run to run. Named queries and checks run on DuckDB alone: the others do not bind them."""


def test_named_queries_and_checks_give_the_same_in_every_run() -> None:
    project = Project.open()
    texts = {f"sql/queries/{path.name}": path.read_text(encoding="utf-8") for path in QUERIES.glob("*.sql")}
    for model in project.models.values():
        for check in model.checks:
            if check.text.startswith(("none:", "total(")):  # the others are of single rows, or count
                texts[str(check.place)] = compile_check(check, model).failing
    contracts = contracts_of(project)
    found = [one for shown, sql in texts.items() for one in lint(sql, shown_path=shown, contracts=contracts)]
    assert [str(one) for one in found if one.rule in EVERY_RUN] == []
