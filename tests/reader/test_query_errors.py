"""Errors of a query: a sentence with place and nearest name, and the user's line with carets below the wrong word."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from warehouse.base.error_text import error_text
from warehouse.base.errors import QueryError
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

LONG = ", ".join(f"'{'漢字' * 4}' AS c{number}" for number in range(20))
NEAR = "\nnearest: "
PORTS = "no column swtch in topology.ports"


def error_of(target: Path, sql: str | None = None, **options: Any) -> QueryError:
    with pytest.raises(QueryError) as raised:
        run_query(target, sql, stream=io.StringIO(), **options)
    return raised.value


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select swtch from topology.ports", f"{PORTS}, at 1:8{NEAR}switch"),
        ("select 'é',\n  swtch from topology.ports", f"{PORTS}, at 2:3{NEAR}switch"),
        ("explain select swtch from topology.ports", f"{PORTS}, at 1:16{NEAR}switch"),
        ("from metrics.prot_hour", f"no table metrics.prot_hour, at 1:6{NEAR}metrics.port_hour"),
        ("from port_hour", "no table port_hour, at 1:6\nwrite metrics.port_hour: a table is named with its schema"),
        ('FROM "Nope" AS n', 'no table "Nope", at 1:6'),
        ("PRAGMA table_info('/x')", "no table /x"),
        ("selec 1", 'syntax error at or near "selec", at 1:1'),
        ("select 'abc", "unterminated string literal, at 1:8"),
        ("select abss(1)", f"no function abss, at 1:8{NEAR}abs"),
        ("select 1::intt", f"no type intt, at 1:11{NEAR}int"),
        ("select error('no luck')", "no luck"),
        (
            "from read_csv('/etc/passwd')",
            "/etc/passwd is outside the target and the data folders\n-d DIR, in Python data=[DIR], lets files",
        ),
        ("SELECT '\udcff'", "the query is not UTF-8 text"),
        (" -- nothing\n", "0 statements, but an answer is of one"),
    ],
)
def test_errors_have_position_and_nearest_name(target: Path, sql: str, message: str) -> None:
    for form in ("table", "json"):
        assert str(error_of(target, sql, format=form)).startswith(message)


def test_errors_in_a_file_name_the_file(target: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.sql"
    path.write_text("-- why\nSELECT\n    swtch\nFROM metrics.port_hour", encoding="utf-8")
    assert str(error_of(target, file=path)) == f"{path}:3:5: no column swtch in metrics.port_hour\nnearest: switch"
    path.write_text("SELECT 1;\n COPY (SELECT 1) TO 'x'", encoding="utf-8")
    assert str(error_of(target, file=path, format="table")).startswith(f"{path}:2:2: COPY is refused")
    assert "nowhere.sql cannot be read" in str(error_of(target, file=tmp_path / "nowhere.sql"))


def test_a_moved_target_is_reported(own_target: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    own_target.rename(moved)
    message = str(error_of(moved, "FROM metrics.port_hour"))
    assert message.endswith("was the target moved? `warehouse relocate` writes its paths anew")
    assert "metrics.port_hour.parquet" in message
    assert run_query(moved, "SELECT count(*) AS n FROM topology.ports", stream=io.StringIO()) == 0


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT 1,\n  '漢字 é\x1b[31m', swtch\nFROM metrics.leaf_hour", "swtch"),
        (f"SELECT {LONG}, swtch, {LONG} FROM metrics.leaf_hour", "swtch"),
        ("SELECT switch FROM\n metrics.leaf_hours", "metrics.leaf_hours"),
    ],
)
def test_carets_are_below_the_wrong_word(target: Path, sql: str, word: str) -> None:
    error = error_of(target, sql, format="table")
    for width in (40, 80):
        lines = error_text(error, width).splitlines()
        assert max(map(cell_len, lines)) <= width
        carets = next(line for line in lines if line.strip("^ ") == "")
        line = lines[lines.index(carets) - 1]
        assert carets == " " * cell_len(line[: line.index(word)]) + "^" * cell_len(word)
        assert "\x1b" not in error_text(error, width)
