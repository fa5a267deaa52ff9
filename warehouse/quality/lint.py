"""Lint for reproducible SQL: finds expressions whose result can differ between runs or versions.

`RULES` has all rules, each with the reason and a replacement. `docs/reproducible-sql.md` explains them to authors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from warehouse.base.errors import Place
from warehouse.base.startup import regex
from warehouse.engine import tree
from warehouse.graph.dag import columns_outside
from warehouse.graph.syntax import parsed, qualified, schema_of, uneven
from warehouse.project.project import Project

_COMMENT = regex(r"--\s*lint:(?:\s*allow (?P<rules>[a-z-]+(?:, [a-z-]+)*) because \S)?")


@dataclass(frozen=True, order=True)
class Finding:
    """Violation of a rule: place, rule, and reason with a replacement."""

    line: int
    column: int
    rule: str
    why: str
    shown_path: str = ""

    def __str__(self) -> str:
        return f"{Place(self.shown_path, self.line, self.column)}: {self.why} [{self.rule}]"


def lint_project(project: Project) -> list[Finding]:
    """Return the findings of all SQL models, with column types from the contracts of their inputs."""
    schema = types_of(project)
    models = [model for model in project.models.values() if not model.is_python]
    return [one for m in models for one in lint(project.render(m), shown_path=m.shown_path, schema=schema)]


def types_of(project: Project) -> MappingSchema:
    """Return the types of the columns of all relations that a model or query may read."""
    contracts = columns_outside(project) | {name: one.columns for name, one in project.models.items()}
    return schema_of({name: {one.name: one.type for one in columns} for name, columns in contracts.items()})


def lint(sql: str, *, shown_path: str, schema: MappingSchema | None = None) -> list[Finding]:
    """Return the findings of a SELECT, sorted by place. Raises ModelError if it does not parse.

    Without a schema, rules that need columns and their types are skipped.
    """
    tree = parsed(sql, shown_path)
    refused = {*_refused(tree, sql, [rule for rule in RULES if not rule.typed])}
    if schema:
        # On a copy: resolving names moves nodes, and the other rules go by what is written.
        refused |= {*_refused(_typed(tree, schema), sql, [rule for rule in RULES if rule.typed])}
    findings = set()
    for line, text in enumerate(sql.split("\n"), 1):
        comment = _COMMENT.search(text)
        if comment and not comment["rules"]:
            why = "an exception is written `-- lint: allow RULE because REASON`"
            findings.add(Finding(line, comment.start() + 1, "allow", why, shown_path))
        allowed = comment["rules"].split(", ") if comment and comment["rules"] else []
        for start, rule in refused:
            if sql.count("\n", 0, start) + 1 == line and rule.name not in allowed:
                findings.add(Finding(line, start - sql.rfind("\n", 0, start), rule.name, rule.why, shown_path))
    return sorted(findings)


def _typed(tree: exp.Expr, schema: MappingSchema) -> exp.Expr:
    """Return a copy of the tree with resolved columns and, where possible, types."""
    try:
        return annotate_types(qualified(tree.copy(), schema, strict=False), schema=schema, dialect="duckdb")
    except SqlglotError:  # binding errors are reported by the engine
        return exp.Null()


def _refused(tree: exp.Expr, sql: str, rules: Sequence[Rule]) -> Iterator[tuple[int, Rule]]:
    """Yield each violation as an offset in the SQL and its rule."""
    for node in tree.walk():
        # As written, since sqlglot knows several functions under one name.
        written = re.match(r"\w+", sql[node.meta["start"] :]) if "start" in node.meta else None
        name = (written[0] if written else node.sql_name()).lower() if isinstance(node, exp.Func) else ""
        for rule in rules:
            if (name and re.fullmatch(rule.functions, name)) or (isinstance(node, rule.nodes) and rule.when(node)):
                yield _start(node), rule


def _start(node: exp.Expr) -> int:
    """Return the first offset of a node's text; without one, that of the nearest parent node."""
    holder: exp.Expr | None = node
    while holder is not None:
        starts = [int(below.meta["start"]) for below in holder.walk() if "start" in below.meta]
        if starts:
            return min(starts)
        holder = holder.parent
    return 0


@dataclass(frozen=True)
class Rule:
    """Lint rule: forbidden functions (a pattern of names) or node types, with the reason."""

    name: str
    why: str
    functions: str = "(?!)"
    nodes: type[exp.Expr] | tuple[type[exp.Expr], ...] = ()
    when: Callable[[Any], object] = lambda _: True
    typed: bool = False
    """True if the rule needs column types."""


