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
from warehouse.base.settings import DEFAULT_TARGET
from warehouse.reader.explanations import Answer, explain
from warehouse.reader.guard import check_read_only
from warehouse.reader.output import JSON_FORMATS, check_format, write_result
from warehouse.reader.result import Asked, open_result
from warehouse.reader.text_table import escape, print_rows
from warehouse.reader.value_text import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = """
    SELECT * FROM (VALUES
        (1, 'plain', 1.5::DOUBLE, TIMESTAMP '2024-05-23 16:00:00', ['gap', 'wrapped'], true,
            0.10::DECIMAL(5, 2)),
        (-170141183460469231731687303715884105727, 'a,"b"', 'nan', '2024-05-23 16:00:00.914', [], false,
            12.00),
        (9007199254740993, '', 'inf', '2024-05-23 16:00:00.000001', [NULL, 'a, b'], NULL, -0.01),
        (NULL, NULL, 1e-7, NULL, NULL, NULL, NULL),
        (0, E'two\\nlines | pipe', 1e22, 'infinity', ['é'], true, 0)
    ) t(n, text, x, seen, flags, yes, price)"""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def written(
    engine: duckdb.DuckDBPyConnection,
    sql: str,
    form: str,
    parameters: dict[str, object] | None = None,
    **options: Any,
) -> str:
    [statement] = check_read_only(engine, sql)
    stream = io.StringIO(newline="")
    result = open_result(engine, statement, parameters, nested_as_json=form in JSON_FORMATS)
    rows = write_result(result, form, stream, **options)
    answer = Answer(statement, rows, result)
    explain(engine, [answer], Asked(DEFAULT_TARGET, None, {}, {}), stream, io.StringIO(), options.get("width"))
    return stream.getvalue()


def test_csv(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, VALUES, "csv") == (
        "n,text,x,seen,flags,yes,price\n"
        '1,plain,1.5,2024-05-23 16:00:00,"[gap, wrapped]",true,0.10\n'
        '-170141183460469231731687303715884105727,"a,""b""",nan,2024-05-23 16:00:00.914000,[],false,12.00\n'
        '9007199254740993,"",inf,2024-05-23 16:00:00.000001,"[NULL, \'a, b\']",,-0.01\n'
        ",,1e-07,,,,\n"
        '0,"two\nlines | pipe",1e+22,infinity,[é],true,0.00\n'
    )


def test_json(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, VALUES, "json") == (
        "[\n"
        '{"n": 1, "text": "plain", "x": 1.5, "seen": "2024-05-23 16:00:00", "flags": ["gap","wrapped"], '
        '"yes": true, "price": 0.10},\n'
        '{"n": -170141183460469231731687303715884105727, "text": "a,\\"b\\"", "x": null, '
        '"seen": "2024-05-23 16:00:00.914000", "flags": [], "yes": false, "price": 12.00},\n'
        '{"n": 9007199254740993, "text": "", "x": null, "seen": "2024-05-23 16:00:00.000001", '
        '"flags": [null,"a, b"], "yes": null, "price": -0.01},\n'
        '{"n": null, "text": null, "x": 1e-07, "seen": null, "flags": null, "yes": null, "price": null},\n'
        '{"n": 0, "text": "two\\nlines | pipe", "x": 1e+22, "seen": "infinity", "flags": ["é"], "yes": true, '
        '"price": 0.00}\n'
        "]\n"
    )


def test_markdown(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, f"SELECT n, text, x FROM ({VALUES})", "markdown") == (
        "| n | text | x |\n"
        "| ---: | --- | ---: |\n"
        "| 1 | plain | 1.5 |\n"
        '| -170141183460469231731687303715884105727 | a,"b" | nan |\n'
        "| 9007199254740993 |  | inf |\n"
        "|  |  | 1e-07 |\n"
        "| 0 | two<br>lines \\| pipe | 1e+22 |\n"
    )


def test_table(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, f"SELECT text, n, x FROM ({VALUES}) WHERE n > -1 OR n IS NULL", "table") == (
        "text                              n      x\n"
        "──────────────────────────────────────────\n"
        "plain                             1    1.5\n"
        "                   9007199254740993    inf\n"
        "NULL                           NULL  1e-07\n"
        "two\\nlines | pipe                 0  1e+22\n"
    )


