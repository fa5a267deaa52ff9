"""docs/python.md names every member of the classes for people, and its examples run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.test_questions import ANSWERS
from warehouse.api.answer import Answer
from warehouse.api.warehouse import Table, Warehouse

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
ENDINGS = {"How is a table exported and cited?": r"tables\n.*uplink_balance\"; 36 rows, .*citation [0-9a-f]{12}"} | {
    "Which links are mis-cabled or carry no data?": r"carries no data outward[^~]*GPU-69",
    "Where are the NICs of a server, and what do they do?": r"mlx5_2.*ens10np0.*Leaf-2.*[\d.]+ [GT]B",
    "Which uplink is the fullest?": r"Leaf-2.*FourHundredGigE1/0/34",
    "Are the spines used evenly?": r"spine-1.*spine-2.*spine-3",
    "Who trains together?": r"GPU-\d+ GPU-\d+",
    "How much does an iteration of a task send, or why does nobody know?": r"mlx5_2.*(ok|shared).*[\d.]+ [GM]B",
    "Which tables are about jobs?": r"metrics\.jobs.*metrics\.job",
    "Where is uplink_balance.cov from?": r"deviation over mean[^~]*raw.port_counters",
    "How long did ITP's jobs wait in the median, or why does nobody know?": r"neither\s+queueing\s+nor\s+start\s+times",
}
"""What the answers of the page show of the sample, in a notebook."""


@pytest.mark.parametrize("owner", [Warehouse, Answer, Table])
def test_every_member_is_on_the_page_and_has_a_docstring(owner: type) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, member in vars(owner).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            assert re.search(rf"`\.{name}[`(]", page), name
            assert inspect.getdoc(member), name


@pytest.mark.parametrize("function", [warehouse.build, warehouse.open, warehouse.query])
def test_every_function_is_on_the_page_with_parameters_that_it_has(function: Callable[..., object]) -> None:
    [shown] = re.findall(rf"`warehouse\.{function.__name__}\(([^)]*)\)`", PAGE.read_text(encoding="utf-8"))
    assert set(re.findall(r"\w+", shown)) <= inspect.signature(function).parameters.keys()


def _blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def shown(code: str, names: dict[str, Any]) -> str:
    """Run code and return what a notebook would show of its expressions."""
    text = ""
    for node in ast.parse(code).body:
        if not isinstance(node, ast.Expr):
            exec(ast.unparse(node), names)
            continue
        value = eval(ast.unparse(node), names)
        text += (value._repr_html_() if hasattr(value, "_repr_html_") else str(value)) + "\n"
    return text


@pytest.fixture
def here(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE_TARGET", str(built))


@pytest.mark.usefixtures("here")
def test_the_first_example_runs() -> None:
    assert re.search(r"uplink.*GPU-1.*<small>bytes", shown(_blocks()[0], {}), re.DOTALL)


def test_the_questions_are_those_of_the_other_page() -> None:
    assert re.findall("^# (.*)", _blocks()[1], re.MULTILINE) == list(ANSWERS)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("question", ANSWERS)
def test_a_question_is_answered_with_warehouse_alone(question: str) -> None:
    code = _blocks()[1].split(f"# {question}\n")[1].split("\n\n")[0]
    said = shown(code, {"traces": Warehouse()})
    assert re.search(ENDINGS[question], said), said
