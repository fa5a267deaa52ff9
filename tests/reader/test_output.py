"""Formats: csv, json, jsonl, markdown, text, Parquet keep every value; tables have units; agent mode."""

from __future__ import annotations

import io
import json
import math
import shlex
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.conftest import Command, answered, call
from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, read_query
from warehouse.reader.output import JSON_FORMATS, SWITCH, write_result
from warehouse.reader.result import Column, column_meanings, named_unit, open_result, unit_of
from warehouse.reader.text_table import header_unit, print_rows, readable

VALUES = r"""
    SELECT * FROM (VALUES (1, '#plain', 1.5::DOUBLE), (-170141183460469231731687303715884105727, 'a,"b"', 'nan'),
        (9007199254740993, '', 'inf'), (NULL, NULL, 1e-7), (0, E'two\nlines | pipe', 1e22)) t(n, text, x)"""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def written(
    engine: duckdb.DuckDBPyConnection, sql: str, form: str, parameters: dict[str, object] | None = None, **shown: Any
) -> str:
    [statement] = check_read_only(engine, sql)
    stream = io.StringIO(newline="")
    result = open_result(engine, statement, parameters, nested_as_json=form in JSON_FORMATS)
    write_result(result, form, stream, **shown)
    return stream.getvalue()


def table(connection: duckdb.DuckDBPyConnection, sql: str, query: Query | None = None, width: int = 80) -> str:
    return written(connection, sql, "table", query=query, width=width)


def test_formats_for_programs(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, VALUES, "markdown") == (
        "| n | text | x |\n"
        "| ---: | --- | ---: |\n"
        "| 1 | #plain | 1.5 |\n"
        '| -170141183460469231731687303715884105727 | a,"b" | nan |\n'
        "| 9007199254740993 |  | inf |\n"
        "|  |  | 1e-07 |\n"
        "| 0 | two<br>lines \\| pipe | 1e+22 |\n"
    )
    rows = json.loads(written(engine, VALUES, "json"))
    assert [row["text"] for row in rows] == ["#plain", 'a,"b"', "", None, "two\nlines | pipe"]
    assert rows == list(map(json.loads, written(engine, VALUES, "jsonl").splitlines()))
    assert written(engine, "SELECT unnest(['a', NULL, 'b, \"c\"']) AS x", "text") == 'a\n\nb, "c"\n'
    with pytest.raises(QueryError, match="text is the lines of one column, and the answer has 2"):
        written(engine, "SELECT 1 AS a, 2 AS b", "text")
    for form, text in {"csv": "a\n", "json": "[]\n", "jsonl": "", "markdown": "| a |\n| ---: |\n"}.items():
        assert written(engine, "SELECT 1 AS a WHERE false", form) == text
    twice = 'SELECT 1 AS a, 2 AS a, 3 AS "a ""b"""'
    assert json.loads(written(engine, twice, "json")) == [{"a": 1, "a_1": 2, 'a "b"': 3}]
    assert written(engine, "DESCRIBE SELECT 1 AS a", "csv").splitlines()[1] == "a,INTEGER,YES,,,"
    assert json.loads(written(engine, "PRAGMA version", "json"))[0]["library_version"] == f"v{duckdb.__version__}"


# value, as csv, as JSON: None for the same text without quotes, "" for the same in quotes
EXACT: tuple[tuple[str, str | None, str | None], ...] = (
    (f"{2**128 - 1}::UHUGEINT", f"{2**128 - 1}", None),
    ("12345678901234567890.123456789::DECIMAL(38, 9)", "12345678901234567890.123456789", None),
    ("0.1::FLOAT", "0.1", None),
    ("'nan'::FLOAT", "nan", "null"),
    ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01 00:00:00.123456789", ""),
    ("TIMESTAMP_MS '2024-01-01 00:00:00.5'", "2024-01-01 00:00:00.500000", ""),
    ("TIMESTAMPTZ '2024-01-01 08:00:00+08'", "2024-01-01 00:00:00+00", ""),
    ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)", ""),
    ("TIME '24:00:00'", "24:00:00", ""),
    ("INTERVAL '1 month 1.000001 second'", "1 month 00:00:01.000001", ""),
    ("'a\\x00'::BLOB", "a\\x00", ""),
    ("[[1, NULL], []]", "[[1, NULL], []]", "[[1,null],[]]"),
    ("['nan'::DOUBLE, '-inf'::DOUBLE, -'nan'::DOUBLE]", "[nan, -inf, -nan]", "[null,null,null]"),
    ("['NaN', '\"Infinity']", "[NaN, '\"Infinity']", '["NaN","\\"Infinity"]'),
    (f"{{'a': {2**127 - 1}}}", None, f'{{"a":{2**127 - 1}}}'),
    ("MAP {'k': 1}", "{k=1}", '{"k":1}'),
    ("'{\"a\":\n[1]}'::JSON", None, '{"a": [1]}'),
    ("NULL", "", "null"),
)


