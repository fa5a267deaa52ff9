"""Input known from psql and DuckDB works in our shell."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from warehouse.base.errors import QueryError
from warehouse.project.project import Project
from warehouse.reader.connection import connect
from warehouse.reader.named_queries import load_queries
from warehouse.reader.shell.session import Session


@pytest.fixture
def session(target: Path) -> Iterator[Session]:
    connection = connect(target, json_errors=True)
    queries = load_queries(Project.open(None).query_folders)
    yield Session(connection, target, queries, lambda name: f"path of {name}", io.StringIO(), width=80)
    connection.close()


def said(session: Session, text: str) -> str:
    assert session.is_whole(text)
    session.out = io.StringIO()
    session.run(text)
    return session.out.getvalue()


@pytest.mark.parametrize("word", ["exit", "quit", "QUIT;", ".exit", ".quit", "\\q"])
def test_exit_needs_no_semicolon(session: Session, word: str) -> None:
    assert said(session, word) == ""
    assert session.done


@pytest.mark.parametrize("word", ["help", "help;", ".help", "\\h", "\\?"])
def test_help_lists_the_commands(session: Session, word: str) -> None:
    assert "leave, as Ctrl-D does" in said(session, word)


@pytest.mark.parametrize("word", ["\\d", "\\dt", ".tables"])
def test_tables_are_listed(session: Session, word: str) -> None:
    assert "metrics.port_hour" in said(session, word)
    assert "topology.ports" not in said(session, f"{word} metrics")


def test_a_schema_is_described(session: Session) -> None:
    assert "access_in_bytes" in said(session, ".schema metrics.leaf_hour")


def test_values_of_a_named_query_are_assigned_in_order(session: Session) -> None:
    assert said(session, ":nic GPU-1") == said(session, "\\run nic --server GPU-1") != ""
    with pytest.raises(QueryError, match="nic takes"):
        said(session, ":nic GPU-1 a b c d e f g")
    with pytest.raises(QueryError, match="no query nick"):
        said(session, ":nick GPU-1")


def test_one_word_of_a_query_name_gets_a_hint(session: Session) -> None:
    with pytest.raises(QueryError) as told:
        said(session, ":hotest")
    assert told.value.hint == "nearest: hottest-uplinks"


def test_statements_of_a_file(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "two.sql"
    file.write_text("SELECT 1 AS a;\nSELECT 2 AS b;\n", encoding="utf-8")
    assert said(session, f"\\i {file}").split() == ["a", "─", "1", "b", "─", "2"]
    with pytest.raises(QueryError, match="cannot be read"):
        said(session, f"\\i {tmp_path}/none.sql")
    with pytest.raises(QueryError, match="needs a file"):
        said(session, "\\i")


def test_a_column_after_a_dot_on_a_new_line_is_still_sql(session: Session) -> None:
    assert not session.is_whole("SELECT 1 AS helpful")


def test_a_table_names_the_command_of_the_shell_that_shows_the_rest(session: Session) -> None:
    session.width = 20
    assert "(\\x)" in said(session, "FROM metrics.leaf_hour;")


def test_a_null_has_its_reason_in_the_shell(session: Session) -> None:
    sql = "SELECT max(in_bytes) FROM metrics.leaf_hour WHERE switch = 'Leaf1';"
    assert said(session, sql).endswith("note: no switch Leaf1 in metrics.leaf_hour; near: Leaf-1\n")
