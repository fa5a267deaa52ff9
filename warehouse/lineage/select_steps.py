"""Column lineage of one SELECT, block by block, from the tree that sqlglot resolved.

A block is the outermost SELECT (named ""), a CTE or a subquery. The columns of the relations come from contracts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema

from warehouse.base.errors import ModelError, Place
from warehouse.engine.tree import AGGREGATES
from warehouse.graph.syntax import line, parsed, qualified, uneven

T = TypeVar("T")
COPIED, COMPUTED, AGGREGATED, LITERAL = "copied", "computed", "aggregated", "literal"
KINDS = (LITERAL, COPIED, COMPUTED, AGGREGATED)
"""Kinds of steps, the simplest first."""
ROWS = "*"
"""Pseudo-column for the rows of a relation, as read by count(*)."""
_SCALAR, _FROM = "subquery:", "from:"
"""Prefixes of names for unnamed queries, followed by the line: inside an expression, and in FROM."""
_AT = "line"
_QUERY = (exp.Select, exp.SetOperation)
_WHOLE = (exp.Column, *_QUERY, exp.Literal)
"""Nodes whose children are skipped: names, subqueries, constants."""
_NOT_SUMMED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""Aggregate classes of sqlglot that return the value of one row."""


class Node(NamedTuple):
    """Column of a relation, or of a block inside a model."""

    relation: str
    block: str
    column: str

    def __str__(self) -> str:
        return f"{self.block or self.relation}.{self.column}"

    @property
    def full(self) -> str:
        """Full name, such as `metrics.uplink_balance/sums.total`."""
        return f"{self.relation}{'/' if self.block else ''}{self.block}.{self.column}"


class Step(NamedTuple):
    """Step that computes a column (a UNION has one for each branch), or a clause that determines rows."""

    kind: str
    """One of `KINDS`, or for a clause: filter, join, group, distinct, limit, union, except or intersect."""
    place: str
    """File and line, such as `models/metrics/uplink_balance.sql:42`."""
    inputs: tuple[Node, ...]


@dataclass(frozen=True)
class Block:
    """SELECT inside a model: the outermost one, a CTE or a subquery."""

    columns: Mapping[str, tuple[Step, ...]]
    deciders: tuple[Step, ...]
    reads: tuple[Node, ...]
    """Rows of the relations and blocks in FROM."""


def blocks_of(
    model: str, sql: str, schema: MappingSchema, relations: Mapping[str, Sequence[str]], shown_path: str
) -> dict[str, Block]:
    """Return the blocks of a SELECT by name, the outermost as "".

    Parameters
    ----------
    model
        Name of the model.
    sql
        The SELECT with rendered macros and the line numbers of the file.
    schema
        Columns of all relations that the SELECT may read, from `schema_of`.
    relations
        The same columns as written in the contracts.
    shown_path
        The file, for places and messages.

    Raises
    ------
    ModelError
        When the SELECT does not parse, a column is unknown, or columns are selected by pattern or position.
    """
    tree = parsed(sql, shown_path)

    def refused(node: exp.Expr, message: str) -> ModelError:
        return ModelError(message, place=Place(shown_path, line(node)))

    if not isinstance(tree, exp.Query):
        raise refused(tree, f"lineage does not know {tree.key.upper()} as a query")
    for node in tree.find_all(exp.Columns, exp.Pivot, exp.Star):
        if name := _unnamed(node):
            raise refused(node, f"lineage does not know {name}: name the columns")
    for table in tree.find_all(exp.Table):
        if table.db and f"{table.db}.{table.name}".lower() not in relations:
            raise refused(table, f"no relation {table.db}.{table.name}")
    tree = _without_pivots(tree)
    # Before names are resolved, which replaces the nodes that know their line.
    _keep_lines(tree)
    try:
        tree = qualified(tree, schema)
    except SqlglotError as error:
        raise refused(tree, str(error).splitlines()[0]) from error
    for shared in list(tree.find_all(exp.Coalesce)):  # of USING, where sqlglot cannot know that both are equal
        select = shared.find_ancestor(exp.Select)
        if not shared.meta and select and not any(join.side == "FULL" for join in select.args.get("joins") or ()):
            shared.replace(shared.this)
    for union in tree.find_all(exp.SetOperation):
        if uneven(union):
            raise refused(union, "UNION BY NAME of other columns: write missing ones out, in one order")
    return _Blocks(model, tree, relations, shown_path).blocks


