"""Selection of tests by `make quick`: every module and model has some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quick import MOST, ROOT, chosen_tests

MODULES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "warehouse").rglob("*.py"))]


@pytest.mark.parametrize("module", [name for name in MODULES if Path(name).name[0] != "_"])
def test_every_module_has_a_few_tests(module: str) -> None:
    own, *tests = chosen_tests(module)
    assert own == module
    assert 1 <= len(tests) <= MOST + 1
    assert all((ROOT / test).exists() for test in tests)


def test_a_model_selects_its_test_and_a_page_those_of_the_documents() -> None:
    assert chosen_tests("models/metrics/leaf_hour.sql") == ["models/metrics/leaf_hour.test.yaml"]
    assert chosen_tests("docs/trust.md") == ["tests/test_docs.py"]
    assert chosen_tests("tests/test_quick.py") == ["tests/test_quick.py"]
    assert chosen_tests("LICENSE") == []
