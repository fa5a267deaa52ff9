"""Errors show the user's line with carets below the wrong word."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from warehouse.base.error_text import error_text
from warehouse.base.errors import QueryError
from warehouse.reader.user_query import run_query

if TYPE_CHECKING:
    from pathlib import Path

LONG = ", ".join(f"'{'漢字' * 4}' AS c{number}" for number in range(20))


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT swtch FROM metrics.leaf_hour", "swtch"),
        ("SELECT 1,\n  '漢字 é', swtch\nFROM metrics.leaf_hour", "swtch"),
        ("SELECT 1,\n\t'a',\tswtch\nFROM metrics.leaf_hour", "swtch"),
        ("SELECT '漢';\n SELECT '字' AS b, abss(1)", "abss(1)"),
        (f"SELECT {LONG}, swtch, {LONG} FROM metrics.leaf_hour", "swtch"),
        ("SELECT 1; DROP TABLE x", "DROP"),
        ("SELECT 'abc\x1b[31m', swtch FROM metrics.leaf_hour", "swtch"),
        ("SELECT switch FROM\n metrics.leaf_hours", "metrics.leaf_hours"),
    ],
)
def test_carets_are_below_the_wrong_word(target: Path, sql: str, word: str, width: int) -> None:
    with pytest.raises(QueryError) as raised:
        run_query(target, sql, format="table", stream=io.StringIO())
    lines = error_text(raised.value, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    carets = next(line for line in lines if line.strip("^ ") == "")
    line = lines[lines.index(carets) - 1]
    before = line[: line.index(word)]
    assert carets == " " * cell_len(before) + "^" * cell_len(word)
    assert "\x1b" not in error_text(raised.value, width)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("PRAGMA table_info('/x')", "no table /x"),
        ("SHOW nope", "no table nope"),
        ('FROM "Nope" AS n', 'no table "Nope", at 1:6'),
    ],
)
def test_a_missing_table_is_named_as_it_is_written(target: Path, sql: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        run_query(target, sql, format="table", stream=io.StringIO())
    assert raised.value.message.startswith(message)


def test_the_error_may_be_at_the_end_of_the_text(target: Path) -> None:
    with pytest.raises(QueryError) as raised:
        run_query(target, "SELECT 1 +", format="table", stream=io.StringIO())
    assert error_text(raised.value).splitlines()[1:] == ["       SELECT 1 +", "                ^"]
