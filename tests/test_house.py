"""Structure of the code base: packages, imports, sizes. `pyproject.toml` has the import order of packages."""

from __future__ import annotations

from pathlib import Path

from tests.house import (
    PACKAGE,
    at_the_root,
    equal_blocks,
    functions,
    import_graph,
    largest_circle,
    late_imports,
    lines_of,
)

LONGEST_FILE = 500
LONGEST_FUNCTION = 60
COLD = "a question to a published warehouse loads what it needs and nothing more"
RARE = "few builds and questions need it, and it loads a library"
LATE = {
    "api.warehouse": COLD,
    "engine.duckdb": RARE,
    "formats": "the list of formats is asked for by those who read raw files, and `formats.base` by many others",
    "formats.logs.line_kinds": "the parser of YAML is slow to load, and logs are read by few commands",
    "formats.traces": RARE,
    "formats.zhejiang.task_log": RARE,
    "lineage.column_lineage": RARE,
    "project.model": RARE,
    "project.named_queries": COLD,
    "project.project": RARE,
    "publish.export": RARE,
    "publish.postgres.publisher": "a publish that finds nothing changed loads no more than it needs",
    "reader.bounded_query": COLD,
    "reader.check_results": COLD,
    "reader.citations": COLD,
    "reader.connection": COLD,
    "reader.explanations": COLD,
    "reader.output": COLD,
    "reader.request": COLD,
    "reader.table_info": COLD,
    "reader.user_query": COLD,
    "sample": RARE,
    "store.manifest": COLD,
    "store.up_to_date": "a build with nothing to do loads no more than it needs",
}
"""Modules with imports of our own modules inside functions, and why."""


def test_there_is_no_import_cycle() -> None:
    assert len(largest_circle(import_graph())) == 1


def test_only_packages_are_at_the_root() -> None:
    assert at_the_root() == ["__init__.py", "__main__.py"]


def test_every_package_has_a_docstring() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


def test_imports_inside_functions_have_a_reason() -> None:
    found = {name for name, _ in late_imports() if not name.startswith("cli") and name != "__init__"}
    assert found == set(LATE)


def test_files_and_functions_are_short() -> None:
    long_files = [str(path) for path in PACKAGE.rglob("*.py") if lines_of(path) > LONGEST_FILE]
    assert long_files == []
    assert [one for one in functions() if one.lines > LONGEST_FUNCTION] == []


def test_there_are_no_duplicate_blocks() -> None:
    assert equal_blocks() == []


def test_the_architecture_page_names_every_package() -> None:
    text = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in PACKAGE.iterdir():
        if (path / "__init__.py").is_file():
            assert f"| `{path.name}` |" in text, path.name
