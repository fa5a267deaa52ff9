"""Bind models and checks against the contracts of their inputs: finds all mistakes in SQL without running it."""

from __future__ import annotations

from collections.abc import Mapping

from warehouse.base.errors import ModelError, nearest_hint
from warehouse.engine.base import Empty, EngineError, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_scratch import DuckDBScratch
from warehouse.graph.dag import Graph, checked_relations, model_error
from warehouse.project.check_language import compile_check
from warehouse.project.contract import Check, Column, same_columns
from warehouse.project.model import Model
from warehouse.store.parse_cache import ParseCache


def bind(graph: Graph, engine: DuckDBEngine, parse_cache: ParseCache) -> None:
    """Bind every model and its checks against the contracts of their inputs, except those in the cache.

    Raises
    ------
    ModelError
        For an unknown column or function (with the nearest name), a wrong type, or columns that differ
        from the contract.
    """
    contracts = {**graph.source_columns, **{name: node.model.columns for name, node in graph.nodes.items()}}
    inputs = {name: _inputs(graph, name, contracts) for name in graph.order}
    uncached = [name for name in graph.order if not parse_cache.contains(inputs[name])]
    needed = {
        read for name in uncached for read in (name, *graph.nodes[name].reads, *checked_relations(graph.nodes[name]))
    }
    sources: dict[str, Source] = {name: Empty(columns) for name, columns in contracts.items() if name in needed}
    with engine.scratch(sources) as scratch:
        for name in uncached:
            node = graph.nodes[name]
            if node.model.is_python:
                continue  # Python models have no schema before they run
            try:
                actual = scratch.describe(node.sql)
            except EngineError as error:
                raise model_error(node.model, node.sql, error, [*graph.nodes, *graph.source_columns]) from error
            same_columns(node.model.columns, actual, node.model.place(1))
        for name in uncached:
            bind_checks(scratch, graph.nodes[name].model)
    for name in graph.order:
        parse_cache.get(inputs[name], lambda: True)


def _inputs(graph: Graph, name: str, contracts: Mapping[str, tuple[Column, ...]]) -> object:
    """Return the cache key of a model: everything that decides if the model and its checks bind."""
    node = graph.nodes[name]
    checks = [[check.text, check.warn] for check in node.model.checks]
    reads = sorted({name, *node.reads, *checked_relations(node)})
    types = [[read, [[column.name, column.type] for column in contracts[read]]] for read in reads]
    return ["bind", node.sql, node.model.grain, checks, types]


def bind_checks(scratch: DuckDBScratch, model: Model) -> None:
    """Bind the checks of a model against relations without rows.

    Raises
    ------
    ModelError
        With the line of the check, when its SQL is invalid.
    """
    compiled = [(check, compile_check(check, model)) for check in model.checks]
    conditions = [(check, one.predicate) for check, one in compiled if one.predicate is not None]
    try:
        if conditions:
            scratch.describe(f"SELECT {', '.join(f'({text})' for _, text in conditions)} FROM {model.name}")
    except EngineError:  # bind each check alone to find the invalid one
        conditions = []
    bound = [check for check, _ in conditions]
    for check, one in compiled:
        if check in bound:
            continue
        try:
            scratch.describe(one.failing)
        except EngineError as error:
            raise check_is_not_valid(check, model, error) from error


def check_is_not_valid(check: Check, model: Model, error: EngineError) -> ModelError:
    """Return the error of a check that does not bind, with the nearest existing name as a hint."""
    hint = None
    if error.name and error.candidates:
        columns = [column.name for column in model.columns]
        hint = nearest_hint(error.name, [*columns, *error.candidates] if error.kind == "column" else error.candidates)
    return ModelError(f"the check `{check.text}` is not valid: {error.message}", place=check.place, hint=hint)