_T = exp.DType
_FLOATS, _TEXTS, _NESTED = (_T.DOUBLE, _T.FLOAT), (_T.VARCHAR, _T.TEXT), (_T.ARRAY, _T.LIST, _T.STRUCT, _T.MAP)
_PICKS = (exp.First, exp.Last, exp.AnyValue, exp.ArrayAgg, exp.GroupConcat)
_IN_ORDER = (
    *_PICKS,
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.PercentRank, exp.CumeDist, exp.Lag, exp.Lead),
    *(exp.FirstValue, exp.LastValue, exp.NthValue),
)
_AROUND = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)


def _unordered(node: exp.Expr) -> bool:
    """Return True if an order-dependent node has no ORDER BY of its own, of its window or of its query."""
    if isinstance(node, exp.Join):
        return node.method.upper() == "POSITIONAL"
    if isinstance(node, exp.Window):
        function = node.this
        # FILTER and IGNORE NULLS wrap the function in the tree.
        while isinstance(function, _AROUND):
            function = function.this
        has_order = node.args.get("order") or node.alias or isinstance(function.this, exp.Order)
        return not has_order and bool(isinstance(function, _IN_ORDER) or node.args.get("spec"))
    if isinstance(node, _PICKS):
        around = node.parent
        while isinstance(around, _AROUND):
            around = around.parent
        return not isinstance(node.this, exp.Order) and not isinstance(around, (exp.Window, exp.WithinGroup))
    # DISTINCT without ON keeps all that tells rows apart.
    is_plain = isinstance(node, exp.Distinct) and not node.args.get("on")
    return not is_plain and node.parent is not None and not node.parent.args.get("order")


def _adds_doubles(node: exp.Expr) -> bool:
    added = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    return bool(added.is_type(*_FLOATS))


def _nests(cast: exp.Cast) -> bool:
    """Return True for casts between a text and a list, struct or map."""
    kinds = (cast.this, cast.to)
    return any(one.is_type(*_TEXTS) for one in kinds) and any(one.is_type(*_NESTED) for one in kinds)


RULES = (
    Rule("approximate", "it depends on the order of rows; quantile_cont(x, q), count(DISTINCT x)",
         r"approx_\w+|reservoir_quantile"),
    Rule("by-name", "one order of the same columns on both sides, missing ones as NULL; lineage goes by position",
         nodes=exp.SetOperation, when=uneven, typed=True),
    Rule("cast", "quotes differ between versions of DuckDB; string_split, array_to_string",
         nodes=exp.Cast, when=_nests, typed=True),
    Rule("chance", "of equal ones it picks any; min(x), or arg_min(x, struct_pack(a := k, b := id))",
         r"mode|arbitrary|arg_(max|min)_null\w*", (exp.ArgMax, exp.ArgMin),
         lambda e: not isinstance(e.expression, (exp.Struct, exp.Tuple))),
    Rule("double-sum", "it depends on the order of rows; integers, or sum(x::DECIMAL(18, 6))::DOUBLE",
         nodes=(exp.Sum, exp.Avg), when=_adds_doubles, typed=True),
    Rule("hash", "it differs between versions of DuckDB; md5(x)", "hash"),
    Rule("last-bits", "its last digit depends on processor and C library; sums of integers, sqrt, z * z",
         "a?(cos|sin|tan)h?|atan2|cbrt|cot|exp|l?gamma|ln|log|log2|log10", exp.Pow),
    Rule("order", "rows come in any order; ORDER BY all that tells them apart", r"json_group_\w+",
         (exp.Limit, exp.Fetch, exp.Offset, exp.Distinct, exp.Join, exp.Window, *_PICKS), _unordered),
    Rule("sample", "other rows in every build; a condition", nodes=exp.TableSample),
    Rule("source", "no fingerprint knows what it reads; a relation of raw or reference", tree.TABLES.pattern,
         exp.Table, lambda e: not e.db and re.search(r"\W", e.name)),
    Rule("statistics", "it adds doubles in the order of rows; sums of integers, avg",
         r"corr|covar_\w+|entropy|favg|fsum|geo\w*mean|kahan_sum|kurtosis\w*|mean|product|regr_(?!count)\w+|sem"
         r"|skewness|stddev\w*|sumkahan|var_\w+|variance|wavg|weighted_avg"),
    Rule("volatile", "it differs in every build; a column of the data",
         "|".join(tree.FUNCTIONS | tree.KEYWORDS)),
    Rule("zone", "it depends on the machine's time zone; ts + INTERVAL '8 hours', make_timestamp(microseconds)",
         "timezone|to_timestamp", (exp.AtTimeZone, exp.DataType),
         lambda e: isinstance(e, exp.AtTimeZone) or e.is_type(_T.TIMESTAMPTZ, _T.TIMETZ)),
)  # fmt: skip
