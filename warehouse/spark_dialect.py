"""Spark SQL from the models' DuckDB SQL.

sqlglot's own Spark dialect writes SQL that runs and gives other rows in some eighty cases. `SparkW` corrects
those that models may use; the others `warehouse.lint` refuses. A correction is a line in a table of nodes, or
a function there, whose docstring says why.

It is for Spark 4.3 or later, with `spark.sql.session.timeZone=UTC` and `spark.sql.ansi.enabled=true`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel, exp, parse_one, transforms
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator

from warehouse.errors import ModelError

_Translate = Callable[[Any, Any], str]
_MICROSECONDS = {"SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}


def to_spark(sql: str, view_of: Callable[[str], str] | None = None) -> str:
    """One DuckDB SELECT as Spark SQL, laid out for reading.

    Parameters
    ----------
    sql
        The SELECT.
    view_of
        Gives the name that Spark has for a relation (`schema.name`); without it, names stay. Spark's temporary
        views have no schema.

    Raises
    ------
    ModelError
        When the SQL does not parse, or holds what Spark cannot be made to do alike.
    """
    try:
        tree = parse_one(sql, read="duckdb")
        for table in list(tree.find_all(exp.Table)) if view_of else ():
            if table.db and view_of:
                _rename(table, view_of(f"{table.db}.{table.name}"))
        return tree.sql(SparkW, pretty=True, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        raise ModelError(
            f"not to be said in Spark's SQL: {error}", hint="docs/portable_sql.md has what to write instead"
        ) from error


def spark_type(kind: str) -> str:
    """A type of a contract as Spark writes it.

    >>> spark_type("TIMESTAMP"), spark_type("VARCHAR[]")
    ('TIMESTAMP_NTZ', 'ARRAY<STRING>')
    """
    return exp.DataType.build(kind, dialect="duckdb").sql(SparkW)


def _rename(table: exp.Table, view: str) -> None:
    """Give a relation its other name; its columns go on by the one that was written."""
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier(view))
    table.set("db", None)


def _date_trunc(self: SparkGenerator, node: exp.TimestampTrunc) -> str:
    """Spark's own gives a TIMESTAMP with zone."""
    return f"CAST(DATE_TRUNC('{node.text('unit')}', {self.sql(node, 'this')}) AS TIMESTAMP_NTZ)"


def _from_epoch(self: SparkGenerator, node: exp.UnixToTime) -> str:
    """epoch_ms(BIGINT) and make_timestamp(BIGINT): Spark's give a TIMESTAMP with zone."""
    names = {"3": "TIMESTAMP_MILLIS", "6": "TIMESTAMP_MICROS"}
    name = names.get(node.text("scale"))
    if name is None:
        self.unsupported("to_timestamp(seconds) loses fractions; write make_timestamp(seconds * 1000000)")
    return f"CAST({self.func(name or 'TIMESTAMP_SECONDS', node.this)} AS TIMESTAMP_NTZ)"


def _to_epoch(self: SparkGenerator, node: exp.TimeToUnix) -> str:
    """epoch(ts): Spark's UNIX_TIMESTAMP drops the fraction."""
    return f"({self.func('UNIX_MICROS', node.this)} / 1E6)"


def _date_diff(self: SparkGenerator, node: exp.DateDiff) -> str:
    """DuckDB counts the boundaries between two times, Spark the whole units that have passed."""
    unit = node.text("unit").upper() or "DAY"
    late, early = self.sql(node, "this"), self.sql(node, "expression")
    if unit == "DAY":
        return f"CAST(DATEDIFF(CAST({late} AS DATE), CAST({early} AS DATE)) AS BIGINT)"
    if unit not in _MICROSECONDS:
        self.unsupported(f"date_diff('{unit.lower()}')")
    floors = [f"UNIX_MICROS(DATE_TRUNC('{unit}', {time}))" for time in (late, early)]
    return f"(({' - '.join(floors)}) DIV {_MICROSECONDS.get(unit, 1)})"


def _anonymous(self: SparkGenerator, node: exp.Anonymous) -> str:
    """Functions that sqlglot hands on by name."""
    name = {"EPOCH_US": "UNIX_MICROS"}.get(node.name.upper(), node.name)
    return self.func(name, *node.expressions)


def _extreme(name: str) -> _Translate:
    """arg_max and arg_min skip rows whose argument is NULL, MAX_BY and MIN_BY do not."""

    def translate(self: SparkGenerator, node: exp.ArgMax | exp.ArgMin) -> str:
        if node.args.get("count"):
            self.unsupported("arg_max(x, y, n)")
        if isinstance(node.parent, exp.Window):
            self.unsupported("arg_max over a window")
        call = self.func(name, node.this, _nulls_largest(node.expression))
        filtered = isinstance(node.parent, exp.Filter)
        return call if filtered else f"{call} FILTER(WHERE {self.sql(_given(node.this))})"

    return translate


