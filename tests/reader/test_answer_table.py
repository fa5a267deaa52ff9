"""Answers for people: numbers with units, tables and lines that fit the terminal, exact values for programs."""

from __future__ import annotations

import io
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import warehouse
from tests.conftest import call
from warehouse.project.project import Project
from warehouse.reader import finding, table_info
from warehouse.reader.connection import connect
from warehouse.reader.findings import print_findings
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, load_queries, read_query
from warehouse.reader.output import write_result
from warehouse.reader.readable import header_unit, readable
from warehouse.reader.result import for_people, open_result
from warehouse.reader.text_table import for_terminal
from warehouse.reader.units import named_unit, result_units, unit_of
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

QUERIES = load_queries(Project.open(None).query_folders)
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
        (
            ["0.0394", "0.12", "0.00001", "-0.000002", "0"],
            "share",
            ["3.9 %", "12.0 %", "0.0010 %", "-0.00020 %", "0 %"],
        ),
        (["42.5"], "%", ["42.5 %"]),
        (["45.8", "7980", "-7980", "3599.9", "187200"], "s", ["45.8 s", "2 h 13 min", "-2 h 13 min", "1 h", "2 d 4 h"]),
        (["965"], "ms", ["965 ms"]),
        (["5.768779759139165", "12.5", "655"], None, ["5.769", "12.50", "655"]),
        (["0.9299", "1.004", "0.5"], None, ["0.9299", "1.004", "0.5000"]),
        (["0.5", "6554"], None, ["0.5", "6,554"]),
        (["0.00001234", "123456789.5"], None, ["1.234e-5", "123,456,790"]),
        (["5130", "7"], "count", ["5,130", "7"]),
    ],
)
def test_readable_numbers(values: list[str | None], unit: str | None, said: list[str | None]) -> None:
    assert readable(values, unit) == said
    assert readable(["20240524", "7"], None, exact=True) == ["20240524", "7"]
    assert [header_unit(one) for one in ("1/s", "B", "share", "count", None)] == [" [1/s]", "", "", "", ""]


def test_units_come_from_the_suffix_of_a_name(connection: duckdb.DuckDBPyConnection) -> None:
    names = {
        "in_bytes": "B", "Mean_BPS": "bit/s", "wait_seconds": "s", "rtt_p50_ns": "ns", "leaving_share": "share",
        "duty_cycle": "share", "gpu_hours": None, "count_star()": None, "sum(in_bytes)": None, "switch": None,
    }  # fmt: skip
    assert result_units(connection, list(names)) == list(names.values())


def test_suffixes_state_the_units_of_all_contracts() -> None:
    """No column of a shipped table has a suffix that its contract contradicts."""
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
    assert table(connection, "SELECT 'in 6785715334821 B, 62 B, port 1234 Bx' AS x").endswith(
        "in 6.79 TB, 62 B, port 1234 Bx\n"
    )


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
    said = table(connection, "SELECT cluster, in_bytes FROM metrics.leaf_hour LIMIT 1", form="lines")
    assert said.splitlines()[1:] == ["cluster   demo", "in_bytes  12.5 kB"]


@pytest.mark.parametrize("width", [24, 60, 80])
def test_no_line_is_wider_than_the_terminal(connection: duckdb.DuckDBPyConnection, tmp_path: Path, width: int) -> None:
    wide = "SELECT '服务器' AS 名字, repeat('交换机 端口 ', 30) AS 端口, repeat('x', 99) AS one, 6665677503028 AS bytes"
    for said in (table(connection, wide, width=width), table(connection, LONG, width=width)):
        assert max(map(cell_len, said.splitlines())) <= width, said


@pytest.mark.parametrize("name", ["findings", "hour-summary", "nic", "suspect-links", "task-bytes", "traffic-jobs"])
def test_the_answer_of_a_named_query_fits(built: Path, name: str) -> None:
    query = QUERIES[name]
    given = {one.name: "GPU-1" for one in query.parameters.values() if one.required}
    stream = io.StringIO()
    run_query(built, query=query, parameters=given, format="table", stream=stream, width=WIDTH, limit=5)
    assert max(map(cell_len, stream.getvalue().splitlines())) <= WIDTH


def test_lists_of_tables_queries_and_findings_fit(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with closing(connect(built)) as connection:
        tables = [finding.Found(one) for one in table_info.list_tables(connection)]
    finding.print_by_question(tables, stream, width=WIDTH)
    finding.print_queries(QUERIES, stream, width=WIDTH)
    print_findings(warehouse.Warehouse(built).findings(), stream, WIDTH)
    assert max(map(cell_len, stream.getvalue().splitlines())) <= WIDTH

    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    lines = ["short  and  aligned", f"  {'a word ' * 12}".rstrip()]
    said = "".join(for_terminal(lines, stream))
    assert said.startswith("short  and  aligned\n  a word")
    assert max(map(len, said.splitlines())) <= WIDTH
    assert said.split() == " ".join(lines).split()
    assert "".join(for_terminal(lines, io.StringIO())) == "\n".join([*lines, ""])


def test_the_format_decides_not_the_output(target: Path, tmp_path: Path) -> None:
    """Numbers have units in tables and lines alone; without a format, a pipe gets csv."""
    sql = "SELECT switch, in_bytes FROM metrics.leaf_hour ORDER BY ALL LIMIT 1"
    for asked in (["--format", "table"], ["--format", "lines"], ["-o", "answer.txt"]):
        said = call("sql", sql, *asked, "-t", target, cwd=tmp_path)
        assert "12.5 kB" in (said.out or (tmp_path / "answer.txt").read_text(encoding="utf-8"))
    assert call("sql", sql, "-t", target, cwd=tmp_path).out == "switch,in_bytes\nLeaf-1,12500\n"
    raw = call("sql", sql, "--format", "table", "--raw", "-t", target, cwd=tmp_path)
    assert raw.out == "switch  in_bytes\n────────────────\nLeaf-1     12500\n"


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "markdown"])
def test_formats_for_programs_keep_values_and_columns(target: Path, tmp_path: Path, form: str) -> None:
    sql = "SELECT switch, in_bytes, cluster FROM metrics.leaf_hour ORDER BY ALL"
    query = _query(tmp_path, "answer: [switch]\nranked: in_bytes desc")._replace(sql=sql)
    texts = []
    for asked in ({"query": query}, {"sql": sql}):
        stream = io.StringIO()
        run_query(target, format=form, stream=stream, **asked)
        texts.append(stream.getvalue())
    assert texts[0] == texts[1]
    assert "12500" in texts[0]
    assert "demo" in texts[0]
