"""Structure of the code base: packages, imports, sizes. `pyproject.toml` has the import order of packages."""

from __future__ import annotations

from pathlib import Path

from tests.house import (
    PACKAGE,
    at_the_root,
    functions,
    import_graph,
    largest_circle,
    lines_of,
)

LONGEST_FILE = 500
LONGEST_FUNCTION = 60


def test_there_is_no_import_cycle() -> None:
    assert len(largest_circle(import_graph())) == 1


def test_only_packages_are_at_the_root() -> None:
    assert at_the_root() == ["__init__.py", "__main__.py"]


def test_files_and_functions_are_short() -> None:
    long_files = [str(path) for path in PACKAGE.rglob("*.py") if lines_of(path) > LONGEST_FILE]
    assert long_files == []
    assert [one for one in functions() if one.lines > LONGEST_FUNCTION] == []


def test_the_architecture_page_names_every_package() -> None:
    text = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in PACKAGE.iterdir():
        if (path / "__init__.py").is_file():
            assert f"| `{path.name}` |" in text, path.name
