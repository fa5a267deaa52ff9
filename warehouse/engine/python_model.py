"""Models in Python, for the few computations that are hard to write in SQL.

A file `models/<layer>/<name>.py` has the front matter of a SQL model as its docstring, between `---` and `---`,
and a function `model`. The key `reads` lists its inputs. The function gets each as an Arrow table, sorted by grain; the
one that `stream` names as an iterator of record batches, in the order in which they are read. It returns an Arrow table
with the columns of the contract. If all inputs must be empty because raw files are missing, the
function is not called, and the table is empty.
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
from warehouse.base.errors import ModelError
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.tree import Parsed
from warehouse.formats.base import is_raw
from warehouse.project.contract import same_columns
from warehouse.project.model import Model, parse_source

if TYPE_CHECKING:
    import pyarrow

    from warehouse.engine.duckdb import DuckDBScratch
    from warehouse.store.state import ParseCache

FUNCTION = "model"
BATCH_ROWS = 128
"""Rows of a batch of a streamed input: a row may have 20 kB of text."""
OWN = "warehouse.signals"
"""Package of ours for models. Its code is part of the fingerprint, as versions of other imported packages are."""
_OWN_CODE = Path(__file__).parents[1] / "signals"
_ONE_AT_A_TIME = threading.Lock()
"""Lock that limits memory to the inputs of one model. The GIL allows only one thread at a time anyway."""


def parse(model: Model, parse_cache: ParseCache) -> Parsed:
    """Parse a Python model. Comments and formatting do not change the hash; versions of imported packages do.

    Raises
    ------
    ModelError
        When the function `model` is missing, its arguments do not match `reads`, or a package is not installed.
    """
    tree = parse_source(model.sql, model.shown_path)
    for read, place in model.reads.items():
        if is_raw(read):
            hint = "raw files are read by SQL: write a staging model and read that"
            raise ModelError(f"a Python model cannot read {read}", place=place, hint=hint)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    if not functions:
        raise ModelError(f"the file has no function `{FUNCTION}`", place=model.place(1))
    arguments = functions[0].args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if len(names) != len(model.reads) or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        raise ModelError(
            f"`{FUNCTION}({', '.join(names)})` takes {len(names)} tables, `reads` lists {len(model.reads)}",
            place=model.place(functions[0].lineno),
        )
    versions = []
    for package in sorted(set(_imports(tree)) - sys.stdlib_module_names):
        version = _own_code(parse_cache) if package == OWN else version_of(package)
        if version is None:
            what = f"it imports {package}, of which no version is installed"
            raise ModelError(what, place=model.place(1), hint=f"pip install {package}")
        versions.append([package, version])
    reads = tuple(sorted(model.reads))
    canonical = json.dumps([ast.unparse(tree), list(model.reads), versions])
    return Parsed(
        reads, canonical, hashing.of(canonical), needs=frozenset([frozenset(reads)]) if reads else frozenset()
    )


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a model imports."""
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (OWN if name.startswith(OWN) else name.partition(".")[0] for name in modules)


def _own_code(parse_cache: ParseCache) -> str:
    """Return a hash of the modules of `OWN`, without comments and formatting."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(_OWN_CODE.glob("*.py"))]
    code: str = parse_cache.get(
        ["code", *texts], lambda: hashing.of("\n".join(ast.unparse(ast.parse(one)) for one in texts))
    )
    return code


def version_of(package: str) -> str | None:
    """Return the installed version of a package, from the name of its dist-info folder if possible, which is fast."""
    for folder in sys.path:
        for dist_info in Path(folder).glob(f"{package}-*.dist-info"):
            return dist_info.stem.removeprefix(f"{package}-")
    from importlib.metadata import packages_distributions, version

    return next(map(version, packages_distributions().get(package, ())), None)


def write(scratch: DuckDBScratch, model: Model, orders: Sequence[Sequence[str]], path: Path) -> int:
    """Run a Python model and write its rows as a part.

    Parameters
    ----------
    orders
        The grain of each input, to sort it by. An input with an empty grain is sorted by all columns.

    Raises
    ------
    ModelError
        When the code fails, with the line; or when the columns do not match the contract.
    EngineError
        When a value cannot be cast to its contract.
    """
    with _ONE_AT_A_TIME:
        inputs = [
            scratch.stream(read, BATCH_ROWS) if read == model.stream else scratch.table(read, order)
            for read, order in zip(model.reads, orders, strict=True)
        ]
        rows = _call(model, inputs)
        del inputs  # their memory is free before the rows are sorted
        given = [(field.name, str(field.type).upper()) for field in rows.schema]
        same_columns(model.columns, given, model.place(1), is_python=True)
        return scratch.write_arrow(rows, model.columns, path, model.grain)


def function_of(model: Model) -> Callable[..., pyarrow.Table]:
    """Return the function `model` of the file. This runs the file's code, which is trusted like the project's SQL."""
    module = ModuleType(f"models.{model.name}")
    module.__file__ = str(model.path)
    sys.modules[module.__name__] = module  # needed by dataclasses
    # Without `dont_inherit`, the model would inherit this file's `from __future__`.
    exec(compile(model.sql, str(model.path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    found: Callable[..., pyarrow.Table] = getattr(module, FUNCTION)
    return found


def _call(model: Model, inputs: Sequence[pyarrow.Table | Iterator[pyarrow.RecordBatch]]) -> pyarrow.Table:
    import pyarrow

    try:
        rows = function_of(model)(*inputs)
    except (EngineError, MemoryError):
        raise
    except Exception as error:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        # The last frame of the model's own file: deeper ones are of packages that it calls.
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(model.path)), None)
        raise ModelError(f"{type(error).__name__}: {error}", place=model.place(line)) from error
    if not isinstance(rows, pyarrow.Table):
        raise ModelError(f"`{FUNCTION}` gives a {type(rows).__name__}, not an Arrow table", place=model.place(1))
    return rows