def _unnamed(node: exp.Expr) -> str | None:
    """Return what selects columns without their names: COLUMNS, a statement PIVOT, stars with a pattern or RENAME."""
    if isinstance(node, exp.Star):
        is_filtered = isinstance(node.parent, (exp.Like, exp.ILike, exp.Glob)) or node.args.get("ilike")
        return "a star with a pattern or RENAME" if is_filtered or node.args.get("rename") else None
    is_clause = isinstance(node, exp.Pivot) and node.args.get("fields") and node.arg_key == "pivots"
    return None if is_clause else "UNPIVOT" if node.args.get("unpivot") else node.key.upper()


def _without_pivots(tree: exp.Expr) -> exp.Expr:
    """Replace PIVOT and UNPIVOT in FROM by subqueries whose columns depend on the same columns."""
    for pivot in list(tree.find_all(exp.Pivot)):
        source = cast("exp.Expr", pivot.parent)
        rest = source.copy()
        rest.set("pivots", None)
        select = exp.select().from_(rest)
        fields = cast("list[exp.In]", pivot.args["fields"])
        if pivot.args.get("unpivot"):
            [field] = fields
            entries = [one.unalias() for one in field.expressions]
            given = [one.expressions if isinstance(one, exp.Tuple) else [one] for one in entries]
            columns: list[exp.Expr] = [column for several in given for column in several]
            names = [name for one in pivot.expressions for name in (one.expressions or [one])]
            added = [exp.alias_(exp.Literal.string(""), field.this.this)]
            added += [
                # Any function would do: only the columns that it reads count.
                exp.alias_(exp.Greatest(this=several[0], expressions=list(several[1:]) or [several[0]]), name.this)
                for name, several in zip(names, zip(*given, strict=True), strict=True)
            ]
        else:
            by = [field.this for field in fields]
            columns = [*by, *(column for one in pivot.expressions for column in one.find_all(exp.Column))]
            values = [one.unalias() for one in pivot.expressions]
            where = exp.Where(this=exp.and_(*by))
            added = [
                exp.alias_(exp.Filter(this=values[at % len(values)].copy(), expression=where.copy()), name)
                for at, name in enumerate(pivot.args["columns"])
            ]
            select.set("group", exp.Group(all=True))
        group = pivot.args.get("group")
        star = exp.Star(except_=[exp.to_identifier(name) for name in unique(one.name for one in columns)])
        for node in (star, *(one.args["alias"] for one in added), *filter(None, [select.args.get("group")])):
            node.meta[_AT] = line(pivot)
        select.set("expressions", [*(group.expressions if group else [star]), *added])
        alias = pivot.args.get("alias") or source.args.get("alias")
        named = alias.copy() if alias else exp.TableAlias(this=exp.to_identifier(source.alias_or_name))
        source.replace(exp.Subquery(this=select, alias=named))
    return tree


def _keep_lines(tree: exp.Expr) -> None:
    """Note lines at nodes that stay when names are resolved: stars, clauses, and columns, which get an alias."""
    for node in list(tree.find_all(exp.Select, exp.Join, exp.Where, exp.Having, exp.Qualify, exp.Group)):
        node.meta[_AT] = line(node)
        for one in node.expressions if isinstance(node, exp.Select) else ():
            if one.is_star:
                node.meta[_AT] = line(one)
            elif isinstance(one, exp.Column):
                one.replace(exp.alias_(one.copy(), one.this.copy()))


