"""Output on a narrow terminal: no line is too wide."""

from __future__ import annotations

import io
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import warehouse
from warehouse.project.project import Project
from warehouse.reader import finding, table_info
from warehouse.reader.connection import connect
from warehouse.reader.findings import print_findings
from warehouse.reader.named_queries import load_queries
from warehouse.reader.text_table import for_terminal
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

QUERIES = load_queries(Project.open(None).query_folders)
WIDTH = 60


class Screen(io.StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def too_wide(text: str) -> list[str]:
    assert text
    return [line for line in text.splitlines() if cell_len(line) > WIDTH]


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_of_a_named_query_fits(built: Path, name: str) -> None:
    query = QUERIES[name]
    given = {one.name: "GPU-1" for one in query.parameters.values() if one.required}
    stream = io.StringIO()
    run_query(built, query=query, parameters=given, format="table", stream=stream, width=WIDTH, limit=5)
    assert too_wide(stream.getvalue()) == []


def test_lists_of_tables_queries_and_findings_fit(built: Path) -> None:
    stream = io.StringIO()
    with closing(connect(built)) as connection:
        tables = [finding.Found(table) for table in table_info.list_tables(connection)]
    finding.print_by_question(tables, stream, width=WIDTH)
    finding.print_queries(QUERIES, stream, width=WIDTH)
    print_findings(warehouse.Warehouse(built).findings(), stream, WIDTH)
    assert too_wide(stream.getvalue()) == []


def test_lines_are_wrapped_only_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    lines = ["short  and  aligned", f"  {'a word ' * 12}", "漢字 " * 20]
    said = "".join(for_terminal(lines, Screen()))
    assert too_wide(said) == []
    assert said.startswith("short  and  aligned\n  a word")
    assert said.split() == " ".join(lines).split()
    assert "".join(for_terminal(lines, io.StringIO())) == "\n".join([*lines, ""])
