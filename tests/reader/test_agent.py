"""Agent mode of `warehouse sql`: Markdown with types, units and the number of rows; errors as one line of JSON."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import Command
from warehouse.reader.agent import SWITCH

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


@pytest.mark.parametrize("variables", VARIANTS)
def test_variables_switch_the_form_and_that_of_duckdb_wins(
    variables: str, target: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, _, value in (one.partition("=") for one in variables.split()):
        monkeypatch.setenv(name, value)
    said = command("sql", SQL, "-t", target)
    assert (said.status, said.out == ANSWER, said.err) == (0, VARIANTS[variables], "")


def test_a_format_or_file_wins(target: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_AGENT", "1")
    assert command("sql", "SELECT 1 AS a", "--format", "csv", "-t", target).out == "a\n1\n"
    assert command("sql", "SELECT 1 AS a", "-o", tmp_path / "a.csv", "-t", target).status == 0
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "a\n1\n"
    for words in (("--json",), ("--format=csv", "--lmit", "1"), ("-o", "a.csv", "--nonsense")):
        assert command("sql", "SELECT x", "-t", target, *words).err.startswith("error: ")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("sql 'FROM metrics.leaf_hourz'", {"exception_type": "Query", "position": "5",
            "exception_message": "no table metrics.leaf_hourz, at 1:6", "hint": "nearest: metrics.leaf_hour"}),
        ("sql -q nicc --server GPU-1", {"exception_message": "no query nicc", "hint": "nearest: nic"}),
        ("sql --lmit 3", {"exception_message": "unrecognized arguments: --lmit", "hint": "nearest: --limit"}),
        ("build --threads many", {"exception_message": "--threads is 'many', not a number of threads"}),
    ],
)  # fmt: skip
def test_an_error_is_one_line_of_json(
    line: str, error: dict[str, str], target: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AI_AGENT", "1")
    monkeypatch.setenv("WAREHOUSE_TARGET", str(target))
    said = command(*shlex.split(line))
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    found = json.loads(said.err)
    assert {key: text for key, text in error.items() if not found.get(key, "").startswith(text)} == {}, found


def test_a_long_answer_says_how_much_is_missing(target: Path, command: Command) -> None:
    def last(sql: str, *more: str) -> str:
        return command("sql", sql, "--format", "agent", "-t", target, *more).out.splitlines()[-1]

    assert last("FROM range(201)") == "first 200 of 201 rows"
    assert last("FROM range(201)", "--limit", "201") == "201 rows"
    assert last("SELECT repeat('x', 600) AS x FROM range(50)") == "first 34 of 50 rows"
