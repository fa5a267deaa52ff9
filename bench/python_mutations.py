"""Mutation tests of critical modules: check that a test fails if a module is changed in one place.

    python -m bench.python_mutations                        all of `TARGETS`, at most 40 mutants per module
    python -m bench.python_mutations --most 10 fingerprints some modules, by a part of their path
    python -m bench.python_mutations -v                     every survivor with its line, as it is found

A mutant swaps a comparison or an operator, negates a condition, changes a number or a truth value, returns None, or
drops a call. `bench.mutations` does the same for the SQL of models (wraps, windows, sums). The tests run in a copy of
the repository. A mutant is caught if they fail or take more than five times as long.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TARGETS = {
    "warehouse/graph/fingerprints.py": (
        "tests/graph",
        "tests/runner/test_run.py",
        "tests/runner/test_dry_run.py",
        "tests/runner/test_incremental.py::test_a_model_beside_raw_files_sees_the_files_of_its_own_formats",
    ),
    "warehouse/store/atomic.py": ("tests/store", "tests/runner/test_publish.py"),
    "warehouse/store/parts.py": ("tests/store", "tests/runner/test_damage.py", "tests/runner/test_run.py"),
    "warehouse/runner/publish.py": ("tests/runner/test_publish.py", "tests/runner/test_catalog.py"),
    "warehouse/kernels/port_seconds.py": ("tests/kernels",),
    "warehouse/project/check_language.py": ("tests/project/test_check_language.py", "tests/runner/test_run.py"),
}
"""Modules, and the tests that should fail for their mutants."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


class Change(NamedTuple):
    """Change of a module."""

    line: int
    what: str
    source: str


def main() -> int:
    """Print a line per module with its mutants and the number caught, then the survivors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("modules", nargs="*")
    options.add_argument("--most", type=int, default=40, help="mutants a module, drawn by --seed")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("-v", "--verbose", action="store_true")
    given = options.parse_args()
    survivors, tried = [], 0
    with tempfile.TemporaryDirectory(prefix="warehouse-mutants-") as folder:
        work = Path(folder) / "copy"
        shutil.copytree(ROOT, work, ignore=shutil.ignore_patterns(".git", ".venv", "build", "real", "*_cache"))
        for module, tests in TARGETS.items():
            if given.modules and not any(name in module for name in given.modules):
                continue
            started = time.perf_counter()
            if _fails(work, tests, 3600):
                raise SystemExit(f"the tests of {module} fail before anything is changed")
            limit = 30 + 5 * (time.perf_counter() - started)
            source = (ROOT / module).read_text(encoding="utf-8")
            changes = list(_changes(source))
            random.Random(given.seed).shuffle(changes)
            changes = changes[: given.most]
            left = []
            for change in changes:
                (work / module).write_text(change.source, encoding="utf-8")
                if not _fails(work, tests, limit):
                    left.append(f"{module}:{change.line}: {change.what}")
                    if given.verbose:
                        print("survived", left[-1], flush=True)
            (work / module).write_text(source, encoding="utf-8")
            print(f"{module:40} {len(changes):4} mutants {len(changes) - len(left):4} caught", flush=True)
            survivors += left
            tried += len(changes)
    print(f"{'all':40} {tried:4} mutants {tried - len(survivors):4} caught", *survivors, sep="\n")
    return 0


def _fails(work: Path, tests: tuple[str, ...], limit: float) -> bool:
    """Return True if the tests fail or run longer than `limit` seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(work), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=work, env=environment, check=False, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _changes(source: str) -> Iterator[Change]:
    """Yield the module with one change, for each place that can be changed."""
    tree = ast.parse(source)
    typing = {id(one) for part in map(_annotation, ast.walk(tree)) if part for one in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in typing:
            continue
        for what, change in _of_node(node):
            other = copy.deepcopy(tree)
            change(list(ast.walk(other))[number])
            yield Change(getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(other)))


def _annotation(node: ast.AST) -> ast.AST | None:
    """Return the type of an argument, a field or what a function returns: a change of it changes nothing."""
    return getattr(node, "returns", None) or getattr(node, "annotation", None)


def _of_node(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    """Yield the possible changes of a node: a description, and a function that changes the same node of a copy."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        yield f"{ast.unparse(node)}: the comparison", lambda one: one.ops.__setitem__(0, _swapped(one.ops[0]))  # type: ignore[attr-defined]
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _SWAPS:
        yield f"{ast.unparse(node)}: the operator", lambda one: setattr(one, "op", _swapped(one.op))  # type: ignore[attr-defined]
    elif isinstance(node, ast.If | ast.IfExp):
        negated = lambda one: setattr(one, "test", ast.UnaryOp(ast.Not(), one.test))  # noqa: E731
        yield f"if {ast.unparse(node.test)}: negated", negated
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value}: the other", lambda one: setattr(one, "value", not one.value)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield f"{node.value}: one more", lambda one: setattr(one, "value", one.value + 1)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield f"return {ast.unparse(node.value)}: None", lambda one: setattr(one, "value", ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield f"{ast.unparse(node)}: dropped", lambda one: setattr(one, "value", ast.Constant(None))


def _swapped(operator: ast.AST) -> ast.AST:
    return _SWAPS[type(operator)]()


if __name__ == "__main__":
    raise SystemExit(main())
