"""Mutants of a model's SELECT: SQL with one change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from warehouse.graph.syntax import line
from warehouse.lineage.steps import Block

_OTHER: dict[type[exp.Expr], type[exp.Expr]] = {
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
"""Replacements of operators and functions."""
SWAPS = 8
"""Number of other columns to try until one fits."""


@dataclass(frozen=True)
class Mutant:
    """One change, as candidate texts; the first with valid SQL and the same types is used."""

    line: int
    what: str
    texts: tuple[str, ...]


def mutants(sql: str, relations: Mapping[str, Sequence[str]], blocks: Mapping[str, Block]) -> Iterator[Mutant]:
    """Yield every mutant of a SELECT.

    Parameters
    ----------
    sql
        SELECT of the model.
    relations
        Columns of all relations that may be read.
    blocks
        Blocks of the SELECT, as `warehouse.lineage.select_steps` returns them.
    """
    tree = parse_one(sql, read="duckdb")
    columns = dict(relations) | {name: list(block.columns) for name, block in blocks.items()}
    for node in list(tree.walk()):
        at = line(node)
        for what, others in _changes(node, columns):
            texts = []
            before = node.sql(dialect="duckdb")
            for other in others:
                node.replace(other)
                texts.append(tree.sql(dialect="duckdb"))
                other.replace(node)
            yield Mutant(at, f"{_short(before)}  →  {what or _short(others[0].sql(dialect='duckdb'))}", tuple(texts))


def _changes(node: exp.Expr, columns: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Sequence[exp.Expr]]]:
    """Yield (description, replacement nodes) for one node."""
    other = _OTHER.get(type(node))
    if other is not None:
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


def _others(node: exp.Column, columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the other columns of the relation that a column is read from, the next ones first."""
    select = node.find_ancestor(exp.Select)
    if select is None or isinstance(node.parent, exp.PropertyEQ):
        return []
    froms = [select.args.get("from_"), *(select.args.get("joins") or ())]
    sources = [one.this for one in froms if one is not None]
    mine = [one for one in sources if not node.table or one.alias_or_name == node.table]
    if len(mine) != 1:
        return []
    table = mine[0]
    name = f"{table.db}.{table.name}" if isinstance(table, exp.Table) and table.db else table.alias_or_name
    if isinstance(table, exp.Table) and not table.db:
        name = table.name
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