def test_no_type_loses_anything(engine: duckdb.DuckDBPyConnection) -> None:
    for value, text, as_json in EXACT:
        if text is not None:
            line = written(engine, f"SELECT {value} AS v, 1 AS w", "csv").split("\n", 1)[1]
            assert line.removesuffix(",1\n").strip('"').replace('""', '"') == text, value
        expected = {None: text, "": json.dumps(text)}.get(as_json, as_json)
        assert written(engine, f"SELECT {value} AS v", "jsonl") == f'{{"v": {expected}}}\n', value


LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TYPES = {
    "whole": "HUGEINT", "real": "DOUBLE", "text": "VARCHAR", "exact": "DECIMAL(38, 9)", "time": "TIMESTAMP",
    "flags": "VARCHAR[]", "yes": "BOOLEAN",
}  # fmt: skip
ROW = st.fixed_dictionaries(
    {
        "whole": st.none() | st.integers(-(2**127) + 1, 2**127 - 1),
        "real": st.none() | st.floats(),
        "text": st.none() | st.text(LETTERS, max_size=20),
        "exact": st.none() | st.decimals(-(10**20), 10**20, places=9),
        "time": st.none() | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001
        "flags": st.lists(st.text(LETTERS, max_size=5), max_size=3),
        "yes": st.none() | st.booleans(),
    }
)
SELECT = "SELECT " + ", ".join(f"${name}::{kind} AS {name}" for name, kind in TYPES.items())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(ROW)
def test_csv_and_json_hold_every_value(
    engine: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]
) -> None:
    """The engine reads its csv back; a NULL is empty, an empty text is two quotes. JSON has no NaN and no infinity."""
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_text(written(engine, SELECT, "csv", row), encoding="utf-8", newline="")
    columns = {**TYPES, "flags": "VARCHAR"}
    read = f"SELECT * REPLACE (flags::VARCHAR[] AS flags) FROM read_csv('{path}', auto_detect = false, header = true, "
    read += f"delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, columns = {columns})"
    assert engine.execute(f"({read}) EXCEPT ({SELECT})", row).fetchall() == []
    assert engine.execute(f"({SELECT}) EXCEPT ({read})", row).fetchall() == []

    [said] = json.loads(written(engine, SELECT, "json", row), parse_float=Decimal)
    real = said.pop("real")
    if row["real"] is None or not math.isfinite(row["real"]):
        assert real is None
    else:
        assert (float(real), math.copysign(1, float(real))) == (row["real"], math.copysign(1, row["real"]))
    time = row["time"].isoformat(" ") if row["time"] else None
    assert {**said, "real": None} == {**row, "time": time, "real": None}


