"""Selection of tests by `make quick`: every module and model has some."""

from __future__ import annotations

from pathlib import Path

from tests.quick import MOST, ROOT, chosen_tests

MODULES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "warehouse").rglob("*.py"))]


def test_every_module_has_a_few_tests() -> None:
    for module in (name for name in MODULES if Path(name).name[0] != "_"):
        own, *tests = chosen_tests(module)
        assert own == module
        assert 1 <= len(tests) <= MOST + 1, module
        assert all((ROOT / test).exists() for test in tests), module


def test_a_model_selects_its_test_and_a_page_those_of_the_documents() -> None:
    assert chosen_tests("models/metrics/leaf_hour.sql") == ["models/metrics/leaf_hour.test.yaml"]
    assert chosen_tests("docs/trust.md") == ["tests/test_docs.py"]
    assert chosen_tests("tests/test_quick.py") == ["tests/test_quick.py"]
    assert chosen_tests("LICENSE") == []
