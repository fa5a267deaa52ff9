"""Models in Python: the exception, for what SQL does not say well.

A file `models/<layer>/<name>.py` has the front matter of a SQL model as its docstring, between `---` and `---`,
and a function `model`. The key `reads` lists the relations that the function is given, in this order, each as
an Arrow table in the order of its grain; it returns an Arrow table with the columns of the contract.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from warehouse.base import hashing
from warehouse.base.errors import ModelError, nearest_hint
from warehouse.base.startup import pandas_left_out
from warehouse.engine.base import EngineError, Parsed
from warehouse.project.contract import same_columns
from warehouse.project.python_source import parse_source

if TYPE_CHECKING:
    import pyarrow

    from warehouse.engine.base import Scratch
    from warehouse.project.model import Model
    from warehouse.store.parse_cache import ParseCache

FUNCTION = "model"
PACKAGES = ("numpy", "pyarrow", "scipy")
"""What a model may import; the versions of those that it does are part of its fingerprint."""
LIBRARY = (
    "__future__", "bisect", "collections", "dataclasses", "datetime", "decimal", "fractions", "functools", "heapq",
    "itertools", "math", "operator", "re", "statistics", "string", "typing",
)  # fmt: skip
"""Modules of the standard library that know neither files nor clocks: the same inputs give the same rows."""
_ONE_AT_A_TIME = threading.Lock()
"""Python runs one thread at a time anyhow, and so the inputs of one model only are in memory."""


def parse(model: Model, parse_cache: ParseCache) -> Parsed:
    """What a Python model reads, and what counts of its source: not comments, not formatting.

    A model that the memo knows is not read again.

    Raises
    ------
    ModelError
        When there is no function `model`, it does not take what the model reads, or something is imported
        whose version no fingerprint holds.
    """
    source, packages = parse_cache.ask(["python", model.sql, list(model.reads)], lambda: _parsed(model))
    versions = [[name, _installed(name, model)] for name in packages]
    canonical = json.dumps([source, list(model.reads), versions])
    return Parsed(tuple(sorted(model.reads)), canonical, hashing.of(canonical))


def _parsed(model: Model) -> tuple[str, list[str]]:
    """The source of a model without comments and formatting, and the packages that it imports."""
    tree = parse_source(model.sql, model.shown_path)
    for read, place in model.reads.items():
        if read.startswith("raw."):
            raise ModelError(
                f"a Python model cannot read {read}",
                place=place,
                hint="raw files are read by SQL: write a staging model and read that",
            )
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    if not functions:
        raise ModelError(f"the file has no function `{FUNCTION}`", place=model.place(1))
    taken = functions[0].args
    names = [one.arg for one in (*taken.posonlyargs, *taken.args)]
    if len(names) != len(model.reads) or taken.vararg or taken.kwonlyargs or taken.kwarg:
        raise ModelError(
            f"`{FUNCTION}({', '.join(names)})` takes {len(names)} tables, `reads` lists {len(model.reads)}",
            place=model.place(functions[0].lineno),
        )
    return ast.unparse(tree), sorted({_package(name, line, model) for name, line in _imports(tree)} & set(PACKAGES))


def _installed(package: str, model: Model) -> str:
    """The version of a package that a model imports. Raises ModelError."""
    found = version_of(package)
    if found is None:
        raise ModelError(
            f"it imports {package}, which is not installed", place=model.place(1), hint=f"pip install {package}"
        )
    return found


def version_of(package: str) -> str | None:
    """The version that is installed, by the name of the folder that says so, else as Python finds it, which is dear."""
    for folder in sys.path:
        for said in Path(folder).glob(f"{package}-*.dist-info"):
            return said.stem.removeprefix(f"{package}-")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write(scratch: Scratch, model: Model, orders: Sequence[Sequence[str]], path: Path) -> int:
    """Run a model on what it reads, and write its rows as a part.

    Parameters
    ----------
    orders
        The grain of each relation that the model reads; where it is empty, rows come in order of all columns.

    Raises
    ------
    ModelError
        At the line of the model where its code fails; or when its rows are not those of the contract.
    EngineError
        When a value cannot be cast to its contract.
    """
    with _ONE_AT_A_TIME:
        given = [scratch.table(read, order) for read, order in zip(model.reads, orders, strict=True)]
        rows = _call(model, given)
        del given
        _check_columns(model, rows)
        return scratch.write_arrow(rows, model.columns, path, model.grain)


def function_of(model: Model) -> Callable[..., pyarrow.Table]:
    """The function `model` of the file. Its code runs here: it is trusted as the SQL of a project is."""
    module = ModuleType(f"models.{model.name}")
    module.__file__ = str(model.path)
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(model.sql, str(model.path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    found: Callable[..., pyarrow.Table] = getattr(module, FUNCTION)
    return found


def _call(model: Model, given: Sequence[pyarrow.Table]) -> pyarrow.Table:
    import pyarrow

    try:
        with pandas_left_out():
            rows = function_of(model)(*given)
    except (EngineError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"{type(error).__name__}: {error}", place=model.place(_line(error, model))) from error
    if not isinstance(rows, pyarrow.Table):
        raise ModelError(f"`{FUNCTION}` gives a {type(rows).__name__}, not an Arrow table", place=model.place(1))
    return rows


def _line(error: Exception, model: Model) -> int | None:
    """The line of the model's file that was running last."""
    import traceback

    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(model.path)]
    return lines[-1] if lines else None


def _check_columns(model: Model, rows: pyarrow.Table) -> None:
    given = [(field.name, str(field.type).upper()) for field in rows.schema]
    same_columns(model.columns, given, model.place(1), is_python=True)


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), node.lineno


def _package(name: str, line: int, model: Model) -> str:
    package = name.partition(".")[0]
    if package not in (*PACKAGES, *LIBRARY):
        raise ModelError(
            f"a Python model cannot import {name}",
            place=model.place(line),
            hint=nearest_hint(package, (*PACKAGES, *LIBRARY))
            or f"it is one file, and may import {', '.join(PACKAGES)} and what of the standard library only computes",
        )
    return package
