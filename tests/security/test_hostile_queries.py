"""Queries and names only read, and only in few folders."""

from __future__ import annotations

import pytest

from tests.security.room import Room, is_as_before, is_one_sentence, is_quiet

SQL = [
    "COPY (SELECT 1) TO '{base}/pwned'",
    "COPY (SELECT 1) TO '{target}/parts/x.parquet'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{target}/warehouse.duckdb'",
    "WITH a AS (COPY (SELECT 1) TO '{target}/pwned') SELECT 1",
    "SELECT 1; COPY (SELECT 1) TO '{target}/pwned'",
    "EXPORT DATABASE '{base}/pwned'",
    "ATTACH '{base}/pwned.duckdb' AS x",
    "ATTACH '{target}/warehouse.duckdb' AS x",
    "INSTALL httpfs",
    "LOAD '{base}/evil.duckdb_extension'",
    "SET enable_external_access = true",
    "RESET allowed_directories",
    "PRAGMA enable_profiling",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f() AS TABLE SELECT * FROM read_text('{secret}')",
    "INSERT INTO metrics.total SELECT * FROM metrics.total",
    "DROP TABLE metrics.total",
    "DELETE FROM meta.build",
    "FROM '{secret}'",
    "FROM read_text('{secret}')",
    "FROM read_csv('{base}/*.csv')",
    "FROM read_csv('{target}/../secret.csv')",
    "FROM read_blob('/etc/passwd')",
    "FROM glob('/etc/pass*')",
    "FROM read_csv('https://example.org/x.csv')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM query('COPY (SELECT 1) TO ''{target}/pwned''')",
    "FROM duckdb_secrets()",
    "SELECT getenv('HOME')",
    "SELECT nextval('s')",
    "FROM python_map_function(1, 2)",
    "SELECT write_log('x')",
    "CALL enable_logging(storage = 'file', storage_path = '{target}/pwned')",
    "SELECT 1\x00; DROP TABLE metrics.total",
    "SELECT '\udcff'",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
]


@pytest.mark.parametrize("sql", SQL, ids=lambda sql: sql[:40].encode("ascii", "replace").decode())
def test_a_query_only_reads_inside_the_warehouse(shared: Room, sql: str) -> None:
    before, parts = shared.outside(), shared.parts()
    text = sql.replace("{base}", str(shared.base)).replace("{target}", str(shared.target))
    is_one_sentence(shared.sql(text.replace("{secret}", str(shared.secret))))
    is_as_before(shared, before, parts)


def test_a_query_has_a_time_and_memory_limit(shared: Room) -> None:
    endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range <> b.range"
    said = shared.sql(endless, "--timeout", "0.3")
    is_one_sentence(said)
    assert "the query took longer than 0.3 s" in said.err
    said = shared.sql("SELECT list(r) FROM range(40000000) t(r)", "--memory", "50MB")
    is_one_sentence(said)
    assert shared.sql("SELECT 1 AS one", "--timeout", "60").out == "one\n1\n"
    for wrong in ("0", "-1", "nan", "soon"):
        assert shared.sql("SELECT 1", "--timeout", wrong).status == 2


@pytest.mark.parametrize("value", ["x'; DROP TABLE metrics.total; --", "{{ 7 * 7 }}", "$(touch pwned)", "../../etc"])
def test_a_value_of_a_named_query_is_not_parsed_as_sql(room: Room, value: str) -> None:
    before, parts = room.outside(), room.parts()
    head = "/* ---\nabout: Echo.\nparams:\n  v: VARCHAR any text\n--- */"
    room.tiny.write("sql/queries/echo.sql", f"{head}\nSELECT $v AS v\n")
    said = room.run("sql", "-t", room.target, "-q", "echo", "--v", value, "--format", "csv")
    assert (said.status, said.out) == (0, f"v\n{value}\n")
    is_as_before(room, {**before, **room.outside()}, parts)


def test_a_cell_cannot_move_the_cursor(shared: Room) -> None:
    is_quiet(shared.sql("SELECT chr(27) || '[2J' AS x, chr(7) AS y", "--format", "table"))


# names: of tables, columns, selectors, folders ----------------------------------------------------

NAMES = [
    ("show", "../../etc/passwd"),
    ("show", "metrics.total; DROP TABLE metrics.total"),
    ("show", "x\" FROM (COPY (SELECT 1) TO 'pwned') --"),
    ("lineage", "metrics.total'; --"),
    ("lineage", "metrics.total.\x1b[31m"),
    ("render", "../../../etc/passwd"),
    ("render", "{{ ''.__class__ }}"),
    ("test", "*; rm -rf /"),
    ("sql", "-q", "../../../etc/passwd"),
    ("sql", "-f", "/etc/shadow-not-there"),
    ("sql", "-o", "{target}/parts/x.csv", "SELECT 1"),
    ("build", "-d", "{data}", "-t", "{target}", "-s", "metrics.total;x"),
    ("build", "-d", "{base}/no\x1bfolder", "-t", "{target}"),
    ("build", "-d", "{target}", "-t", "{target}"),
]


@pytest.mark.parametrize("arguments", NAMES, ids=lambda arguments: " ".join(arguments)[:40].replace("\x1b", "ESC"))
def test_a_name_is_not_parsed_as_sql_or_a_path(shared: Room, arguments: tuple[str, ...]) -> None:
    before, parts = shared.outside(), shared.parts()
    places = {"{base}": shared.base, "{target}": shared.target, "{data}": shared.tiny.data}
    filled = []
    for one in arguments:
        for name, path in places.items():
            one = one.replace(name, str(path))
        filled.append(one)
    target = () if arguments[0] in ("build", "test", "render") else ("-t", str(shared.target))
    is_one_sentence(shared.run(arguments[0], *target, *filled[1:]))
    is_as_before(shared, before, parts)
