"""docs/python.md: its reference is that of the docstrings, and its examples run.

`WRITE_DOCS=1 pytest tests/api/test_python_page.py` writes the reference.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import warehouse
from tests.test_documented_commands import ANSWERS
from warehouse.api.answer import Answer
from warehouse.api.warehouse import Table, Warehouse

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
MARKS = (
    "<!-- reference: written by WRITE_DOCS=1 pytest tests/api/test_python_page.py -->\n",
    "<!-- end of reference -->",
)
FUNCTIONS = (warehouse.build, warehouse.open, warehouse.query)
ENDINGS = {
    "How is a table exported and cited?": r"tables\n.*uplink_balance\"; 36 rows, .*citation [0-9a-f]{12}",
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


def _signature(function: Any) -> str:
    shown = inspect.signature(function)
    names = [str(one.replace(annotation=one.empty)) for one in shown.parameters.values() if one.name != "self"]
    return ", ".join(name for name in names if name != "/")


def _text(thing: Any) -> str:
    """Return a docstring without its sections, which `help` shows."""
    return re.split(r"\n\n(?:Parameters|Raises|Returns)\n-+\n", inspect.getdoc(thing) or "")[0]


def _reference() -> str:
    parts = [f"### warehouse.Warehouse({_signature(Warehouse)})\n\n{_text(Warehouse)}"]
    for owner, name in ((Warehouse, ""), (Answer, "Answer"), (Table, "Table")):
        parts += [f"### {name}\n\n{_text(owner)}"] if name else []
        for key, member in vars(owner).items():
            if key.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
                continue
            called = f"({_signature(member)})" if inspect.isfunction(member) else ""
            parts.append(f"**`.{key}{called}`**: {_text(member)}")
    for function in FUNCTIONS:
        parts.append(f"### warehouse.{function.__name__}({_signature(function)})\n\n{_text(function)}")
    lines = textwrap.TextWrapper(120, break_long_words=False, break_on_hyphens=False)
    paragraphs = "\n\n".join(parts).split("\n\n")
    return "\n\n".join(one if one[0] == "#" else lines.fill(one) for one in paragraphs) + "\n\n"


def test_the_reference_is_that_of_the_docstrings() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    shown, after = rest.split(MARKS[1])
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(before + MARKS[0] + _reference() + MARKS[1] + after, encoding="utf-8")
        shown = _reference()
    assert shown == _reference(), "WRITE_DOCS=1 pytest tests/api/test_python_page.py writes it anew"


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


def test_the_examples_run_and_answer_the_questions_of_the_other_page(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE_TARGET", str(built))
    first, questions = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    assert re.search(r"uplink.*GPU-1.*<small>bytes", shown(first, names), re.DOTALL)
    asked = dict(one.split("\n", 1) for one in questions.removeprefix("# ").split("\n\n# "))
    assert list(asked) == list(ANSWERS)
    for question, code in asked.items():
        said = shown(code, names)
        assert re.search(ENDINGS[question], said), f"{question}\n{said}"
