from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from tests.conftest import call
from warehouse.base.settings import DEFAULT_TARGET
from warehouse.project.project import Project
from warehouse.reader.explanations import Answer, explain
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query
from warehouse.reader.output import write_result
from warehouse.reader.result import Asked, for_people, open_result
from warehouse.reader.units import named_unit, result_units, unit_of
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


def table(connection: duckdb.DuckDBPyConnection, sql: str, query: Query | None = None, width: int = 80) -> str:
    [statement] = check_read_only(connection, sql)
    stream = io.StringIO()
    result = for_people(open_result(connection, statement), query)
    rows = write_result(result, "table", stream, width=width)
    asked = Asked(DEFAULT_TARGET, query, {}, {})
    explain(connection, [Answer(statement, rows, result)], asked, stream, io.StringIO(), width)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("in_bytes", "B"),
        ("bytes", "B"),
        ("Mean_BPS", "bit/s"),
        ("wait_seconds", "s"),
        ("rtt_p50_ns", "ns"),
        ("leaving_share", "share"),
        ("duty_cycle", "share"),
        ("gpu_hours", None),
        ("count_star()", None),
        ("sum(in_bytes)", None),
        ("switch", None),
    ],
)
def test_units_come_from_the_suffix_of_a_name(
    connection: duckdb.DuckDBPyConnection, name: str, unit: str | None
) -> None:
    assert result_units(connection, [name]) == [unit]


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


def _query(tmp_path: Path, header: str) -> Query:
    from warehouse.reader.named_queries import read_query

    path = tmp_path / "mine.sql"
    path.write_text(f"/* ---\nabout: Mine.\n{header}\n--- */\nSELECT 1", encoding="utf-8")
    return read_query(path)


LONG = "SELECT 'Leaf-1' AS leaf, repeat('GPU-1 ', 20) AS who, 5 AS ids, 0.5 AS ratio, 1 AS other, NULL AS wait"


def test_answer_columns_are_not_cut_and_omitted_columns_are_named(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    header = "answer: [leaf, ratio, who, wait]\nranked: ratio desc"
    said = table(connection, LONG, _query(tmp_path, header), width=60)
    assert said == (
        "leaf    ratio ↓  wait\n"
        "─────────────────────\n"
        "Leaf-1      0.5  NULL\n"
        "  who: GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1\n"
        "    GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1 GPU-1\n"
        "    GPU-1 GPU-1\n"
        "… 2 more columns: ids, other (--format lines)\n"
    )


def test_a_hidden_sort_column_is_named(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = _query(tmp_path, "answer: [leaf]\nranked: ids + other desc")
    assert table(connection, LONG, query).startswith("by ids + other, largest first\nleaf\n")


def test_neighbors_in_the_ranking_column_differ(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    moved = (
        "CASE switch WHEN 'Leaf-1' THEN greatest(in_bytes, 31100000000000) ELSE greatest(in_bytes, 31090000000000) END"
    )
    sql = f"SELECT switch, {moved} AS moved_bytes FROM metrics.leaf_hour ORDER BY 1"
    assert table(connection, sql, _query(tmp_path, "ranked: moved_bytes desc")).splitlines()[2:] == [
        "Leaf-1       31.10 TB",
        "Leaf-2       31.09 TB",
    ]


def test_bytes_in_a_sentence_have_units(connection: duckdb.DuckDBPyConnection) -> None:
    said = table(connection, "SELECT 'in 6785715334821 B, out 62 B, port 1234 Bx' AS evidence")
    assert said.endswith("in 6.79 TB, out 62 B, port 1234 Bx\n")


def test_texts_with_one_beginning_are_cut_in_the_middle(connection: duckdb.DuckDBPyConnection) -> None:
    said = table(connection, "SELECT 'llama2-7b-new-5b-2b1ef-worker-' || unnest([1, 2]) AS pod, 'x' AS a", width=28)
    assert said.splitlines()[2:] == ["llama2-7b-ne…1ef-worker-1  x", "llama2-7b-ne…1ef-worker-2  x"]


@pytest.mark.parametrize("width", [24, 60, 80])
def test_no_line_is_wider_than_the_terminal(connection: duckdb.DuckDBPyConnection, tmp_path: Path, width: int) -> None:
    wide = "SELECT '服务器' AS 名字, repeat('交换机端口', 30) AS 端口, repeat('x', 200) AS one, 6665677503028 AS bytes"
    query = _query(tmp_path, "answer: [名字, bytes, 端口, one]")
    for said in (table(connection, wide, query, width), table(connection, wide, width=width)):
        assert max(map(cell_len, said.splitlines())) <= width, said


def test_raw_writes_exact_values_and_all_columns(target: Path, tmp_path: Path) -> None:
    query = _query(tmp_path, "answer: [switch]")._replace(sql="SELECT switch, in_bytes FROM metrics.leaf_hour LIMIT 1")
    stream = io.StringIO()
    run_query(target, query=query, format="table", stream=stream, width=80, raw=True)
    assert stream.getvalue() == "switch  in_bytes\n────────────────\nLeaf-1     12500\n"


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


def test_lines_have_all_columns_with_their_units(connection: duckdb.DuckDBPyConnection) -> None:
    [statement] = check_read_only(connection, "SELECT cluster, in_bytes FROM metrics.leaf_hour LIMIT 1")
    stream = io.StringIO()
    write_result(for_people(open_result(connection, statement)), "lines", stream, width=80)
    assert stream.getvalue().splitlines()[1:] == ["cluster   demo", "in_bytes  12.5 kB"]


def test_table_format_does_not_depend_on_the_output(target: Path, tmp_path: Path) -> None:
    """The format decides, not the terminal; without one, a pipe gets csv."""
    sql = "SELECT switch, in_bytes FROM metrics.leaf_hour ORDER BY ALL LIMIT 1"
    for asked in (["--format", "table"], ["--format", "lines"], ["-o", "answer.txt"]):
        said = call("sql", sql, *asked, "-t", target, cwd=tmp_path)
        assert "12.5 kB" in (said.out or (tmp_path / "answer.txt").read_text(encoding="utf-8"))
    assert call("sql", sql, "-t", target, cwd=tmp_path).out == "switch,in_bytes\nLeaf-1,12500\n"
    assert "12500" in call("sql", sql, "--format", "table", "--raw", "-t", target, cwd=tmp_path).out
