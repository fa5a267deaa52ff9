"""What the walk over columns asks of single nodes of sqlglot's tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sqlglot import exp

from warehouse.engine.required_relations import AGGREGATES
from warehouse.lineage.steps import LITERAL, Block, Step

T = TypeVar("T")
_WHOLE = (exp.Column, exp.Select, exp.SetOperation, exp.Literal)
"""What is not looked into: names, queries of their own, constants."""
_NOT_SUMMED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""What sqlglot counts among aggregates although it takes the value of one row."""


def values(node: exp.Values) -> Block:
    """A list of rows: its columns are literals."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    width = len(node.expressions[0].expressions) if node.expressions else 0
    names += [f"col{position}" for position in range(len(names), width)]
    step = Step(LITERAL, line(node), ())
    return Block(dict.fromkeys(names, (step,)), (), ())


def of_this_query(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, a query in it as a whole and not what is inside."""
    waiting: list[exp.Expr] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, _WHOLE) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
            waiting += one.iter_expressions(reverse=True)


def aggregates(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function: it makes one value of many rows."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATES  # those that sqlglot has no node for
    return isinstance(node, exp.AggFunc) and not isinstance(node, _NOT_SUMMED)


def is_bound_by_lambda(node: exp.Column) -> bool:
    """Whether a name is a lambda's parameter and no column."""
    first = (node.table or node.name).lower()
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if first in (one.name.lower() for one in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def line(node: exp.Expr | None) -> int:
    """The first line that a node's text is known to stand on; of an alias, that of its name."""
    if node is None:
        return 0
    if isinstance(node, exp.Alias) and "line" in node.args["alias"].meta:
        return int(node.args["alias"].meta["line"])
    return next((int(below.meta["line"]) for below in node.walk(bfs=False) if "line" in below.meta), 0)


def unique(several: Iterable[T]) -> tuple[T, ...]:
    """Each value once, in the order in which it came."""
    return tuple(dict.fromkeys(several))
