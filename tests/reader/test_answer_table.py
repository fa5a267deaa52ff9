"""Answers for people: numbers with units, tables and lines that fit the terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.conftest import call
from warehouse.project.project import Project
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, read_query
from warehouse.reader.output import write_result
from warehouse.reader.readable import header_unit, readable
from warehouse.reader.result import for_people, open_result
from warehouse.reader.text_table import print_rows
from warehouse.reader.units import named_unit, result_units, unit_of
from warehouse.reader.user_query import run_query
from warehouse.reader.value_text import Column

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

WIDTH = 60
LONG = "SELECT 'Leaf-1' AS leaf, repeat('GPU-1 ', 20) AS who, 5 AS ids, 0.5 AS ratio, 1 AS other, NULL AS wait"


def table(
    connection: duckdb.DuckDBPyConnection, sql: str, query: Query | None = None, width: int = 80, form: str = "table"
) -> str:
    [statement] = check_read_only(connection, sql)
    stream = io.StringIO()
    write_result(for_people(open_result(connection, statement), query), form, stream, width=width)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        (["6665677503028", "412", "0", None], "B", ["6.67 TB", "412 B", "0 B", None]),
        (["999999", "166000000000000", "1.5e9", "nan"], "B", ["1.00 MB", "166 TB", "1.50 GB", "nan"]),
        (["12340000000.5"], "bit/s", ["12.3 Gb/s"]),
        (["0.0394", "0.12", "0.00001", "0"], "share", ["3.9 %", "12.0 %", "0.0010 %", "0 %"]),
        (["45.8", "7980", "-7980", "3599.9", "187200"], "s", ["45.8 s", "2 h 13 min", "-2 h 13 min", "1 h", "2 d 4 h"]),
        (["965"], "ms", ["965 ms"]),
        (["0.9299", "5.768779759139165", "655"], None, ["0.9299", "5.769", "655"]),
        (["0.00001234", "123456789.5"], None, ["1.234e-5", "123,456,790"]),
        (["5130", "7"], "count", ["5,130", "7"]),
    ],
)
def test_readable_numbers(values: list[str | None], unit: str | None, said: list[str | None]) -> None:
    assert readable(values, unit) == said
    assert readable(["20240524", "7"], None, exact=True) == ["20240524", "7"]
    assert [header_unit(one) for one in ("1/s", "B", "share", "count", None)] == [" [1/s]", "", "", "", ""]


def test_units_come_from_the_suffix_of_a_name_and_agree_with_all_contracts(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    names = {"in_bytes": "B", "Mean_BPS": "bit/s", "rtt_p50_ns": "ns", "leaving_share": "share", "sum(in_bytes)": None}
    assert result_units(connection, list(names)) == list(names.values())
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
    assert table(connection, LONG, query, WIDTH) == (
        "leaf    ratio ↓  wait\n"
        "─────────────────────\n"
        "Leaf-1      0.5  NULL\n"
        "… 3 more columns: who, ids, other (--format lines)\n"
    )
    assert table(connection, LONG, _query(tmp_path, "answer: [leaf, who, ratio, ids, wait]"), 40) == (
        "leaf    ratio  ids  wait\n"
        "────────────────────────\n"
        "Leaf-1    0.5    5  NULL\n"
        "  who: GPU-1 GPU-1 GPU-1 GPU-1 GPU-1\n"
        "    GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1\n"
        "    GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1\n"
        "    GPU-1 GPU-1 GPU-1\n"
        "… 1 more column: other (--format lines)\n"
    )
    hidden = _query(tmp_path, "answer: [leaf]\nranked: ids + other desc")
    assert table(connection, LONG, hidden).startswith("by ids + other, largest first\nleaf\n")


def test_lines_have_all_columns_with_their_units(connection: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT repeat('long ', 9) AS text, NULL AS nothing, 'a\x1b[1m' AS odd, in_bytes FROM metrics.leaf_hour"
    assert table(connection, f"{sql} LIMIT 1", width=40, form="lines") == (
        "── row 1 ────────────────────\n"
        "text      long long long long long long\n"
        "          long long long\n"
        "nothing   NULL\n"
        "odd       a\\x1b[1m\n"
        "in_bytes  12.5 kB\n"
    )
    assert "Empty Result" in table(connection, "EXPLAIN SELECT 1 WHERE false", form="lines")


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


def test_control_characters_are_escaped(connection: duckdb.DuckDBPyConnection) -> None:
    nasty = "\x1b[31mred\x1b]0;title\x07 \r\b \x9b2J \u202eright-to-left \u2028 tab\t[bold]x[/bold] :smile:"
    shown = table(connection, f"SELECT '{nasty}' AS \"\x1b[2J\"", width=200)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert "[bold]x[/bold] :smile:" in shown
    assert "\\x1b[31mred" in shown
    assert shown.startswith("\\x1b[2J\n")


def test_numbers_have_units_for_people_alone(target: Path, tmp_path: Path) -> None:
    sql = "SELECT switch, in_bytes FROM metrics.leaf_hour ORDER BY ALL LIMIT 1"
    for asked in (["--format", "table"], ["--format", "lines"], ["-o", "answer.txt"]):
        said = call("sql", sql, *asked, "-t", target, cwd=tmp_path)
        assert "12.5 kB" in (said.out or (tmp_path / "answer.txt").read_text(encoding="utf-8"))
    query = _query(tmp_path, "answer: [switch]\nranked: in_bytes desc")._replace(sql=sql)
    for form in ("csv", "json", "jsonl", "markdown"):
        named, free = io.StringIO(), io.StringIO()
        run_query(target, query=query, format=form, stream=named)
        run_query(target, sql, format=form, stream=free)
        assert named.getvalue() == free.getvalue()
        assert "12500" in named.getvalue()
