"""Formats for programs: csv, json, jsonl, markdown, text and Parquet keep every value."""

from __future__ import annotations

import io
import json
import math
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse.base.errors import QueryError
from warehouse.reader.guard import check_read_only
from warehouse.reader.output import JSON_FORMATS, write_result
from warehouse.reader.result import open_result
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALUES = r"""
    SELECT * FROM (VALUES (1, '#plain', 1.5::DOUBLE), (-170141183460469231731687303715884105727, 'a,"b"', 'nan'),
        (9007199254740993, '', 'inf'), (NULL, NULL, 1e-7), (0, E'two\nlines | pipe', 1e22)) t(n, text, x)"""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def written(engine: duckdb.DuckDBPyConnection, sql: str, form: str, parameters: dict[str, object] | None = None) -> str:
    [statement] = check_read_only(engine, sql)
    stream = io.StringIO(newline="")
    write_result(open_result(engine, statement, parameters, nested_as_json=form in JSON_FORMATS), form, stream)
    return stream.getvalue()


def test_markdown(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, VALUES, "markdown") == (
        "| n | text | x |\n"
        "| ---: | --- | ---: |\n"
        "| 1 | #plain | 1.5 |\n"
        '| -170141183460469231731687303715884105727 | a,"b" | nan |\n'
        "| 9007199254740993 |  | inf |\n"
        "|  |  | 1e-07 |\n"
        "| 0 | two<br>lines \\| pipe | 1e+22 |\n"
    )


@pytest.mark.parametrize(
    ("form", "text"), [("csv", "a\n"), ("json", "[]\n"), ("jsonl", ""), ("markdown", "| a |\n| ---: |\n")]
)
def test_no_rows(engine: duckdb.DuckDBPyConnection, form: str, text: str) -> None:
    assert written(engine, "SELECT 1 AS a WHERE false", form) == text


def test_names_given_twice_and_answers_that_are_no_select(engine: duckdb.DuckDBPyConnection) -> None:
    sql = 'SELECT 1 AS a, 2 AS a, 3 AS "a ""b"""'
    assert json.loads(written(engine, sql, "json")) == [{"a": 1, "a_1": 2, 'a "b"': 3}]
    assert written(engine, "DESCRIBE SELECT 1 AS a", "csv").splitlines()[1] == "a,INTEGER,YES,,,"
    assert json.loads(written(engine, "PRAGMA version", "json"))[0]["library_version"] == f"v{duckdb.__version__}"


@pytest.mark.parametrize(
    ("value", "text", "as_json"),
    [
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
    ],
)
def test_no_type_loses_anything(
    engine: duckdb.DuckDBPyConnection, value: str, text: str | None, as_json: str | None
) -> None:
    if text is not None:
        written_csv = written(engine, f"SELECT {value} AS v, 1 AS w", "csv").split("\n", 1)[1]
        assert written_csv.removesuffix(",1\n").strip('"').replace('""', '"') == text
    line = written(engine, f"SELECT {value} AS v", "jsonl").strip()
    expected = {None: text, "": json.dumps(text)}.get(as_json, as_json)
    assert line == f'{{"v": {expected}}}'


LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
ROW = st.fixed_dictionaries(
    {
        "whole": st.none() | st.integers(-(2**127) + 1, 2**127 - 1),
        "real": st.none() | st.floats(),
        "text": st.none() | st.text(LETTERS, max_size=20),
        "exact": st.none() | st.decimals(-(10**20), 10**20, places=9),
        "time": st.none() | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001
        "flags": st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5), max_size=3),
        "yes": st.none() | st.booleans(),
    }
)
SELECT = """SELECT $whole::HUGEINT AS whole, $real::DOUBLE AS real, $text::VARCHAR AS text,
    $exact::DECIMAL(38, 9) AS exact, $time::TIMESTAMP AS time, $flags::VARCHAR[] AS flags,
    $yes::BOOLEAN AS yes"""
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)


@MANY
@given(ROW)
def test_json_holds_every_value(engine: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> None:
    [said] = json.loads(written(engine, SELECT, "json", row), parse_float=Decimal)
    assert said["whole"] == row["whole"]
    if row["real"] is None or not math.isfinite(row["real"]):
        assert said["real"] is None
    else:
        assert float(said["real"]) == row["real"]
        assert math.copysign(1, float(said["real"])) == math.copysign(1, row["real"])
    assert said["text"] == row["text"]
    assert said["exact"] == row["exact"]
    assert said["time"] == (row["time"].isoformat(" ") if row["time"] else None)
    assert said["flags"] == row["flags"]
    assert said["yes"] == row["yes"]


@MANY
@given(ROW)
def test_csv_holds_every_value(
    engine: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]
) -> None:
    """The engine reads back what it was asked for; a NULL is empty, an empty text is two quotes."""
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_text(written(engine, SELECT, "csv", row), encoding="utf-8", newline="")
    columns = {
        "whole": "HUGEINT", "real": "DOUBLE", "text": "VARCHAR", "exact": "DECIMAL(38, 9)", "time": "TIMESTAMP",
        "flags": "VARCHAR", "yes": "BOOLEAN",
    }  # fmt: skip
    read = f"SELECT * REPLACE (flags::VARCHAR[] AS flags) FROM read_csv('{path}', auto_detect = false, header = true, "
    read += f"delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, columns = {columns})"
    assert engine.execute(f"({read}) EXCEPT ({SELECT})", row).fetchall() == []
    assert engine.execute(f"({SELECT}) EXCEPT ({read})", row).fetchall() == []


def test_text_is_the_lines_of_one_column(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, "SELECT unnest(['a', NULL, 'b, \"c\"']) AS x", "text") == 'a\n\nb, "c"\n'
    with pytest.raises(QueryError, match="text is the lines of one column, and the answer has 2"):
        written(engine, "SELECT 1 AS a, 2 AS b", "text")


def test_parquet_keeps_every_digit(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    big = 10**38 - 1
    sql = f"""SELECT {big}::HUGEINT AS h, [{big}::HUGEINT] AS l, INTERVAL '1 month 1.000001 second' AS i,
        TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS t, 1 AS a, 2 AS a, $x AS x"""
    run_query(target, sql, output=path, parameters={"x": "é"})
    names = [name for name, *_ in duckdb.execute(f"FROM '{path}'").description]
    assert names == ["h", "l", "i", "t", "a", "a_1", "x"]
    row = duckdb.execute(f"SELECT h, l, i, t::VARCHAR, x FROM '{path}'").fetchone()
    times = ("1 month 00:00:01.000001", "2024-01-01 00:00:00.123456789")
    assert row == (Decimal(big), [Decimal(big)], *times, "é")
    with pytest.raises(QueryError, match="Could not cast value"):
        run_query(target, f"SELECT {10**38}::HUGEINT AS h", output=path)
    run_query(target, "SELECT i FROM range(10) t(i)", output=path, limit=3)
    assert duckdb.execute(f"SELECT count(*) FROM '{path}'").fetchone() == (3,)
