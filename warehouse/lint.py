"""The portability lint: with line and reason, what would give other rows on Spark, or from run to run.

Tables hold what is known: functions by the name that the author wrote, nodes of the parsed tree, and nodes
with types where the contracts of the inputs are at hand. A function that no table has is refused too: nobody
has compared it yet. `docs/portable_sql.md` says all of this to authors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from warehouse.errors import ModelError, Place
from warehouse.regex import regex
from warehouse.spark_dialect import to_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from warehouse.model import Column
    from warehouse.project import Project

_COMMENT = regex(r"--\s*lint:(?:\s*allow (?P<rules>[a-z-]+(?:, [a-z-]+)*) because \S)?")


@dataclass(frozen=True, order=True)
class Finding:
    """One refusal: where, by which rule, and why, with what to write instead."""

    line: int
    column: int
    rule: str
    why: str
    shown_path: str = ""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.shown_path, self.line, self.column)

    def __str__(self) -> str:
        return f"{self.place}: {self.why} [{self.rule}]"


def lint_project(project: Project) -> list[Finding]:
    """All findings in all models, with the types that their inputs' contracts give."""
    contracts = contracts_of(project)
    findings = []
    for model in project.models.values():
        if model.is_python:
            continue
        findings += lint(project.render(model), shown_path=model.shown_path, contracts=contracts)
    return findings


def contracts_of(project: Project) -> dict[str, Sequence[Column]]:
    """The columns of all relations that a model or query may read."""
    from warehouse.formats import known_formats
    from warehouse.rim import rim

    return {
        **rim(known_formats()),
        **{name: reference.columns for name, reference in project.references.items()},
        **{name: model.columns for name, model in project.models.items()},
    }


def lint(sql: str, *, shown_path: str, contracts: Mapping[str, Sequence[Column]] | None = None) -> list[Finding]:
    """Find what is refused in a model's SELECT, in order of place.

    Parameters
    ----------
    sql
        The SELECT with macros written out; its lines are those of the file.
    shown_path
        The file, as findings show it.
    contracts
        Columns of the relations that may be read, by name. Without them, rules that need types are left out.

    Raises
    ------
    ModelError
        When the SQL does not parse.
    """
    tree = _parse(sql, shown_path)
    refused = {*_by_name(tree, sql), *_by_node(tree, RULES)}
    if contracts:
        refused |= {*_by_node(_typed(tree, contracts), TYPED_RULES)}
    findings = set()
    for line, text in enumerate(sql.split("\n"), 1):
        comment = _COMMENT.search(text)
        if comment and not comment["rules"]:
            why = "an exception is written `-- lint: allow RULE because REASON`"
            findings.add(Finding(line, comment.start() + 1, "allow", why, shown_path))
        allowed = comment["rules"].split(", ") if comment and comment["rules"] else []
        for start, rule, why in refused:
            if sql.count("\n", 0, start) + 1 == line and rule not in allowed:
                findings.add(Finding(line, start - sql.rfind("\n", 0, start), rule, why, shown_path))
    return sorted(findings) or _by_translation(sql, shown_path)


_Refusal = tuple[int, str, str]
"""Offset in the SQL, rule, why."""


def _parse(sql: str, shown_path: str) -> exp.Expr:
    try:
        return parse_one(sql, read="duckdb")
    except SqlglotError as error:
        first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        place = Place(shown_path, first.get("line"), first.get("col"))
        raise ModelError(f"it does not parse: {first.get('description') or error}", place=place) from error


def _by_name(tree: exp.Expr, sql: str) -> Iterator[_Refusal]:
    for node in tree.find_all(exp.Func):
        written = re.match(r"\w+", sql[node.meta["start"] :]) if "start" in node.meta else None
        name = (written[0] if written else node.sql_name()).lower()
        if name not in EQUAL:
            rule = FUNCTIONS.get(name, "function")
            yield _start(node), rule, f"{name}: {WHY[rule]}"


def _by_node(tree: exp.Expr, rules: Sequence[Rule]) -> Iterator[_Refusal]:
    for node in tree.walk():
        for rule in rules:
            if isinstance(node, rule.nodes) and rule.when(node):
                yield _start(node), rule.name, WHY[rule.name]


def _by_translation(sql: str, shown_path: str) -> list[Finding]:
    """Give what only the translation finds out, at the begin of the SELECT: it tells no place."""
    try:
        to_spark(sql)
    except ModelError as error:
        line = sql[: len(sql) - len(sql.lstrip())].count("\n") + 1
        return [Finding(line, 1, "spark", error.message, shown_path)]
    return []


