"""Helpers for single nodes of sqlglot's syntax tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sqlglot import exp

from warehouse.engine.required_relations import AGGREGATES
from warehouse.lineage.steps import LITERAL, Block, Step

T = TypeVar("T")
_WHOLE = (exp.Column, exp.Select, exp.SetOperation, exp.Literal)
"""Nodes whose children are skipped: names, subqueries, constants."""
_NOT_SUMMED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""Aggregate classes of sqlglot that return the value of one row."""


def values(node: exp.Values) -> Block:
    """Return the block of a VALUES list, whose columns are literals."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    width = len(node.expressions[0].expressions) if node.expressions else 0
    names += [f"col{position}" for position in range(len(names), width)]
    step = Step(LITERAL, line(node), ())
    return Block(dict.fromkeys(names, (step,)), (), ())


def of_this_query(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression; a subquery is yielded, but not its children."""
    waiting: list[exp.Expr] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, _WHOLE) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
            waiting += one.iter_expressions(reverse=True)


def aggregates(node: exp.Expr) -> bool:
    """Return True if a node is an aggregate function."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATES  # aggregates without a class in sqlglot
    return isinstance(node, exp.AggFunc) and not isinstance(node, _NOT_SUMMED)


def is_bound_by_lambda(node: exp.Column) -> bool:
    """Return True if a name is a lambda's parameter."""
    first = (node.table or node.name).lower()
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if first in (one.name.lower() for one in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def line(node: exp.Expr | None) -> int:
    """Return the first known line of a node's text; for an alias, the line of its name; 0 if unknown."""
    if node is None:
        return 0
    if isinstance(node, exp.Alias) and "line" in node.args["alias"].meta:
        return int(node.args["alias"].meta["line"])
    return next((int(below.meta["line"]) for below in node.walk(bfs=False) if "line" in below.meta), 0)


def unique(several: Iterable[T]) -> tuple[T, ...]:
    """Return the distinct values in their order."""
    return tuple(dict.fromkeys(several))