def test_a_table_wraps_texts_and_says_what_it_leaves_out(engine: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT i, 'x' AS a, repeat('long ', 9) AS b, 2 AS c, 3 AS d FROM range(1245) t(i) ORDER BY i"
    assert written(engine, sql, "table", width=32, limit=1) == (
        "i  a  b\n"
        "────────────────────────────────\n"
        "0  x  long long long long long\n"
        "      long long long long\n"
        "… 2 more columns: c, d\n"
        "  (--format lines)\n"
        "1,245 rows, 1 shown\n"
    )
    assert written(engine, "SELECT 1 AS a LIMIT 0", "table") == "a\n─\n"
    assert written(engine, "SELECT 1 AS a UNION ALL SELECT 2 ORDER BY 1", "table", limit=2) == "a\n─\n1\n2\n"


def test_lines_format_shows_every_column(engine: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT i AS n, 'word ' || repeat('long ', 9) AS text, NULL AS nothing FROM range(3) t(i) ORDER BY i"
    assert written(engine, sql, "lines", width=40, limit=1) == (
        "── row 1 ────────────────────\n"
        "n        0\n"
        "text     word long long long long long\n"
        "         long long long long\n"
        "nothing  NULL\n"
        "3 rows, 1 shown\n"
    )
    assert written(engine, "SELECT 'a\x1b[1m' AS a, '' AS b", "lines") == (
        "── row 1 ────────────────────\na  a\\x1b[1m\nb\n"
    )
    assert written(engine, "SELECT 1 AS a WHERE false", "lines") == ""
    assert "Empty Result" in written(engine, "EXPLAIN SELECT 1 WHERE false", "lines")


def test_no_rows_and_limits(engine: duckdb.DuckDBPyConnection) -> None:
    none = "SELECT 1 AS a WHERE false"
    assert written(engine, none, "csv") == "a\n"
    assert written(engine, none, "json") == "[]\n"
    assert written(engine, none, "jsonl") == ""
    assert written(engine, none, "markdown") == "| a |\n| ---: |\n"
    assert written(engine, "FROM range(10)", "csv", limit=2) == "range\n0\n1\n"
    assert json.loads(written(engine, "FROM range(10)", "json", limit=2)) == [{"range": 0}, {"range": 1}]


def test_duplicate_column_names_get_a_number(engine: duckdb.DuckDBPyConnection) -> None:
    sql = 'SELECT 1 AS a, 2 AS a, 3 AS "a ""b"""'
    assert json.loads(written(engine, sql, "json")) == [{"a": 1, "a_1": 2, 'a "b"': 3}]
    assert written(engine, sql, "csv") == 'a,a_1,"a ""b"""\n1,2,3\n'


def test_plans_and_descriptions(engine: duckdb.DuckDBPyConnection) -> None:
    assert "Dummy Scan" in written(engine, "EXPLAIN SELECT 1", "table")
    assert "\\n" not in written(engine, "EXPLAIN SELECT 1", "table")
    assert written(engine, "DESCRIBE SELECT 1 AS a", "csv").splitlines()[1] == "a,INTEGER,YES,,,"
    assert json.loads(written(engine, "PRAGMA version", "json"))[0]["library_version"] == f"v{duckdb.__version__}"


@pytest.mark.parametrize(
    ("value", "text", "as_json"),
    [
        (
            "340282366920938463463374607431768211455::UHUGEINT",
            "340282366920938463463374607431768211455",
            None,
        ),
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
        (
            "{'a': 170141183460469231731687303715884105727}",
            None,
            '{"a":170141183460469231731687303715884105727}',
        ),
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
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)


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


@MANY
@given(text=st.none() | st.text(LETTERS))
def test_csv_is_what_the_engine_writes(
    engine: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, text: str | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "engine.csv"
    sql = "SELECT $text::VARCHAR AS text, 1 AS n"
    engine.execute(f"COPY ({sql}) TO '{path}' (FORMAT csv, HEADER true, NULLSTR '')", {"text": text})
    assert path.read_bytes().decode() == written(engine, sql, "csv", {"text": text})


def test_control_characters_are_escaped(engine: duckdb.DuckDBPyConnection) -> None:
    nasty = "\x1b[31mred\x1b]0;title\x07 \r\b \x9b2J \u202eright-to-left \u2028 tab\t[bold]x[/bold] :smile:"
    shown = written(engine, "SELECT $a AS a", "table", {"a": nasty}, width=200)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert "[bold]x[/bold] :smile:" in shown
    assert "\\x1b[31mred" in shown
    name = written(engine, 'SELECT 1 AS "\x1b[2J"', "table")
    assert name == "\\x1b[2J\n───────\n      1\n"


@given(st.text())
def test_escaped_text_is_printable(text: str) -> None:
    assert all(letter.isprintable() or (letter.isspace() and letter > "\x9f") for letter in escape(text))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=8),
    st.integers(20, 120),
)
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


def test_wide_characters_count_as_two_cells(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, "SELECT '星期五' AS a, 1 AS b", "table") == "a       b\n─────────\n星期五  1\n"


def test_rows_are_streamed(engine: duckdb.DuckDBPyConnection) -> None:
    assert written(engine, "SELECT i FROM range(1000000000000) t(i)", "csv", limit=1) == "i\n0\n"


def test_an_unknown_format_suggests_the_nearest_name() -> None:
    assert check_format("csv") == "csv"
    with pytest.raises(QueryError) as error:
        check_format("markdwn")
    assert str(error.value) == "no format markdwn\nnearest: markdown"
