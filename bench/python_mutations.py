"""Mutation tests of critical modules: check that a test fails if a module is changed in one place.

    python -m bench.python_mutations                        all of `TARGETS`, at most 40 mutants per module
    python -m bench.python_mutations --most 10 fingerprints some modules, by a part of their path
    python -m bench.python_mutations -v                     every survivor with its line, as it is found

A mutant swaps a comparison or an operator, negates a condition, changes a number or a truth value, returns None, or
drops a call. `bench.mutations` does the same for the SQL of models (wraps, windows, sums). The tests run in a copy of
the repository, in a fork per mutant that can write only there. A mutant is caught if the tests fail or take more than
five times as long.
`bench.equivalent_mutants` lists the mutants that change no behavior. The exit status is 1 if others survive.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import ctypes
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from bench.equivalent_mutants import EQUIVALENT

ROOT = Path(__file__).parents[1]
TARGETS = {
    "warehouse/graph/fingerprints.py": ("tests/graph/test_fingerprints.py",),
    "warehouse/store/atomic.py": ("tests/store/test_atomic.py", "tests/store/test_parts.py"),
    "warehouse/store/parts.py": ("tests/store/test_parts.py",),
    "warehouse/runner/publish.py": ("tests/runner/test_published_files.py", "tests/runner/test_catalog.py"),
    "warehouse/kernels/port_seconds.py": ("tests/kernels/test_port_seconds.py",),
    "warehouse/project/check_language.py": ("tests/project/test_compiled_checks.py",),
}
"""Modules, and the tests that must fail for their mutants: direct and fast, without a build where possible."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


PRELOADED = ("duckdb", "hypothesis", "jinja2", "msgspec", "numpy", "pyarrow", "rich.console", "sqlglot", "yaml")
"""Libraries that are imported once, before the fork of each mutant."""


_NEW_MOUNTS = 0x20000
"""CLONE_NEWNS of unshare(2)."""
_DISKS = ("btrfs", "ext4", "overlay", "tmpfs", "xfs")


class Change(NamedTuple):
    """Change of a module."""

    line: int
    key: str
    """The changed line of the source, and the change. Stays the same if lines move."""
    source: str


def main() -> int:
    """Print a line per module with its mutants and the number caught, then the survivors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("modules", nargs="*")
    options.add_argument("--most", type=int, default=40, help="mutants a module, drawn by --seed")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--unprotected", action="store_true", help="run mutants that can remove or rename any file")
    options.add_argument("-v", "--verbose", action="store_true")
    given = options.parse_args()
    if not given.unprotected:
        _protect_files()
    survivors: list[str] = []
    total = [0, 0, 0, 0]
    for name in PRELOADED:
        importlib.import_module(name)
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
            left, equivalent = [], 0
            for change in changes:
                if change.key in EQUIVALENT.get(module, {}):
                    equivalent += 1
                    continue
                _write(work / module, change.source)
                if not _fails(work, tests, limit):
                    left.append(f"{module}:{change.line}: {change.key}")
                    if given.verbose:
                        print("survived", left[-1], flush=True)
            _write(work / module, source)
            counts = (len(changes), len(changes) - equivalent - len(left), equivalent, len(left))
            print(_row(module, counts), flush=True)
            survivors += left
            total = [one + other for one, other in zip(total, counts, strict=True)]
    print(_row("all", total), *survivors, sep="\n")
    return 1 if survivors else 0


def _protect_files() -> None:
    """Make all disks read-only for this process and its children, with an empty folder for temporary files.

    A mutant of a module that removes or renames files can do so anywhere.
    """
    if ctypes.CDLL(None).unshare(_NEW_MOUNTS):
        raise SystemExit("mutants need a mount namespace (Linux, root); --unprotected does without, in a container")
    temporary = tempfile.gettempdir()
    _run("mount", "--make-rprivate", "/")
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind, options, *_ = line.split()
        is_of_system = place.startswith(("/dev", "/proc", "/sys")) and place != "/dev/shm"
        if kind in _DISKS and options.startswith("rw") and not is_of_system:
            _run("mount", "-o", "remount,bind,ro", place)
    _run("mount", "-t", "tmpfs", "tmpfs", temporary)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _row(name: str, counts: Sequence[int]) -> str:
    words = ("mutants", "caught", "equivalent", "survive")
    return f"{name:36}" + "".join(f" {count:4} {word}" for count, word in zip(counts, words, strict=True))


def _write(path: Path, source: str) -> None:
    """Write a module; remove its bytecode, which Python keeps for a file of equal size and time."""
    path.write_text(source, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def _fails(work: Path, tests: Sequence[str], limit: float) -> bool:
    """Return True if the tests fail, or run longer than `limit` seconds, in a fork of this process."""
    child = os.fork()
    if not child:
        _run_tests(work, tests)
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run_tests(work: Path, tests: Sequence[str]) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(work)
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        sys.path.insert(0, str(work))
        os.environ |= {"PYTHONPATH": str(work), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        del sys.modules["bench"]
        status = int(pytest.main(["-q", "-x", "-p", "pytest_timeout", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(status)


def _changes(source: str) -> Iterator[Change]:
    """Yield the module with one change, for each place that can be changed."""
    tree, lines = ast.parse(source), source.splitlines()
    typing = {id(one) for part in map(_annotation, ast.walk(tree)) if part for one in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in typing:
            continue
        for what, change in _of_node(node):
            other = copy.deepcopy(tree)
            change(list(ast.walk(other))[number])
            line = getattr(node, "lineno", 0)
            key = f"{lines[line - 1].strip()}  →  {what}"
            yield Change(line, key, ast.unparse(ast.fix_missing_locations(other)))


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