def _given(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _nulls_largest(key: exp.Expr) -> exp.Expr:
    """Put a NULL in a struct above all else, as DuckDB does; Spark has it below."""
    if not isinstance(key, (exp.Struct, exp.Tuple)):
        return key
    values = [item.expression if isinstance(item, exp.PropertyEQ) else item for item in key.expressions]
    tests = [exp.Is(this=value.copy(), expression=exp.Null()) for value in values]
    return exp.Struct(expressions=[item for pair in zip(tests, values, strict=True) for item in pair])


def _quantile_disc(self: SparkGenerator, node: exp.PercentileDisc) -> str:
    """Spark has the standard's spelling only."""
    if not node.expression:
        return self.function_fallback_sql(node)
    if isinstance(node.expression, exp.Array):
        self.unsupported("quantile_disc with a list of quantiles")
    return f"PERCENTILE_DISC({self.sql(node, 'expression')}) WITHIN GROUP (ORDER BY {self.sql(node, 'this')})"


def _quantile_cont(self: SparkGenerator, node: exp.PercentileCont) -> str:
    """PERCENTILE(x, q) interpolates; percentile_cont(q) WITHIN GROUP stays as it is."""
    if not node.expression:
        return self.function_fallback_sql(node)
    return self.func("PERCENTILE", node.this, node.expression)


def _filter(self: SparkGenerator, node: exp.Filter) -> str:
    """Move a FILTER inside of what an ordered list becomes; join it with the one of arg_max."""
    inner, where = node.this, node.expression
    if isinstance(inner, exp.ArrayAgg):
        return _ordered_list(self, inner, where)
    if isinstance(inner, (exp.ArgMax, exp.ArgMin)):
        where = exp.Where(this=exp.and_(where.this, _given(inner.this)))
    return f"{self.sql(inner)} FILTER({self.sql(where).strip()})"


def _ordered_list(self: SparkGenerator, node: exp.ArrayAgg, where: exp.Expr | None = None) -> str:
    """COLLECT_LIST has no order, drops NULLs and gives [] for no rows: structs are collected and sorted."""
    order = node.this
    if not isinstance(order, exp.Order) or isinstance(order.this, exp.Distinct):
        self.unsupported("list() without ORDER BY, or of DISTINCT values")
        return self.arrayagg_sql(node)
    compare = "0"
    for place, key in reversed(list(enumerate(order.expressions))):
        down, null = (-1 if key.args.get("desc") else 1), (-1 if key.args.get("nulls_first") else 1)
        compare = (
            f"CASE WHEN l.k{place} <=> r.k{place} THEN {compare} WHEN l.k{place} IS NULL THEN {null} "
            f"WHEN r.k{place} IS NULL THEN {-null} WHEN l.k{place} < r.k{place} THEN {-down} ELSE {down} END"
        )
    keys = ", ".join(f"{self.sql(key, 'this')} AS k{place}" for place, key in enumerate(order.expressions))
    rows = f"COLLECT_LIST(STRUCT({keys}, {self.sql(order, 'this')} AS v))"
    if where:
        rows += f" FILTER({self.sql(where).strip()})"
    return f"TRANSFORM(ARRAY_SORT(NULLIF({rows}, ARRAY()), (l, r) -> {compare}), x -> x.v)"


def _series(self: SparkGenerator, node: exp.GenerateSeries) -> str:
    """SEQUENCE(1, 0) counts down where range(1, 1) is empty, and its elements are INT."""
    if node.args.get("step"):
        self.unsupported("range() with a step")
    first, last = node.args["start"], node.args["end"]
    some = first <= last
    if node.args.get("is_end_exclusive"):
        some, last = first < last, last - 1
    sequence = self.func("SEQUENCE", exp.cast(first, exp.DType.BIGINT), last)
    return self.func("IF", some, sequence, exp.Array())


def _exploded(self: SparkGenerator, node: exp.Expr, rows: exp.Expr) -> str:
    """Write a list as a relation: EXPLODE(..) AS r(x), LATERAL in a join, which keeps a LEFT JOIN's rows."""
    alias = node.args.get("alias")
    lateral = "LATERAL " if isinstance(node.parent, exp.Join) else ""
    if not alias or not alias.columns:
        self.unsupported("a list in FROM needs an alias with a column: r(x)")
    return f"{lateral}EXPLODE({self.sql(rows)}) AS {self.sql(alias)}"


def _table(self: SparkGenerator, node: exp.Table) -> str:
    """range(n) r(x) in FROM: sqlglot loses its alias."""
    if isinstance(node.this, exp.GenerateSeries):
        return _exploded(self, node, node.this)
    return self.table_sql(node)


def _unnest(self: SparkGenerator, node: exp.Unnest) -> str:
    """unnest(list) q(x) in FROM: sqlglot makes an inner join of LEFT JOIN."""
    if node.args.get("offset"):
        self.unsupported("WITH ORDINALITY counts from 0")
    if len(node.expressions) > 1:
        self.unsupported("unnest() of several lists")
    return _exploded(self, node, node.expressions[0])


def _element(self: SparkGenerator, node: exp.Bracket) -> str:
    """list[k] counts from 1, from the end where negative, and is NULL where there is none."""
    if any(isinstance(key, exp.Slice) or key.is_string for key in node.expressions):
        return self.bracket_sql(node)
    (place,) = self.bracket_offset_expressions(node, index_offset=1)
    return self.func("TRY_ELEMENT_AT", node.this, place if place.is_int else exp.cast(place, exp.DType.INT))


def _regexp_replace(self: SparkGenerator, node: exp.RegexpReplace) -> str:
    """DuckDB replaces one match unless told 'g' and refers back by a backslash, Spark replaces all, by $1."""
    if node.text("modifiers") != "g":
        self.unsupported("regexp_replace() other than with 'g'")
    replacement = node.args["replacement"]
    if isinstance(replacement, exp.Literal):
        text = re.sub(r"\\(\d)", r"$\1", replacement.this.replace("$", r"\$"))
        replacement = exp.Literal.string(text)
    return self.func("REGEXP_REPLACE", node.this, node.expression, replacement)


def _regexp_matches(self: SparkGenerator, node: exp.RegexpLike) -> str:
    """Options would be dropped."""
    if node.args.get("flag"):
        self.unsupported("options of regexp_matches(); write (?i) in the pattern")
    return self.binary(node, "RLIKE")


def _concat(self: SparkGenerator, node: exp.Concat) -> str:
    """NULLs are left out; sqlglot's COALESCE(number, '') would make a number of ''."""
    texts = (self.sql(exp.cast(part, exp.DType.TEXT)) for part in node.expressions)
    return self.func("CONCAT", *(f"COALESCE({text}, '')" for text in texts))


def _log(self: SparkGenerator, node: exp.Log) -> str:
    """Without a base DuckDB takes 10, Spark e."""
    if not node.expression:
        return self.func("LOG10", node.this)
    name = {"2": "LOG2", "10": "LOG10"}.get(node.name)
    return self.func(name, node.expression) if name else self.func("LOG", node.this, node.expression)


def _cte(self: SparkGenerator, node: exp.CTE) -> str:
    """MATERIALIZED is DuckDB's advice to itself."""
    node.set("materialized", None)
    return self.cte_sql(node)


class SparkWGenerator(SparkGenerator):
    """What differs from sqlglot's Spark, node by node."""

    # a bare TIMESTAMP has a zone or none, as Spark is configured
    TYPE_MAPPING = SparkGenerator.TYPE_MAPPING | {exp.DType.TIMESTAMPTZ: "TIMESTAMP_LTZ"}
    TRANSFORMS = SparkGenerator.TRANSFORMS | {
        exp.TimestampTrunc: _date_trunc,
        exp.DateTrunc: _date_trunc,
        exp.UnixToTime: _from_epoch,
        exp.TimeToUnix: _to_epoch,
        exp.DateDiff: _date_diff,
        exp.Anonymous: _anonymous,
        exp.ArgMax: _extreme("MAX_BY"),
        exp.ArgMin: _extreme("MIN_BY"),
        exp.PercentileCont: _quantile_cont,
        exp.PercentileDisc: _quantile_disc,
        exp.WithinGroup: SparkGenerator.withingroup_sql,  # sqlglot makes PERCENTILE_APPROX of it
        exp.ArrayAgg: _ordered_list,
        exp.Filter: _filter,
        exp.GenerateSeries: _series,
        exp.Table: _table,
        exp.Unnest: _unnest,
        exp.Bracket: _element,
        exp.RegexpReplace: _regexp_replace,
        exp.RegexpLike: _regexp_matches,
        exp.Concat: _concat,
        exp.Log: _log,
        exp.CTE: _cte,
        # Spark has QUALIFY and EXPLODE in FROM of its own: the rewritings add columns and lose rows
        exp.Select: transforms.preprocess([transforms.eliminate_distinct_on]),
    }


class SparkW(Spark):
    """The dialect to write models in for Spark; it is not for reading."""

    TIME_MAPPING = Spark.TIME_MAPPING | {"SSS": "%g"}  # DuckDB's %g is milliseconds
    Generator = SparkWGenerator
