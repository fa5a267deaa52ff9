"""Mutation tests: check that a unit test of a model fails if its SELECT is changed in one place.

    python -m bench.mutations                            all models
    python -m bench.mutations metrics.leaf_hour          some, by selectors
    python -m bench.mutations -v                         every survivor with its line

A mutant changes an operator, an aggregate or a kind of join, drops a condition, or reads another column of the same
relation. Only the model's unit tests run; checks do not, so the score is a lower bound. Mutants that are invalid SQL or
have other types are skipped. Models without a test are named, not counted.
"""

from __future__ import annotations

import argparse
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

Columns = Mapping[str, Sequence[str]]
"""Columns of each relation."""


def main() -> int:
    """Print a line per model, and the survivors."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("select", nargs="*")
    options.add_argument("-v", "--verbose", action="store_true", help="survivors as they are found")
    given = options.parse_args()
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
            for mutant, sql in _valid(engine, graph, node, columns):
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


_OTHER_SQL: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.GTE,
    exp.GTE: exp.GT,
    exp.LT: exp.LTE,
    exp.LTE: exp.LT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.Add: exp.Sub,
    exp.Sub: exp.Add,
    exp.Mul: exp.Add,
    exp.IntDiv: exp.Mul,
    exp.Div: exp.Mul,
    exp.Mod: exp.IntDiv,
    exp.And: exp.Or,
    exp.Or: exp.And,
    exp.Max: exp.Min,
    exp.Min: exp.Max,
    exp.Sum: exp.Max,
    exp.Greatest: exp.Least,
    exp.Least: exp.Greatest,
    exp.Lag: exp.Lead,
}
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
        yield "", [other(**{key: _copied(value) for key, value in node.args.items()})]
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


def _copied(value: object) -> object:
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return value.copy() if isinstance(value, exp.Expr) else value


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


if __name__ == "__main__":
    sys.exit(main())