def _typed(tree: exp.Expr, contracts: Mapping[str, Sequence[Column]]) -> exp.Expr:
    """Copy the tree, with every column traced to its input and the types that can be told."""
    schema: dict[str, Any] = {}
    for relation, columns in contracts.items():
        folder, _, name = relation.partition(".")
        schema.setdefault(folder, {})[name] = {column.name: column.type for column in columns}
    options: dict[str, Any] = {"schema": schema, "dialect": "duckdb"}
    try:
        bound = qualify(tree.copy(), validate_qualify_columns=False, quote_identifiers=False, **options)
        return annotate_types(bound, **options)
    except SqlglotError:  # the engine says better what does not bind
        return exp.Null()


def _start(node: exp.Expr) -> int:
    """Where a node's text begins: the first thing with a position in it, or in what holds it."""
    holder: exp.Expr | None = node
    while holder is not None:
        starts = [int(below.meta["start"]) for below in holder.walk() if "start" in below.meta]
        if starts:
            return min(starts)
        holder = holder.parent
    return 0


# What is refused: rule, why; what to write instead.
_WHY = """
absent           Spark has nothing like it; see docs/portable_sql.md
approximate      it is approximate; quantile_cont(x, q), count(DISTINCT x)
boolean-sum      a boolean is no number in Spark; count(*) FILTER (WHERE x)
chance           it picks a row by chance; min(x), or arg_min(x, struct_pack(a := k, b := id))
columns          it hides which columns are read; their names
date-arithmetic  other types on Spark; date_diff('day', b, a), epoch_us(a) - epoch_us(b), CAST(.. AS DATE)
date-diff        Spark counts other units otherwise; second, minute, hour, day
decimal-average  a DECIMAL on Spark; sum(x)::DOUBLE / count(x)
decimal-division a DECIMAL on Spark, with its scale cut; x::DOUBLE / y
decimal-literal  a DECIMAL, whose quotients Spark cuts; 1.5e0
double-division  not a whole number in DuckDB; CAST(floor(x / 2e0) AS BIGINT)
double-sum       it depends on the order of rows; integers, or sum(x::DECIMAL(18, 6))::DOUBLE
double-text      Spark spells it otherwise; scaled integers as text
epoch-ms         of a number only; epoch_us(x) // 1000
extract          Spark counts it otherwise; epoch_us(x), or date_diff('day', DATE '2024-01-01', x) % 7
floor            a BIGINT on Spark; CAST(floor(x) AS BIGINT)
function         nobody has compared it on both engines yet; see docs/portable_sql.md
in-value         false instead of NULL on Spark; IN (SELECT ..) in WHERE, or in a guarded CASE
integer-cast     DuckDB rounds, Spark cuts; CAST(round(x) AS BIGINT)
interval         of a constant only; x * INTERVAL '1 second'
is-nan           NULL in DuckDB, false in Spark; coalesce(isnan(x), false)
last-bits        engines differ in the last digits; sums of integers, sqrt, z * z, or a stated tolerance
list             NULLs, bounds, indices differ; coalesce(list_contains(l, x), false), unnest and aggregate
list-length      of a text in Spark; array_length(x)
order            it picks by chance; ORDER BY all that tells rows apart, arg_max(x, struct_pack(a := k, ..))
outer-star       what is published is said by name; the columns of the contract
pivot            its columns come from the data; sum(x) FILTER (WHERE k = 0) AS k0
range            no step, and a name for its column; range(n) r(x)
regexp           Spark replaces all and knows no options; regexp_replace(x, p, r, 'g'), (?i) in the pattern
round            halves differ; round(x * 100) / 100
sample           other rows in every build; a condition
source           which files are read is for the formats to say; a relation of raw
struct           no rows and maps, and NULLs in structs compare otherwise; struct_pack(..), columns one by one
substr           Spark counts otherwise; a start of 1, substr(x, 1, greatest(length(x) - 1, 0))
text             Spark writes or compares it otherwise; concat, lpad, md5(coalesce(x, ''))
text-index       of a list only; substr(x, 1, 1)
time             Spark has it otherwise or not; epoch_us(x) and integers, extract(hour FROM x)
time-format      %Y %m %d %H %M %S, and %g in strftime; the rest by concat
trunc            a BIGINT on Spark; CAST(CASE WHEN x < 0 THEN ceil(x) ELSE floor(x) END AS BIGINT)
try-cast         the engines take other texts; CASE WHEN regexp_matches(x, '^[0-9]+$') THEN try_cast(..) END
type             no type of a contract; DECIMAL(38, 0) for large integers, TIMESTAMP, in UTC, for times
unnest           lists side by side multiply, count from 0, hold no window; one list of structs, a window before it
volatile         it differs in every build; a column of the data
window           Spark has no such window; aggregate, then join
zone             times are UTC without zone; x + INTERVAL '8 hours', make_timestamp(seconds * 1000000)
"""
WHY = dict(line.split(None, 1) for line in _WHY.strip().split("\n"))