def test_parquet_keeps_every_digit(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    big = 10**38 - 1
    sql = f"""SELECT {big}::HUGEINT AS h, [{big}::HUGEINT] AS l, INTERVAL '1 month 1.000001 second' AS i,
        TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS t, 1 AS a, 2 AS a, $x AS x"""
    answered(target, sql, output=path, parameters={"x": "é"})
    names = duckdb.execute(f"SELECT column_name FROM (DESCRIBE FROM '{path}')").fetchall()
    assert [name for (name,) in names] == ["h", "l", "i", "t", "a", "a_1", "x"]
    [row] = duckdb.execute(f"SELECT h, l, i, t::VARCHAR, x FROM '{path}'").fetchall()
    times = ("1 month 00:00:01.000001", "2024-01-01 00:00:00.123456789")
    assert row == (Decimal(big), [Decimal(big)], *times, "é")
    with pytest.raises(QueryError, match="Could not cast value"):
        answered(target, f"SELECT {10**38}::HUGEINT AS h", output=path)
    answered(target, "SELECT i FROM range(10) t(i)", output=path, limit=3)
    assert duckdb.execute(f"SELECT count(*) FROM '{path}'").fetchall() == [(3,)]


WIDTH = 60
WIDE = "SELECT 'Leaf-1' AS leaf, repeat('GPU-1 ', 20) AS who, 5 AS ids, 0.5 AS ratio, 1 AS other, NULL AS wait"


READABLE: list[tuple[list[str | None], str | None, list[str | None]]] = [
    (["6665677503028", "412", "0", None], "B", ["6.67 TB", "412 B", "0 B", None]),
    (["999999", "166000000000000", "1.5e9", "nan"], "B", ["1.00 MB", "166 TB", "1.50 GB", "nan"]),
    (["12340000000.5"], "bit/s", ["12.3 Gb/s"]),
    (["0.0394", "0.12", "0.00001", "0"], "share", ["3.9 %", "12.0 %", "0.0010 %", "0 %"]),
    (["45.8", "7980", "-7980", "3599.9", "187200"], "s", ["45.8 s", "2 h 13 min", "-2 h 13 min", "1 h", "2 d 4 h"]),
    (["965"], "ms", ["965 ms"]),
    (["0.9299", "5.768779759139165", "655"], None, ["0.9299", "5.769", "655"]),
    (["0.00001234", "123456789.5"], None, ["1.234e-5", "123,456,790"]),
    (["5130", "7"], "count", ["5,130", "7"]),
]


def test_readable_numbers() -> None:
    for values, unit, said in READABLE:
        assert readable(values, unit) == said
    assert readable(["20240524", "7"], None, exact=True) == ["20240524", "7"]
    assert [header_unit(one) for one in ("1/s", "B", "share", "count", None)] == [" [1/s]", "", "", "", ""]


def test_units_come_from_the_suffix_of_a_name_and_agree_with_all_contracts(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    names = {"in_bytes": "B", "Mean_BPS": "bit/s", "rtt_p50_ns": "ns", "leaving_share": "share", "sum(in_bytes)": None}
    assert [unit for unit, _ in column_meanings(connection, (), list(names))] == list(names.values())
    for model in Project.open().models.values():
        for column in model.columns:
            stated = None if column.type.endswith("]") else named_unit(column.name)
            assert stated in (None, unit_of(column.name, column.type, column.unit)), f"{model.name}.{column.name}"


def test_shared_values_are_printed_above_the_table(connection: duckdb.DuckDBPyConnection) -> None:
    assert table(connection, "SELECT switch, in_bytes, hour_utc, cluster FROM metrics.leaf_hour ORDER BY ALL") == (
        "cluster demo · hour 2024-05-23 16:00 UTC\n"
        "switch  in_bytes\n"
        "────────────────\n"
        "Leaf-1   12.5 kB\n"
        "Leaf-2   12.5 kB\n"
    )
    assert table(connection, "SELECT cluster FROM metrics.leaf_hour").startswith("cluster\n")


def _query(tmp_path: Path, header: str) -> Query:
    path = tmp_path / "mine.sql"
    path.write_text(f"/* ---\nabout: Mine.\n{header}\n--- */\nSELECT 1", encoding="utf-8")
    return read_query(path)


def test_an_answer_has_its_columns_whole_and_names_the_others(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    query = _query(tmp_path, "answer: [leaf, ratio, wait]\nranked: ratio desc")
    assert table(connection, WIDE, query, WIDTH) == (
        "leaf    ratio ↓  wait\n"
        "─────────────────────\n"
        "Leaf-1      0.5  NULL\n"
        "… 3 more columns: who, ids, other (--format lines)\n"
    )
    hidden = _query(tmp_path, "answer: [leaf]\nranked: ids + other desc")
    assert table(connection, WIDE, hidden).startswith("by ids + other, largest first\nleaf\n")


def test_lines_have_all_columns_with_their_units(connection: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT repeat('long ', 9) AS text, NULL AS nothing, 'a\x1b[1m' AS odd, in_bytes FROM metrics.leaf_hour"
    assert written(connection, f"{sql} LIMIT 1", "lines", width=40) == (
        "── row 1 ────────────────────\n"
        "text      long long long long long long\n"
        "          long long long\n"
        "nothing   NULL\n"
        "odd       a\\x1b[1m\n"
        "in_bytes  12.5 kB\n"
    )
    assert "Empty Result" in written(connection, "EXPLAIN SELECT 1 WHERE false", "lines", width=80)


def test_no_line_is_wider_than_the_terminal(connection: duckdb.DuckDBPyConnection) -> None:
    wide = "SELECT '服务器' AS 名字, repeat('交换机 端口 ', 30) AS 端口, repeat('x', 99) AS one, 6665677503028 AS bytes"
    for width in (24, 80):
        assert max(map(cell_len, table(connection, wide, width=width).splitlines())) <= width


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=8), st.integers(20, 120))
def test_columns_fit_and_no_number_is_cut(shape: list[tuple[bool, int]], width: int) -> None:
    columns = [Column(f"c{i}", "number" if number else "text", "") for i, (number, _) in enumerate(shape)]
    row = tuple(("9" if number else "x") * wide for number, wide in shape)
    stream = io.StringIO()
    print_rows(columns, [row], stream, width=width)
    lines = stream.getvalue().split("…")[0].splitlines()
    assert max(map(len, lines)) <= width
    shown = len(lines[0].split())
    assert lines[0].split() == [column.name for column in columns[:shown]]
    numbers = [text for (number, _), text in zip(shape[1:shown], row[1:shown], strict=True) if number]
    assert all(text in lines[2] for text in numbers)
    stream = io.StringIO()
    print_rows(columns, [row], stream, width=width, whole=True)
    printed = stream.getvalue()
    assert "more column" not in printed
    assert all(f"c{i}" in printed and (i == 0 or row[i] in printed) for i in range(len(row))), "in the table or below"


def test_numbers_have_units_for_people_alone(target: Path, tmp_path: Path) -> None:
    sql = "SELECT switch, in_bytes FROM metrics.leaf_hour ORDER BY ALL LIMIT 1"
    for asked in (["--format", "table"], ["--format", "lines"], ["-o", "answer.txt"]):
        said = call("sql", sql, *asked, "-t", target, cwd=tmp_path)
        assert "12.5 kB" in (said.out or (tmp_path / "answer.txt").read_text(encoding="utf-8"))
    query = _query(tmp_path, "answer: [switch]\nranked: in_bytes desc")._replace(sql=sql)
    for form in ("csv", "json", "jsonl", "markdown"):
        named = answered(target, query=query, format=form)
        assert named == answered(target, sql, format=form)
        assert "12500" in named


SQL = (
    "SELECT switch, leaving_share, in_bytes, NULL AS none, 'a|b' AS text FROM metrics.leaf_hour ORDER BY switch LIMIT 1"
)
ANSWER = """\
| switch:VARCHAR | leaving_share:DOUBLE [share of 1] | in_bytes:BIGINT [B] | none:"NULL" | text:VARCHAR |
|---|---|---|---|---|
| Leaf-1 | 0.5 | 12500 | NULL | a\\|b |
1 row
"""


VARIANTS = {"AI_AGENT=1": True, "COPILOT_AGENT=1": True, f"{SWITCH}=1": True, f"{SWITCH}=0 AI_AGENT=1": False,
            f"{SWITCH}=auto AI_AGENT=1": True, "": False}  # fmt: skip


def test_variables_switch_the_form_and_a_format_or_file_wins(
    target: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variables, is_agent in VARIANTS.items():
        with monkeypatch.context() as patch:
            for name, _, value in (one.partition("=") for one in variables.split()):
                patch.setenv(name, value)
            said = command("sql", SQL, "-t", target)
            assert (said.status, said.out == ANSWER, said.err) == (0, is_agent, ""), variables
    monkeypatch.setenv("AI_AGENT", "1")
    assert command("sql", "SELECT 1 AS a", "--format", "csv", "-t", target).out == "a\n1\n"
    assert command("sql", "SELECT 1 AS a", "-o", tmp_path / "a.csv", "-t", target).status == 0
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "a\n1\n"
    for words in (("--json",), ("--format=csv", "--lmit", "1"), ("-o", "a.csv", "--nonsense")):
        assert command("sql", "SELECT x", "-t", target, *words).err.startswith("error: ")


ERRORS = {
    "sql 'FROM metrics.leaf_hourz'": {"exception_type": "Query", "position": "5",
        "exception_message": "no table metrics.leaf_hourz, at 1:6", "hint": "nearest: metrics.leaf_hour"},
    "sql -q nicc --server GPU-1": {"exception_message": "no query nicc", "hint": "nearest: nic"},
    "sql --lmit 3": {"exception_message": "unrecognized arguments: --lmit", "hint": "nearest: --limit"},
    "build --threads many": {"exception_message": "--threads is 'many', not a number of threads"},
}  # fmt: skip


def test_an_error_is_one_line_of_json(target: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_AGENT", "1")
    monkeypatch.setenv("WAREHOUSE_TARGET", str(target))
    for line, error in ERRORS.items():
        said = command(*shlex.split(line))
        assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
        found = json.loads(said.err)
        assert {key: text for key, text in error.items() if not found.get(key, "").startswith(text)} == {}, found


def test_a_long_answer_says_how_much_is_missing(target: Path, command: Command) -> None:
    late = "SELECT if(range < 60000, repeat('x', 3000), error('late')) AS x FROM range(80000)"  # not read by a limit
    for sql, more, end in (
        ("FROM range(201)", (), "first 200 of 201 rows"),
        ("FROM range(201)", ("--limit", "201"), "201 rows"),
        (late, ("--limit", "1"), "1 row"),
        ("FROM range(200000)", (), "first 200 of more than 100,000 rows"),
        ("SELECT repeat('x', 600) AS x FROM range(50)", (), "first 34 of 50 rows"),
        ("SELECT repeat('x', 1000000) AS x", (), f"| {'x' * 500}…(+999,500 characters) |\n1 row"),
    ):
        said = command("sql", sql, "--format", "agent", "-t", target, *more).out
        assert said.endswith(f"\n{end}\n"), sql
