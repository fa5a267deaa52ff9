"""Counts of the code base, as `docs/architecture.md` shows them: `python -m tests.house`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grimp
from grimp import ImportGraph

PACKAGE = Path(__file__).parents[1] / "warehouse"
BUILD_PATH = ("project", "engine", "store", "ingest", "graph", "runner")


class Function(NamedTuple):
    """Function and its length."""

    lines: int
    place: str


def import_graph() -> ImportGraph:
    """Return the imports between the modules of `warehouse`, including those for types and in functions."""
    return grimp.build_graph("warehouse", cache_dir=None)


def largest_circle(graph: ImportGraph) -> set[str]:
    """Return the largest import cycle; one module if there is none."""
    circles = (
        {module, *(graph.find_downstream_modules(module) & graph.find_upstream_modules(module))}
        for module in graph.modules
    )
    return max(circles, key=len)


def at_the_root() -> list[str]:
    """Return the modules outside of the packages."""
    return sorted(path.name for path in PACKAGE.glob("*.py"))


def lines_of(path: Path) -> int:
    """Count the lines of a file."""
    return path.read_text(encoding="utf-8").count("\n")


def functions() -> Iterator[Function]:
    """Yield all functions with their number of lines, without docstrings."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                shown = f"`{path.relative_to(PACKAGE)}`, `{node.name}`"
                text = node.body[0] if ast.get_docstring(node) else None
                said = (text.end_lineno or 0) - text.lineno + 1 if text else 0
                yield Function(node.end_lineno - node.lineno + 1 - said, shown)


def statements_of(path: Path) -> int:
    """Count the statements of a module; docstrings do not count."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    texts = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return sum(isinstance(node, ast.stmt) for node in nodes) - sum(isinstance(one.value.value, str) for one in texts)  # type: ignore[attr-defined]


def around() -> str:
    """Return the sizes of what surrounds the package: tests, benches, models, docs."""
    root = PACKAGE.parent
    tests, bench = (
        sum(lines_of(path) for path in (root / name).rglob("*") if path.suffix in (".py", ".sql"))
        for name in ("tests", "bench")
    )
    models = [path for path in (root / "models").rglob("*") if path.suffix in (".sql", ".py")]
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in (root / "docs").rglob("*.md"))
    return (
        f"Lines of tests: {tests:,}, of benches: {bench:,}, of {len(models)} models: {sum(map(lines_of, models)):,}. "
        f"Words of docs: {words:,}."
    )


def table() -> str:
    """Return the counts as Markdown."""
    packages = sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
    rows = []
    for path in packages:
        files = list(path.rglob("*.py"))
        rows.append((path.name, len(files), sum(map(lines_of, files)), sum(map(statements_of, files))))
    everything = sum(map(statements_of, PACKAGE.rglob("*.py")))
    longest = max(PACKAGE.rglob("*.py"), key=lines_of)
    function = max(functions())
    lines = ["| package | modules | lines | statements |", "|---|---:|---:|---:|"]
    lines += [f"| `{name}` | {files} | {count:,} | {statements:,} |" for name, files, count, statements in rows]
    lines.append(f"| all | {sum(row[1] for row in rows)} | {sum(row[2] for row in rows):,} | {everything:,} |")
    path_of_build = sum(row[3] for row in rows if row[0] in BUILD_PATH)
    lines.append(f"| build path | | | {path_of_build:,} |")
    lines += [
        "",
        (
            f"Largest import cycle: {len(largest_circle(import_graph()))} (1 is no cycle). Files at the root: "
            f"{', '.join(f'`{name}`' for name in at_the_root())}."
        ),
        (
            f"Longest file: `{longest.relative_to(PACKAGE)}`, {lines_of(longest)} lines. Longest function: "
            f"{function.place}, {function.lines} lines."
        ),
        around(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), flush=True)
    subprocess.run([sys.executable, "-m", "bench.chain", "--depth"], cwd=PACKAGE.parent, check=True)