# Functions that give equal rows on both engines, as DuckDB names them, within what the rules say.
_EQUAL = """
    abs and arg_max arg_min array array_agg array_length avg bit_and bit_count bit_or bit_xor bool_and
    bool_or case cast ceil ceiling coalesce concat concat_ws contains count count_if cume_dist date_diff
    date_trunc day degrees dense_rank ends_with epoch epoch_ms epoch_us exists extract first_value floor
    generate_series greatest group_concat hex hour if ifnull isnan lag last_day last_value lead least
    left len length list list_contains list_filter list_transform list_value lower lpad ltrim make_date
    make_timestamp max max_by md5 median min min_by minute month nth_value ntile nullif or percent_rank
    percentile_cont percentile_disc quantile_cont quantile_disc quarter radians range rank
    regexp_extract regexp_extract_all regexp_like regexp_matches regexp_replace repeat replace reverse
    right round row_number rpad rtrim sha1 sha256 sign split_part sqrt starts_with str_position strftime
    string_agg string_split strpos strptime struct struct_pack substr substring sum translate trim
    try_cast unnest upper year
"""
EQUAL = frozenset(_EQUAL.split())

# Functions that are known to differ, by rule.
_DIFFERENT = {
    "absent": "list_slice list_extract regexp_full_match prefix suffix strlen array_slice",
    "approximate": "approx_quantile approx_count_distinct approx_top_k reservoir_quantile quantile",
    "chance": "first last any_value arbitrary mode",
    "columns": "columns",
    "last-bits": """acos asin atan atan2 cbrt corr cos covar_pop covar_samp exp fsum kurtosis ln log log10
        log2 pow power regr_intercept regr_r2 regr_slope sin skewness stddev stddev_pop stddev_samp tan
        var_pop var_samp variance""",
    "list": """list_distinct list_concat list_sum list_avg list_reduce list_zip list_has_any list_sort
        list_position list_aggregate array_distinct array_concat""",
    "source": "read_csv read_parquet read_json glob",
    "struct": "row map to_map",
    "text": "format printf hash levenshtein chr typeof collate",
    "time": """second millisecond microsecond dayofweek weekday isodow dayname age date_sub date_add date_part
        datepart datesub epoch_ns time_bucket to_seconds""",
    "trunc": "trunc round_even",
    "volatile": """random rand now today uuid gen_random_uuid get_current_timestamp transaction_timestamp
        current_date current_timestamp current_time localtime localtimestamp current_localtimestamp
        nextval""",
    "zone": "timezone to_timestamp",
}
FUNCTIONS = {name: rule for rule, names in _DIFFERENT.items() for name in names.split()}


@dataclass(frozen=True)
class Rule:
    """A line of a table: which nodes a rule refuses, and when."""

    name: str
    nodes: type[exp.Expr] | tuple[type[exp.Expr], ...]
    when: Callable[[Any], object] = lambda _: True


_T = exp.DType
_INTEGERS, _FLOATS, _LISTS = (_T.BIGINT, _T.INT, _T.SMALLINT), (_T.DOUBLE, _T.FLOAT), (_T.ARRAY, _T.LIST)
_TEXTS, _TIMES = (_T.VARCHAR, _T.TEXT), (_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.DATE)
_TYPES = (*_INTEGERS, *_LISTS, *_TEXTS, *_TIMES, _T.DOUBLE, _T.DECIMAL, _T.BOOLEAN)
_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE")
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.PercentRank, exp.CumeDist, exp.Lag, exp.Lead)
_PICKS = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.IgnoreNulls)
_CLAUSES = (exp.Where, exp.Having, exp.Join, exp.Qualify, exp.Case, exp.Select)


