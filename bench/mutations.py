"""Mutation tests: check that a test fails if a model's SELECT, or a Python module, is changed in one place.

    python -m bench.mutations                            all models
    python -m bench.mutations metrics.leaf_hour          some, by selectors
    python -m bench.mutations -v                         every survivor with its line
    python -m bench.mutations --python warehouse/graph/plan.py --number 10 --seed 1

A mutant of a model changes an operator, an aggregate or a kind of join, drops a condition, or reads another column of
the same relation. Only the model's unit tests run; checks do not, so the score is a lower bound. Mutants that are
invalid SQL or have other types are skipped. Models without a test are named, not counted. With `--python`, `number`
random mutants of each module run against its test files, in a temporary copy of the tree.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlglot import exp, parse_one

from warehouse.base.errors import ModelError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import Empty, Source
from warehouse.graph.dag import Graph, Node, load_graph, select_models
from warehouse.graph.syntax import line, schema_of
from warehouse.lineage.select_steps import blocks_of
from warehouse.project.project import Project
from warehouse.quality.model_tests import ModelTest, run_test, tests_of

ROOT = Path(__file__).parents[1]
Columns = Mapping[str, Sequence[str]]
"""Columns of each relation."""


def main() -> int:
    """Print a line per model or mutant, and the survivors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("select", nargs="*")
    options.add_argument("-v", "--verbose", action="store_true", help="survivors as they are found")
    options.add_argument("--python", nargs="+", metavar="MODULE", help="modules of warehouse/ instead of models")
    options.add_argument("--number", type=int, default=10, help="mutants of each module")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--tests", nargs="+", default=(), help="test files, instead of those of the module's package")
    given = options.parse_args()
    if given.python:
        found = [one for module in given.python for one in survivors(module, given.number, given.seed, given.tests)]
        print(*found or ["no mutant survives"], sep="\n")
        return bool(found)
    total = Counter[str]()
    untested = []
    with (
        tempfile.TemporaryDirectory(prefix="warehouse-mutations-") as spill,
        closing(DuckDBEngine(memory_bytes=2**30, spill=Path(spill))) as engine,
    ):
        graph = load_graph(Project.open(), engine)
        columns = {name: [one.name for one in found] for name, found in graph.source_columns.items()}
        columns |= {name: [one.name for one in node.model.columns] for name, node in graph.nodes.items()}
        chosen = select_models(graph, given.select)
        for name in (one for one in graph.order if one in chosen and not graph.nodes[one].model.is_python):
            node = graph.nodes[name]
            tests = tests_of(node, graph)
            if not tests:
                untested.append(name)
                continue
            if _fails(engine, graph, tests):
                raise SystemExit(f"the tests of {name} fail before anything is changed")
            tried = caught = 0
            for mutant, sql in list(_valid(engine, graph, node, columns)):  # one scratch catalog at a time
                changed = Graph({**graph.nodes, name: node._replace(sql=sql)}, graph.source_columns)
                is_caught = _fails(engine, changed, tests)
                tried, caught = tried + 1, caught + is_caught
                if given.verbose and not is_caught:
                    print(f"  {node.model.shown_path}:{mutant.line}: {mutant.what}", flush=True)
            print(f"{name:<32} {tried:>5} mutants  {caught:>5} caught  {tried - caught:>4} survive", flush=True)
            total.update(tried=tried, caught=caught)
    print(f"\n{total['tried']:,} mutants, {total['caught']:,} caught ({total['caught'] / max(1, total['tried']):.1%})")
    if untested:
        print(f"without a test: {', '.join(untested)}")
    return 0


def _fails(engine: DuckDBEngine, graph: Graph, tests: Sequence[ModelTest]) -> bool:
    try:
        return any(run_test(engine, graph, test) for test in tests)
    except ModelError:
        return True


# SQL ------------------------------------------------------------------------------------------------

_OTHER_SQL: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Mul: exp.Add,
    exp.IntDiv: exp.Mul,
    exp.Div: exp.Mul,
    exp.Mod: exp.IntDiv,
    exp.Sum: exp.Max,
    exp.Lag: exp.Lead,
}
for _one, _other in (
    *((exp.GT, exp.GTE), (exp.LT, exp.LTE), (exp.EQ, exp.NEQ), (exp.Add, exp.Sub)),
    *((exp.And, exp.Or), (exp.Max, exp.Min), (exp.Greatest, exp.Least)),
):
    _OTHER_SQL |= {_one: _other, _other: _one}
SWAPS = 8
"""Number of other columns to try until one fits."""


class Mutant(NamedTuple):
    """One change, as candidate texts; the first with valid SQL and the same types is used."""

    line: int
    what: str
    texts: list[str]


def _valid(engine: DuckDBEngine, graph: Graph, node: Node, columns: Columns) -> Iterator[tuple[Mutant, str]]:
    """Yield the distinct mutants of a model that are valid SQL and have the same types."""
    contracts: dict[str, Source] = {name: Empty(known) for name, known in graph.source_columns.items()}
    contracts |= {name: Empty(one.model.columns) for name, one in graph.nodes.items()}
    schema = schema_of({name: dict.fromkeys(names, "") for name, names in columns.items()})
    blocks = blocks_of(node.model.name, node.sql, schema, columns, node.model.shown_path)
    known = dict(columns) | {name: list(block.columns) for name, block in blocks.items()}
    seen = set(engine.parse_all([node.sql]))
    with engine.scratch({read: contracts[read] for read in node.reads}) as scratch:

        def described(sql: str) -> list[tuple[str, str]] | None:
            try:
                return scratch.describe(sql)
            except EngineError:
                return None

        usual = described(node.sql)
        for mutant in mutants(node.sql, known):
            sql = next((text for text in mutant.texts if described(text) == usual), None)
            if sql is not None and (parsed := engine.parse_all([sql])[0]) not in seen:
                seen.add(parsed)
                yield mutant, sql


