"""Mutants of a Python module of `warehouse/`: one change each, in a temporary copy of the tree, against its tests."""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALSO = {
    "base": ("cli", "reader"),
    "engine": ("runner", "reader"),
    "graph": ("runner",),
    "project": ("runner",),
    "reader": ("security",),
    "runner": ("store",),
    "store": ("runner",),
}
"""Packages of `warehouse/`, and the folders of tests that hold them beside their own."""
_PAIRS = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
)
_OTHER: dict[type[ast.AST], type[ast.AST]] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_NO_CODE = ("annotation", "returns", "decorator_list")
"""Fields that a run of the tests does not need."""


def survivors(module: str, number: int, seed: int, tests: Sequence[str] = ()) -> list[str]:
    """Print what became of each of `number` random mutants of a module; return the ones that no test caught."""
    if not (ROOT / module).is_file():
        raise SystemExit(f"{module} is no module; fingerprints, for example, are in warehouse/graph/plan.py")
    source = (ROOT / module).read_text(encoding="utf-8")
    many = len(list(_changes(ast.parse(source))))
    chosen = sorted(random.Random(seed).sample(range(many), min(number, many)))
    with tempfile.TemporaryDirectory(prefix="warehouse-mutants-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=_left_out)
        files = list(tests) or tests_of(module)
        if _fails(copy, files):
            raise SystemExit(f"the tests of {module} fail before anything is changed: {' '.join(files)}")
        survive = []
        for at in chosen:
            text, shown = _mutant(source, at)
            (copy / module).write_text(text, encoding="utf-8")
            caught = _fails(copy, files)
            print(f"{'caught' if caught else 'SURVIVES'}  {module}:{shown}", flush=True)
            if not caught:
                survive.append(f"{module}:{shown}")
    print(f"{module}: {len(chosen)} of {many} mutants, {len(chosen) - len(survive)} caught", flush=True)
    return survive


def tests_of(module: str) -> list[str]:
    """Return the test files of a module, those that name it first."""
    package, name = Path(module).parts[1], Path(module).stem
    folders = [ROOT / "tests" / one for one in (package, *ALSO.get(package, ()))]
    found = {path: path.read_text(encoding="utf-8") for one in folders for path in sorted(one.rglob("test_*.py"))}
    return [path.relative_to(ROOT).as_posix() for path in sorted(found, key=lambda path: name not in found[path])]


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, object]]:
    """Yield (node, field, other value) for every change of a module."""
    match node:
        case ast.JoinedStr():  # a message
            return
        case ast.Compare(ops=[op]) if type(op) in _OTHER:
            yield node, "ops", [_OTHER[type(op)]()]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _OTHER:
            yield node, "op", _OTHER[type(op)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.Constant(value=bool(value)):
            yield node, "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield node, "value", value + 1
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "value", ast.Constant(None)
    for field, values in ast.iter_fields(node):
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, ast.AST) and field not in _NO_CODE:
                yield from _changes(value)


def _mutant(source: str, at: int) -> tuple[str, str]:
    """Return the source with change number `at`, and the change as `line: before  →  after`."""
    tree = ast.parse(source)
    node, field, value = list(_changes(tree))[at]
    before = ast.unparse(node)
    setattr(node, field, value)
    return ast.unparse(tree), f"{getattr(node, 'lineno', 0)}: {before}  →  {ast.unparse(node)}"


def _fails(copy: Path, tests: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--timeout", "300", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(copy), "WAREHOUSE_REAL": str(ROOT / "data" / "real")}
    done = subprocess.run([*command, *tests], cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode > 2:
        raise SystemExit(f"pytest cannot run: {done.stdout}{done.stderr}")
    return done.returncode != 0


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names of a folder that the copy leaves out: hidden files, and what builds write."""
    place = Path(folder)
    large = {ROOT: {"build", "dist"}, ROOT / "data": {"real", "sample"}}.get(place, set())
    return {name for name in names if name in large or name.startswith(".") or name == "__pycache__"}
