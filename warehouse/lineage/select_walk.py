"""Column lineage of one SELECT: a walk over its syntax tree, block by block.

A block is the outermost SELECT (named ""), a CTE or a subquery. The columns of the relations come from contracts; no
query runs. sqlglot parses. Names are resolved here, in a fifth of the time of sqlglot's `qualify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError

from warehouse.base.errors import ModelError, Place
from warehouse.lineage.steps import AGGREGATED, COMPUTED, COPIED, LITERAL, ROWS, Block, Ref, Step
from warehouse.lineage.syntax_nodes import aggregates, is_bound_by_lambda, line, of_this_query, unique, values

_SCALAR, _FROM = "subquery:", "from:"
"""Prefixes of names for unnamed queries, followed by the line: inside an expression, and in FROM."""


def blocks_of(sql: str, relations: Mapping[str, Sequence[str]], shown_path: str) -> dict[str, Block]:
    """Return the blocks of a SELECT by name, the outermost as "".

    Parameters
    ----------
    sql
        The SELECT with rendered macros and the line numbers of the file.
    relations
        The columns of all relations that the SELECT may read.
    shown_path
        The file, for messages.

    Raises
    ------
    ModelError
        When the SELECT does not parse, a column is unknown, or columns are selected by pattern or position.
    """
    try:
        tree = parse_one(sql, read="duckdb")
    except SqlglotError as error:
        first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        place = Place(shown_path, first.get("line"), first.get("col"))
        raise ModelError(f"it does not parse: {first.get('description') or error}", place=place) from error
    walk = _Walk(relations, shown_path)
    walk.refuse_unnamed(tree)
    walk.query(tree, "", {}, None)
    return walk.blocks


@dataclass(frozen=True)
class _Source:
    """Item of FROM: its block or relation, and its columns by their names in this query."""

    name: str
    columns: Mapping[str, str]
    """Name of a column in this query, in lower case -> its name in the source."""

    def ref(self, column: str) -> Ref:
        return Ref(self.name, self.columns[column.lower()])


@dataclass
class _Scope:
    """Names that an expression can use."""

    sources: dict[str, _Source]
    outer: _Scope | None
    ctes: Mapping[str, str]
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    """Aliases of the SELECT list."""


class _Walk:
    def __init__(self, relations: Mapping[str, Sequence[str]], shown_path: str) -> None:
        self.blocks: dict[str, Block] = {}
        self._relations = relations
        self._shown = shown_path
        self._inside: list[exp.Expr] = []

    # queries --------------------------------------------------------------------------------

    def query(self, node: exp.Expr, name: str, ctes: Mapping[str, str], outer: _Scope | None) -> Block:
        """Walk a query and store its block."""
        block = self._query(node, name, ctes, outer)
        self.blocks[name] = block
        return block

    def _query(self, node: exp.Expr, name: str, ctes: Mapping[str, str], outer: _Scope | None) -> Block:
        ctes = self._ctes(node, ctes, outer)
        if isinstance(node, exp.Subquery):
            return self._query(node.this, name, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, name, ctes, outer)
        if isinstance(node, exp.Values):
            return values(node)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        raise self._error(node, f"lineage does not know {node.key.upper()} as a query")

    def refuse_unnamed(self, tree: exp.Expr) -> None:
        """Raise ModelError for COLUMNS, PIVOT, and stars with a pattern or RENAME."""
        for node in tree.find_all(exp.Columns, exp.Pivot, exp.Star):
            is_filtered = isinstance(node, exp.Star) and isinstance(node.parent, (exp.Like, exp.ILike, exp.Glob))
            if not isinstance(node, exp.Star) or is_filtered or node.args.get("rename"):
                name = "a star with a pattern or RENAME" if isinstance(node, exp.Star) else node.key.upper()
                raise self._error(node, f"lineage does not know {name}: name the columns")

    def _ctes(self, node: exp.Expr, ctes: Mapping[str, str], outer: _Scope | None) -> Mapping[str, str]:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name = self._new_name(cte.alias)
            body = cte.this
            if with_.args.get("recursive") and isinstance(body, exp.SetOperation):
                self.query(body.this, name, known, outer)  # the first branch, which the recursive one reads
                known[cte.alias.lower()] = name
            block = self.query(body, name, known, outer)
            names = [column.name for column in cte.args["alias"].columns]
            if names:
                renamed = dict(zip(names, block.columns.values(), strict=False))
                self.blocks[name] = Block(renamed, block.deciders, block.reads)
            known[cte.alias.lower()] = name
        return known

    def _set_operation(self, node: exp.SetOperation, name: str, ctes: Mapping[str, str], outer: _Scope | None) -> Block:
        left = self._query(node.this, name, ctes, outer)
        right = self._query(node.expression, name, ctes, outer)
        if node.args.get("by_name"):
            names = dict.fromkeys([*left.columns, *right.columns])
            steps = {one: (*left.columns.get(one, ()), *right.columns.get(one, ())) for one in names}
        else:
            pairs = zip(left.columns.items(), right.columns.values(), strict=False)
            steps = {one: (*mine, *others) for (one, mine), others in pairs}
        deciders = [*left.deciders, *right.deciders]
        if node.args.get("distinct") or not isinstance(node, exp.Union):
            refs = [ref for column in steps.values() for step in column for ref in step.inputs]
            deciders.append(Step(node.key, line(node), unique(refs)))
        return Block(steps, tuple(deciders), unique([*left.reads, *right.reads]))

    def _select(self, node: exp.Select, ctes: Mapping[str, str], outer: _Scope | None) -> Block:
        scope = _Scope({}, outer, ctes)
        deciders: list[Step] = []
        from_ = node.args.get("from_")
        if from_ is not None:
            self._add_source(from_.this, scope, deciders)
        for lateral in node.args.get("laterals") or ():
            self._add_source(lateral, scope, deciders)
        for join in node.args.get("joins") or ():
            self._add_join(join, scope, deciders)
        scope.aliases = {one.alias.lower(): one.this for one in node.expressions if isinstance(one, exp.Alias)}
        columns: dict[str, tuple[Step, ...]] = {}
        for position, one in enumerate(node.expressions):
            columns |= self._projected(one, position, scope)
        for how, key in (("filter", "where"), ("filter", "having"), ("filter", "qualify")):
            if clause := node.args.get(key):
                deciders.append(self._decider(how, [clause.this], scope))
        deciders += self._grouping(node, scope, columns)
        if distinct := node.args.get("distinct"):
            on = distinct.args.get("on")
            by = [on] if on is not None else [one.unalias() for one in node.expressions]
            deciders.append(self._decider("distinct", by, scope))
        if node.args.get("limit") or node.args.get("offset"):
            order = node.args.get("order")
            deciders.append(self._decider("limit", order.expressions if order else [], scope, at=node))
        reads = unique(source.name for source in scope.sources.values())
        return Block(columns, tuple(deciders), reads)

    def _grouping(self, node: exp.Select, scope: _Scope, columns: Mapping[str, tuple[Step, ...]]) -> Iterator[Step]:
        group = node.args.get("group")
        if group is None:
            return
        if group.args.get("all"):
            by = [one.unalias() for one in node.expressions if not any(map(aggregates, one.walk()))]
        else:
            by = [
                node.expressions[int(one.name) - 1].unalias() if one.is_int else one
                for kind in ("expressions", "rollup", "cube", "grouping_sets")
                for one in group.args.get(kind) or ()
            ]
        yield self._decider("group", by, scope, at=group if by else node)

    def _decider(self, how: str, nodes: Sequence[exp.Expr], scope: _Scope, at: exp.Expr | None = None) -> Step:
        refs = unique(ref for node in nodes for ref in self._refs(node, scope))
        return Step(how, line(nodes[0] if nodes else at), refs)

    # FROM -----------------------------------------------------------------------------------

    def _add_join(self, join: exp.Join, scope: _Scope, deciders: list[Step]) -> None:
        before = dict(scope.sources)
        added = self._add_source(join.this, scope, deciders)
        using = [one.name for one in join.args.get("using") or ()]
        if join.method == "NATURAL":
            using = [one for one in added.columns if any(one in source.columns for source in before.values())]
        if using:
            sides = [added, *before.values()]
            refs = [side.ref(one) for one in using for side in sides if one.lower() in side.columns]
            deciders.append(Step("join", line(join), unique(refs)))
        elif on := join.args.get("on"):
            deciders.append(self._decider("join", [on], scope))

    def _add_source(self, node: exp.Expr, scope: _Scope, deciders: list[Step]) -> _Source:
        """Add an item of FROM and its joins to the scope; return the item."""
        alias = node.args.get("alias")
        source = self._source(node, scope)
        names = [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        if names:  # FROM x AS y (a, b) renames the first columns
            actual = list(source.columns.values())
            names += [one.lower() for one in actual[len(names) :]]
            source = _Source(source.name, dict(zip(names, actual, strict=False)))
        scope.sources[(node.alias_or_name or source.name).lower()] = source
        for join in node.args.get("joins") or ():
            self._add_join(join, scope, deciders)
        return source

    def _source(self, node: exp.Expr, scope: _Scope) -> _Source:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return self._table(node, scope)
        if isinstance(node, (exp.Subquery, exp.Values)):
            name = self._new_name(node.alias or f"{_FROM}{line(node)}")
            block = self.query(node, name, scope.ctes, scope)
            return _Source(name, {one.lower(): one for one in block.columns})
        # a table function: its columns depend on its arguments
        refs = self._refs(node, scope)
        alias = node.args.get("alias")
        names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        names = names or [node.alias or node.this.sql_name().lower()]
        step = Step(COMPUTED if refs else LITERAL, line(node), refs)
        name = self._new_name(node.alias or f"{_FROM}{line(node)}")
        self.blocks[name] = Block(dict.fromkeys(names, (step,)), (), ())
        return _Source(name, {one.lower(): one for one in names})

    def _table(self, node: exp.Table, scope: _Scope) -> _Source:
        cte = None if node.db else scope.ctes.get(node.name.lower())
        if cte is not None:
            return _Source(cte, {one.lower(): one for one in self.blocks[cte].columns})
        name = f"{node.db}.{node.name}".lower()
        if name not in self._relations:
            raise self._error(node, f"no relation {name.strip('.')}")
        return _Source(name, {one.lower(): one for one in self._relations[name]})

    # expressions ----------------------------------------------------------------------------

    def _projected(self, node: exp.Expr, position: int, scope: _Scope) -> dict[str, tuple[Step, ...]]:
        """Return the columns of one item of the SELECT list; several for a star."""
        if node.is_star:
            star = node if isinstance(node, exp.Star) else node.this
            of = [self._qualifier(node.table, node, scope)] if isinstance(node, exp.Column) else scope.sources.values()
            left_out = {one.name.lower() for one in star.args.get("except_") or star.args.get("except") or ()}
            found: dict[str, tuple[Step, ...]] = {}
            for source in of:
                for called, actual in source.columns.items():
                    if called not in left_out and called not in map(str.lower, found):
                        name = actual if actual.lower() == called else called
                        found[name] = (Step(COPIED, line(node), (Ref(source.name, actual),)),)
            for replaced in star.args.get("replace") or ():
                found[replaced.alias] = (self._step(replaced.unalias(), scope),)
            return found
        name = node.alias_or_name or f"column {position + 1}"
        return {name: (self._step(node.unalias(), scope, at=node),)}

    def _step(self, node: exp.Expr, scope: _Scope, at: exp.Expr | None = None) -> Step:
        below = list(of_this_query(node))
        refs = self._refs_in(below, scope)
        nested = [self.blocks[ref.source].kind_of(ref.column) for ref in refs if ref.source.startswith(_SCALAR)]
        if any(map(aggregates, below)) or AGGREGATED in nested:
            kind = AGGREGATED
        elif not refs:
            kind = LITERAL
        else:
            kind = COPIED if isinstance(node, exp.Column) else COMPUTED
        return Step(kind, line(at or node), refs)

    def _refs(self, node: exp.Expr, scope: _Scope) -> tuple[Ref, ...]:
        """Return the columns that an expression reads, in order of their names in the text."""
        return self._refs_in(of_this_query(node), scope)

    def _refs_in(self, nodes: Iterable[exp.Expr], scope: _Scope) -> tuple[Ref, ...]:
        found: list[Ref] = []
        for one in nodes:
            if isinstance(one, exp.Column) and not isinstance(one.this, exp.Star):
                found += self._column(one, scope)
            elif isinstance(one, exp.Star):
                found += [Ref(source.name, ROWS) for source in scope.sources.values()]
            elif isinstance(one, (exp.Select, exp.SetOperation)):
                name = self._new_name(f"{_SCALAR}{line(one)}")
                found += [Ref(name, column) for column in self.query(one, name, scope.ctes, scope).columns]
        return unique(found)

    def _column(self, node: exp.Column, scope: _Scope) -> Sequence[Ref]:
        if is_bound_by_lambda(node):
            return ()
        name = node.name.lower()
        if node.table:
            at: _Scope | None = scope
            while at is not None:
                source = at.sources.get(node.table.lower())
                if source is not None and name in source.columns:
                    return [source.ref(name)]
                at = at.outer
            return self._name(node.table.lower(), node, scope)  # a field of a struct
        return self._name(name, node, scope)

    def _name(self, name: str, node: exp.Column, scope: _Scope) -> Sequence[Ref]:
        """Resolve an unqualified name: a column, else an alias of the SELECT list, else a name of the outer query."""
        for source in scope.sources.values():
            if name in source.columns:
                return [source.ref(name)]
        named = scope.aliases.get(name)
        if named is not None and named not in self._inside:
            self._inside.append(named)
            try:
                return self._refs(named, scope)
            finally:
                self._inside.pop()
        if name in scope.sources and not node.table:  # the whole row
            return [Ref(scope.sources[name].name, ROWS)]
        if scope.outer is not None:
            return self._name(name, node, scope.outer)
        raise self._error(node, f"no column {node.sql()}")

    def _qualifier(self, name: str, node: exp.Expr, scope: _Scope) -> _Source:
        source = scope.sources.get(name.lower())
        if source is None:
            raise self._error(node, f"no relation {name}")
        return source

    def _new_name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.blocks:
            name, number = f"{wanted} ({number})", number + 1
        return name

    def _error(self, node: exp.Expr, message: str) -> ModelError:
        return ModelError(message, place=Place(self._shown, line(node)))
