"""Mutation tests: check that a test fails if a model's SELECT, or a Python module, is changed in one place.

    python -m bench.mutations                            all models
    python -m bench.mutations metrics.leaf_hour          some, by selectors
    python -m bench.mutations -v                         every survivor with its line
    python -m bench.mutations --python warehouse/graph/plan.py --number 10 --seed 1

With `--python`, `number` random mutants of each module run against its test files (`bench/python_mutants.py`). A mutant
of a model changes an operator, an aggregate or a kind of join, drops a condition, or reads another column of the same
relation. Only the model's unit tests run; checks do not, so the score is a lower bound. Mutants that are invalid SQL or
have other types are skipped. Models without a test are named, not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.mutants import Mutant, mutants
from bench.python_mutants import survivors
from warehouse.base.errors import ModelError
from warehouse.engine.base import Empty, EngineError, Source
from warehouse.engine.duckdb import DuckDBEngine, DuckDBScratch
from warehouse.graph.dag import Graph, Node, load_graph, select_models
from warehouse.graph.syntax import schema_of
from warehouse.lineage.select_steps import blocks_of
from warehouse.project.project import Project
from warehouse.quality.model_tests import ModelTest, run_test, tests_of

CAUGHT, SURVIVED = "caught", "survived"


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
    project = Project.open()
    total: Counter[str] = Counter()
    untested = []
    with (
        tempfile.TemporaryDirectory(prefix="warehouse-mutations-") as spill,
        closing(DuckDBEngine(memory_bytes=2**30, spill=Path(spill))) as engine,
    ):
        graph = load_graph(project, engine)
        relations = {name: [one.name for one in columns] for name, columns in graph.source_columns.items()}
        relations |= {name: [one.name for one in node.model.columns] for name, node in graph.nodes.items()}
        chosen = select_models(graph, given.select)
        for name in (one for one in graph.order if one in chosen and not graph.nodes[one].model.is_python):
            node = graph.nodes[name]
            tests = tests_of(node, graph)
            if not tests:
                untested.append(name)
                continue
            if _fails(engine, graph, tests):
                raise SystemExit(f"the tests of {name} fail before anything is changed")
            counts: Counter[str] = Counter()
            for mutant, sql in _valid(engine, graph, node, relations):
                changed = _changed(graph, node, sql)
                how = CAUGHT if _fails(engine, changed, tests) else SURVIVED
                counts[how] += 1
                if how == SURVIVED and given.verbose:
                    print(f"  {node.model.shown_path}:{mutant.line}: {mutant.what}", flush=True)
            tried, survive = sum(counts.values()), counts[SURVIVED]
            print(f"{name:<32} {tried:>5} mutants  {tried - survive:>5} caught  {survive:>4} survive", flush=True)
            total += counts
    everything, caught = sum(total.values()), total[CAUGHT]
    print(f"\n{everything:,} mutants, {caught:,} caught ({caught / max(1, everything):.1%})")
    if untested:
        print(f"without a test: {', '.join(untested)}")
    return 0


def _valid(
    engine: DuckDBEngine, graph: Graph, node: Node, relations: dict[str, list[str]]
) -> Iterator[tuple[Mutant, str]]:
    """Yield the distinct mutants of a model that are valid SQL and have the same types."""
    contracts: dict[str, Source] = {name: Empty(columns) for name, columns in graph.source_columns.items()}
    contracts |= {name: Empty(one.model.columns) for name, one in graph.nodes.items()}
    schema = schema_of({name: dict.fromkeys(columns, "") for name, columns in relations.items()})
    blocks = blocks_of(node.sql, schema, relations, node.model.shown_path)
    seen = {engine.parse(node.sql).canonical}
    with engine.scratch({read: contracts[read] for read in node.reads}) as scratch:
        usual = scratch.describe(node.sql)
        for mutant in mutants(node.sql, relations, blocks):
            sql = next((text for text in mutant.texts if _described(scratch, text) == usual), None)
            if sql is not None and (mark := engine.parse(sql).canonical) not in seen:
                seen.add(mark)
                yield mutant, sql


def _described(scratch: DuckDBScratch, sql: str) -> list[tuple[str, str]] | None:
    try:
        return scratch.describe(sql)
    except EngineError:
        return None


def _changed(graph: Graph, node: Node, sql: str) -> Graph:
    """Return the graph with another SELECT for one model."""
    return Graph({**graph.nodes, node.name: node._replace(sql=sql)}, graph.source_columns)


def _fails(engine: DuckDBEngine, graph: Graph, tests: Sequence[ModelTest]) -> bool:
    for test in tests:
        try:
            if run_test(engine, graph, test):
                return True
        except ModelError:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