def _inside(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether a node is, parentheses and sign apart, directly in one of these."""
    parent = node.parent
    while isinstance(parent, (exp.Paren, exp.Neg)):
        parent = parent.parent
    return isinstance(parent, kinds)


def _nearest(node: exp.Expr, *kinds: type[exp.Expr]) -> type[exp.Expr | None]:
    return type(node.find_ancestor(*kinds))


def _published(star: exp.Star) -> bool:
    select = (star.parent if isinstance(star.parent, exp.Column) else star).parent
    return isinstance(select, exp.Select) and not select.find_ancestor(exp.Select, exp.CTE, exp.Subquery)


def _unordered(node: exp.Expr) -> bool:
    """Whether what picks or lines up rows does so without an ORDER BY of its own or of its query."""
    if isinstance(node, exp.Window):
        return isinstance(node.this, _RANKS + _PICKS) and not (node.args.get("order") or node.alias)
    if isinstance(node, (exp.ArrayAgg, exp.GroupConcat)):
        return not isinstance(node.this, exp.Order)
    if isinstance(node, (exp.ArgMax, exp.ArgMin)):
        return not isinstance(node.expression, (exp.Struct, exp.Tuple))
    return node.parent is not None and not node.parent.args.get("order")


def _second_list(node: exp.Explode) -> bool:
    select = node.find_ancestor(exp.Select)
    lists = [one for item in select.expressions for one in item.find_all(exp.Explode)] if select else [node]
    return bool(node.expressions) or node is not lists[0]


def _unnamed(node: exp.Table | exp.Unnest) -> bool:
    is_list = isinstance(node, exp.Unnest) or isinstance(node.this, exp.GenerateSeries)
    return is_list and isinstance(node.parent, (exp.From, exp.Join)) and not node.alias_column_names


def _decimal(node: exp.Literal) -> bool:
    if not node.is_number or "." not in node.this or "e" in node.this.lower():
        return False
    item = node.parent if isinstance(node.parent, exp.Array) else node
    return not _inside(item, exp.PercentileCont, exp.PercentileDisc, exp.Cast)


def _compares_structs(node: exp.Expr) -> bool:
    return isinstance(node.this, (exp.Struct, exp.Tuple))


def _odd_format(node: exp.TimeToStr | exp.StrToTime) -> bool:
    given, known = node.args["format"], "%[YmdHMSg]" if isinstance(node, exp.TimeToStr) else "%[YmdHMS]"
    return not given.is_string or re.search(r"[A-Za-z%'#\[\]{}]", re.sub(known, "", given.this)) is not None


def _options(node: exp.Expr) -> object:
    options = node.args.get("flag") or node.args.get("parameters")
    return node.text("modifiers") != "g" if isinstance(node, exp.RegexpReplace) else options


# What needs no types.
RULES = (
    Rule("absent", exp.Star, lambda e: e.args.get("replace") or e.args.get("rename")),
    Rule("absent", exp.SetOperation, lambda e: e.args.get("by_name")),
    Rule("absent", exp.Join, lambda e: e.method.upper() in ("POSITIONAL", "ASOF")),
    Rule("absent", exp.Limit, lambda e: e.args.get("limit_options")),
    Rule("absent", (exp.Slice, exp.Comprehension, exp.SimilarTo, exp.Glob)),
    Rule("absent", (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin), lambda e: e.args.get("count")),
    Rule("date-diff", exp.DateDiff, lambda e: e.text("unit").upper() not in ("SECOND", "MINUTE", "HOUR", "DAY")),
    Rule("decimal-literal", exp.Literal, _decimal),
    Rule("extract", exp.Extract, lambda e: e.name.upper() not in _PARTS),
    Rule("floor", (exp.Floor, exp.Ceil, exp.Sign), lambda e: not _inside(e, exp.Cast, exp.If, exp.Case)),
    Rule("in-value", exp.In, lambda e: e.args.get("query") and _nearest(e, *_CLAUSES) is exp.Select),
    Rule("interval", exp.Interval, lambda e: not isinstance(e.this, exp.Literal)),
    Rule("is-nan", exp.IsNan, lambda e: not _inside(e, exp.Coalesce)),
    Rule("list", exp.ArrayContains, lambda e: not _inside(e, exp.Coalesce)),
    Rule("list", exp.Distinct, lambda e: _nearest(e, exp.ArrayAgg, exp.Select) is exp.ArrayAgg),
    Rule("list", exp.Lambda, lambda e: len(e.expressions) > 1),
    Rule("list", exp.Any),
    Rule("order", (exp.Limit, exp.Window, exp.ArrayAgg, exp.GroupConcat, exp.ArgMax, exp.ArgMin), _unordered),
    Rule("order", exp.Distinct, lambda e: e.args.get("on") and _unordered(e)),
    Rule("outer-star", exp.Star, _published),
    Rule("pivot", exp.Pivot, lambda e: e.this),
    Rule("range", exp.GenerateSeries, lambda e: e.args.get("step")),
    Rule("range", (exp.Table, exp.Unnest), _unnamed),
    Rule("regexp", (exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace), _options),
    Rule("round", exp.Round, lambda e: e.args.get("decimals")),
    Rule("sample", exp.TableSample),
    Rule("struct", (exp.LT, exp.GT, exp.LTE, exp.GTE, exp.Max, exp.Min, exp.Ordered), _compares_structs),
    Rule("substr", exp.Substring, lambda e: e.text("start") == "0"),
    Rule("substr", (exp.Left, exp.Right), lambda e: isinstance(e.expression, exp.Neg)),
    Rule("time-format", (exp.TimeToStr, exp.StrToTime), _odd_format),
    Rule("try-cast", exp.TryCast, lambda e: _nearest(e, exp.Case, exp.Select) is not exp.Case),
    Rule("type", exp.DataType, lambda e: e.this not in _TYPES),
    Rule("unnest", exp.Explode, _second_list),
    Rule("unnest", exp.Explode, lambda e: e.find(exp.Window)),
    Rule("unnest", exp.Unnest, lambda e: e.args.get("offset") or len(e.expressions) > 1),
    Rule("window", exp.WindowSpec, lambda e: e.args.get("exclude") or e.text("kind").upper() == "GROUPS"),
    Rule("window", exp.Window, lambda e: isinstance(e.this, (exp.ArgMax, exp.ArgMin))),
    Rule("window", exp.Distinct, lambda e: _nearest(e, exp.Window, exp.Select) is exp.Window),
    Rule("zone", exp.AtTimeZone),
)


def _fractional(node: exp.Expr) -> bool:
    kind = node.type
    scale = kind.expressions[1:] if kind is not None and kind.is_type(_T.DECIMAL) else []
    return node.is_type(*_FLOATS) or bool(scale and scale[0].name != "0")


def _cut(node: exp.Cast) -> bool:
    rounded = node.this.find(exp.Round, exp.Floor, exp.Ceil, exp.PercentileDisc)
    return node.to.is_type(*_INTEGERS) and _fractional(node.this) and rounded is None


def _date_arithmetic(node: exp.Add | exp.Sub) -> bool:
    if isinstance(node.expression, exp.Interval):
        return node.this.is_type(_T.DATE) and not _inside(node, exp.Cast)
    return isinstance(node, exp.Sub) and node.this.is_type(*_TIMES) and node.expression.is_type(*_TIMES)


def _decimal_division(node: exp.Div) -> bool:
    sides = (node.this, node.expression)
    return any(x.is_type(_T.DECIMAL) for x in sides) and not any(x.is_type(*_FLOATS) for x in sides)


# What needs the types of the inputs.
TYPED_RULES = (
    Rule("boolean-sum", exp.Sum, lambda e: e.this.is_type(_T.BOOLEAN)),
    Rule("date-arithmetic", (exp.Add, exp.Sub), _date_arithmetic),
    Rule("decimal-average", exp.Avg, lambda e: e.this.is_type(_T.DECIMAL)),
    Rule("decimal-division", exp.Div, _decimal_division),
    Rule("double-division", exp.IntDiv, lambda e: _fractional(e.this) or _fractional(e.expression)),
    Rule("double-sum", (exp.Sum, exp.Avg), lambda e: e.this.is_type(*_FLOATS)),
    Rule("double-text", exp.Cast, lambda e: e.to.is_type(*_TEXTS) and e.this.is_type(*_FLOATS, *_LISTS)),
    Rule("double-text", exp.DPipe, lambda e: e.this.is_type(*_FLOATS) or e.expression.is_type(*_FLOATS)),
    Rule("double-text", (exp.Concat, exp.ConcatWs), lambda e: any(x.is_type(*_FLOATS) for x in e.expressions)),
    Rule("epoch-ms", exp.UnixToTime, lambda e: e.this.is_type(*_TIMES)),
    Rule("integer-cast", exp.Cast, _cut),
    Rule("list-length", exp.Length, lambda e: e.this.is_type(*_LISTS)),
    Rule("text-index", exp.Bracket, lambda e: e.this.is_type(*_TEXTS)),
)