class _Blocks:
    """Blocks of a resolved SELECT."""

    def __init__(self, model: str, tree: exp.Expr, relations: Mapping[str, Sequence[str]], shown_path: str) -> None:
        self.blocks: dict[str, Block] = {}
        self._model, self._relations, self._shown_path = model, relations, shown_path
        root = cast("Scope", build_scope(tree))
        self._scopes = {id(scope.expression): scope for scope in root.traverse()}
        self._names: dict[int, str] = {}
        self._read(root, "")

    def _read(self, scope: Scope, wanted: str) -> str:
        """Add the block of a scope, if it is new, and return its name."""
        known = self._names.get(id(scope.expression))
        if known is not None:
            return known
        name, number = wanted, 2
        while name in self._names.values():
            name, number = f"{wanted} ({number})", number + 1
        self._name(scope.expression, name)
        self.blocks[name] = self._block(scope)
        return name

    def _name(self, query: exp.Expr, name: str) -> None:
        """Give a query and its branches a name: a recursive CTE reads its first branch."""
        self._names[id(query)] = name
        if isinstance(query, exp.SetOperation):
            # sqlglot may put brackets around a branch.
            self._name(query.this.unnest(), name)
            self._name(query.expression.unnest(), name)

    def _block(self, scope: Scope) -> Block:
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            left, right = (self._block(one) for one in scope.set_operation_scopes)
            pairs = zip(left.columns.items(), right.columns.values(), strict=True)
            steps = {one: (*mine, *others) for (one, mine), others in pairs}
            deciders = [*left.deciders, *right.deciders]
            # UNION ALL keeps every row; all others compare whole rows.
            if query.args.get("distinct") or not isinstance(query, exp.Union):
                refs = [ref for column in steps.values() for step in column for ref in step.inputs]
                deciders.append(self._step(query.key, line(query), unique(refs)))
            return Block(steps, tuple(deciders), unique([*left.reads, *right.reads]))
        if not isinstance(query, exp.Select):
            return self._function(query, scope)
        columns = {one.alias_or_name: (self._column_step(one, query, scope),) for one in query.expressions}
        return Block(columns, tuple(self._deciders(query, scope)), self._reads(scope))

    def _reads(self, scope: Scope) -> tuple[Node, ...]:
        """Return the rows of the relations and blocks in FROM."""
        names = (self._source(alias, scope) for alias, _ in scope.references if alias in scope.sources)
        return unique(self._node(name, ROWS) for name in names)

    def _node(self, source: str, column: str) -> Node:
        return Node(source, "", column) if "." in source else Node(self._model, source, column)

    def _step(self, kind: str, at: int, refs: tuple[Node, ...]) -> Step:
        return Step(kind, f"{self._shown_path}:{at}", refs)

    def _function(self, node: exp.Expr, scope: Scope | None) -> Block:
        """Return the block of VALUES or of a table function, whose columns depend on its arguments."""
        alias = node.args.get("alias")
        names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if isinstance(node, exp.Values):
            names += [f"col{at}" for at in range(len(names), len(node.expressions[0].expressions))]
        refs = self._refs([node.this if isinstance(node, (exp.Table, exp.Lateral)) else node], scope)
        step = self._step(COMPUTED if refs else LITERAL, line(node), refs)
        return Block(dict.fromkeys(names or [node.alias or "unnest"], (step,)), (), ())

    def _column_step(self, node: exp.Expr, select: exp.Select, scope: Scope) -> Step:
        value = node.unalias()
        below = list(_of_this_query(value))
        refs = self._refs([value], scope)
        inside = (self.blocks[ref.block].columns[ref.column] for ref in refs if ref.block.startswith(_SCALAR))
        if any(map(_aggregates, below)) or any(step.kind == AGGREGATED for steps in inside for step in steps):
            kind = AGGREGATED
        elif not refs:
            kind = LITERAL
        else:
            kind = COPIED if isinstance(value, (exp.Column, exp.Dot)) else COMPUTED
        return self._step(kind, line(node) or select.meta.get(_AT, 0), refs)

    def _deciders(self, select: exp.Select, scope: Scope) -> Iterator[Step]:
        """Yield the clauses that determine the rows of a SELECT."""

        def step(how: str, nodes: Sequence[exp.Expr], at: int = 0) -> Step:
            found = at or next((number for node in nodes if (number := line(node))), 0)
            return self._step(how, found or select.meta[_AT], self._refs(nodes, scope))

        for join in select.args.get("joins") or ():
            on = join.args.get("on")
            if on is not None and not isinstance(on, exp.Boolean):
                yield step("join", [on], line(on) or join.meta[_AT])
        for key in ("where", "having", "qualify"):
            if clause := select.args.get(key):
                yield step("filter", [clause.this], clause.meta[_AT])
        values = [one.unalias() for one in select.expressions]
        if group := select.args.get("group"):
            kinds = ("expressions", "rollup", "cube", "grouping_sets")
            by = [one for kind in kinds for one in group.args.get(kind) or ()]
            if group.args.get("all"):
                by = [one for one in values if not any(map(_aggregates, one.walk()))]
            yield step("group", by, group.meta.get(_AT, 0))
        if distinct := select.args.get("distinct"):
            on = distinct.args.get("on")
            yield step("distinct", values if on is None else [on])
        if select.args.get("limit") or select.args.get("offset"):
            order = select.args.get("order")
            yield step("limit", order.expressions if order else [])

    def _refs(self, nodes: Iterable[exp.Expr], scope: Scope | None) -> tuple[Node, ...]:
        """Return the columns that expressions read, in order of their names in the text."""
        found: list[Node] = []
        for one in (below for node in nodes for below in _of_this_query(node)):
            if isinstance(one, _QUERY):
                name = self._read(self._scopes[id(one)], f"{_SCALAR}{line(one)}")
                found += [self._node(name, column) for column in self.blocks[name].columns]
            elif isinstance(one, exp.Star):
                found += self._reads(scope) if scope else ()
            elif isinstance(one, (exp.Column, exp.TableColumn)) and not isinstance(one.this, exp.Star):
                found += self._column(one, scope)
        return unique(found)

    def _column(self, node: exp.Expr, scope: Scope | None) -> list[Node]:
        alias = node.text("table") or node.name
        while scope is not None and alias not in scope.sources:
            scope = scope.parent
        if scope is None:  # the parameter of a lambda
            return []
        source = self._source(alias, scope)
        if not node.text("table"):
            return [self._node(source, ROWS)]
        columns = self.blocks[source].columns if source in self.blocks else self._relations.get(source, ())
        name = next((one for one in columns if one.lower() == node.name.lower()), node.name)
        return [self._node(source, name)]

    def _source(self, alias: str, scope: Scope | None) -> str:
        """Return the relation or block that a name of FROM means."""
        source: Any = scope.sources[alias] if scope else None
        if isinstance(source, Scope):
            around = source.expression.parent
            name = around.alias if isinstance(around, exp.CTE) else self._called(source.expression, alias)
            return self._read(source, name)
        if isinstance(source.this, exp.Identifier):
            return f"{source.db}.{source.name}".lower()
        if id(source) not in self._names:
            self._names[id(source)] = name = self._called(source, alias)
            self.blocks[name] = self._function(source, scope)
        return self._names[id(source)]

    @staticmethod
    def _called(node: exp.Expr, alias: str) -> str:
        """Return the name of an unnamed query or function in FROM; sqlglot makes aliases with an underscore."""
        return f"{_FROM}{line(node)}" if alias.startswith("_") else alias


def _of_this_query(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression; a subquery is yielded, but not its children."""
    waiting: list[exp.Expr] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, _WHOLE):
            # In reverse, as the last one is popped first: the order is that of the text.
            waiting += one.iter_expressions(reverse=True)


def _aggregates(node: exp.Expr) -> bool:
    """Return True if a node is an aggregate function."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATES  # aggregates without a class in sqlglot
    return isinstance(node, exp.AggFunc) and not isinstance(node, _NOT_SUMMED)


def unique(several: Iterable[T]) -> tuple[T, ...]:
    """Return the distinct values in their order."""
    return tuple(dict.fromkeys(several))