def mutants(sql: str, columns: Columns) -> Iterator[Mutant]:
    """Yield every mutant of a SELECT, given the columns of all relations and of its own blocks."""
    tree = parse_one(sql, read="duckdb")
    for node in list(tree.walk()):
        at, before = line(node), node.sql(dialect="duckdb")
        for what, others in _sql_changes(node, columns):
            texts = []
            for other in others:
                node.replace(other)
                texts.append(tree.sql(dialect="duckdb"))
                other.replace(node)
            yield Mutant(at, f"{_short(before)}  →  {what or _short(others[0].sql(dialect='duckdb'))}", texts)


def _sql_changes(node: exp.Expr, columns: Columns) -> Iterator[tuple[str, Sequence[exp.Expr]]]:
    """Yield (description, replacement nodes) for one node."""
    if other := _OTHER_SQL.get(type(node)):
        yield "", [other(**node.copy().args)]
    if isinstance(node, exp.And):
        yield "left alone", [node.this.copy()]
        yield "right alone", [node.expression.copy()]
    if isinstance(node, (exp.Where, exp.Having, exp.Qualify)) and not isinstance(node.parent, exp.Filter):
        yield "dropped", [type(node)(this=exp.true())]
    if isinstance(node, (exp.Filter, exp.Not)):
        yield "", [node.this.copy()]
    if isinstance(node, exp.Is) and not isinstance(node.parent, exp.Not):
        yield "", [exp.Not(this=node.copy())]
    if isinstance(node, exp.Distinct) and node.expressions and isinstance(node.parent, exp.Count):
        yield "", [node.expressions[0].copy()]
    if isinstance(node, exp.Join) and node.side:
        inner = node.copy()
        inner.set("side", None if node.side == "LEFT" else "LEFT")
        yield f"{node.side} JOIN, one side less", [inner]
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        others = _others(node, columns)
        if others:
            yield "another column", [exp.column(name, table=node.table or None) for name in others]


def _others(node: exp.Column, columns: Columns) -> Sequence[str]:
    """Return the other columns of the relation that a column is read from, the next ones first."""
    select = node.find_ancestor(exp.Select)
    if select is None or isinstance(node.parent, exp.PropertyEQ):
        return []
    froms = [select.args.get("from_"), *(select.args.get("joins") or ())]
    sources = [one.this for one in froms if one is not None]
    mine = [one for one in sources if not node.table or one.alias_or_name == node.table]
    if len(mine) != 1:
        return []
    name = mine[0].alias_or_name
    if isinstance(mine[0], exp.Table):
        name = f"{mine[0].db}.{mine[0].name}" if mine[0].db else mine[0].name
    names = list(columns.get(name, ()))
    if node.name not in names:
        return []
    at = names.index(node.name)
    return (names[at + 1 :] + names[:at])[:SWAPS]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# Python ---------------------------------------------------------------------------------------------

ALSO = {
    "base": ("cli", "reader"),
    "engine": ("runner", "reader"),
    "graph": ("runner", "store"),
    "project": ("runner",),
    "reader": ("security",),
    "runner": ("store",),
    "store": ("runner",),
}
"""Packages of `warehouse/`, and the folders of tests that hold them beside their own."""
_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub)),
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
        files = list(tests) or test_files(module)
        if _tests_fail(copy, files):
            raise SystemExit(f"the tests of {module} fail before anything is changed: {' '.join(files)}")
        survive: list[str] = []
        for at in chosen:
            tree = ast.parse(source)
            node, field, value = list(_changes(tree))[at]
            before = ast.unparse(node)
            setattr(node, field, value)
            shown = f"{module}:{getattr(node, 'lineno', 0)}: {before}  →  {ast.unparse(node)}"
            (copy / module).write_text(ast.unparse(tree), encoding="utf-8")
            is_caught = _tests_fail(copy, files)
            survive += [] if is_caught else [shown]
            print(f"{'caught' if is_caught else 'SURVIVES'}  {shown}", flush=True)
    print(f"{module}: {len(chosen)} of {many} mutants, {len(chosen) - len(survive)} caught", flush=True)
    return survive


def test_files(module: str) -> list[str]:
    """Return the test files of a module, those that name it first."""
    package, name = Path(module).parts[1], Path(module).stem
    folders = [ROOT / "tests" / one for one in (package, *ALSO.get(package, ()))]
    found = {path: path.read_text(encoding="utf-8") for one in folders for path in sorted(one.rglob("test_*.py"))}
    return [path.relative_to(ROOT).as_posix() for path in sorted(found, key=lambda path: name not in found[path])]


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, object]]:
    """Yield (node, field, other value) for every change of a module."""
    match node:
        case ast.JoinedStr():  # a message: no test compares all of it
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


def _tests_fail(copy: Path, tests: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--timeout", "300", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(copy), "WAREHOUSE_REAL": str(ROOT / "data" / "real")}
    done = subprocess.run([*command, *tests], cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode > 2:
        raise SystemExit(f"pytest cannot run: {done.stdout}{done.stderr}")
    return done.returncode != 0


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return the names of a folder that the copy leaves out: hidden files, and what builds write."""
    large = {ROOT: {"build", "dist"}, ROOT / "data": {"real", "sample"}}.get(Path(folder), set())
    return {name for name in names if name in large or name.startswith(".") or name == "__pycache__"}


if __name__ == "__main__":
    sys.exit(main())
