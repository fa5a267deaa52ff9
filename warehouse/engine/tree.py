"""What DuckDB's serialized tree of a SELECT says: what it reads, volatile expressions, required relations."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from warehouse.base import hashing
from warehouse.base.startup import regex
from warehouse.engine.duckdb_errors import EngineError, ErrorDetails

_POSITION = regex(r',"query_location(?:_length)?":\d+')
"""Position of a node in the text, the only field of a serialized tree that depends on formatting."""
_WRITES = regex(r'"type":"(?!SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)(\w+)_NODE"')
"""Query nodes that write: DuckDB allows COPY, INSERT, UPDATE and DELETE inside WITH."""
# A CTE has no schema, so only relations match.
_BASE_TABLE = regex(r'"schema_name":"(\w+)","table_name":"(\w+)"')
Needs = frozenset[frozenset[str]]
NOTHING: Needs = frozenset()


class Parsed(NamedTuple):
    """Result of parsing a SELECT with the engine's parser."""

    reads: tuple[str, ...]
    """`schema.name` of every relation, sorted."""
    canonical: str
    """Canonical text: equal for SELECTs that differ only in comments and formatting."""
    canonical_hash: str
    """Hash of the canonical text."""
    volatile: tuple[tuple[str, int | None], ...] = ()
    """Non-deterministic expressions such as `random()`, each with its byte offset."""
    needs: Needs = NOTHING
    """Groups of relations: if all relations of one group are empty, the result is empty."""


def parsed(serialized: str) -> Parsed | EngineError:
    """Return the parse result of a serialized statement."""
    try:
        tree = msgspec.json.decode(serialized)
    except RecursionError:
        return EngineError("it is nested too deeply: compute parts of it in WITH")
    if tree["error"]:
        message, position = str(tree["error_message"]), tree.get("position")
        return EngineError(message, ErrorDetails(message, position=int(position) if position else None))
    if len(tree["statements"]) != 1:
        return EngineError("a model is one SELECT, not several statements")
    canonical = _POSITION.sub("", serialized)
    if writes := _WRITES.search(canonical):
        return EngineError(f"{writes[1]} inside WITH is refused: a model only reads")
    reads = tuple(sorted({f"{match[1]}.{match[2]}" for match in _BASE_TABLE.finditer(canonical)}))
    return Parsed(reads, canonical, hashing.of(canonical), tuple(dict.fromkeys(_volatile(tree))), needs(tree))


_FUNCTIONS = """
    age ago current_connection_id current_localtime current_localtimestamp current_query current_query_id
    current_setting current_transaction_id currval gen_random_uuid get_current_time get_current_timestamp
    getvariable nextval now pg_conf_load_time pg_postmaster_start_time random setseed setval sleep_ms today
    transaction_timestamp txid_current uuid uuidv4 uuidv7 write_log
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Functions that DuckDB calls volatile or constant within a query, and some that it does not; a test compares."""
KEYWORDS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""Functions without parentheses, which are columns in the tree."""
TABLES = regex(r"^(read_\w+|\w+_scan|glob|sniff_csv|parquet_\w+|duckdb_\w+|pragma_\w+|query|query_table)$")
"""Table functions that read data outside the fingerprint."""
_LIMITS = ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")


def _volatile(tree: Any) -> Iterator[tuple[str, int | None]]:
    """Yield the volatile expressions of a serialized SELECT as written in SQL, each with its byte offset."""
    waiting: list[tuple[Any, int | None]] = [(tree, None)]  # no recursion: a chain of operators can be deep
    while waiting:
        node, at = waiting.pop()
        if isinstance(node, list):
            waiting += [(item, at) for item in reversed(node)]  # taken from the end, in the order of the text
        if not isinstance(node, dict):
            continue
        # Without a position, DuckDB writes 2^64 - 1.
        at = node["query_location"] if node.get("query_location", 2**64) < 2**63 else at
        name = str(node.get("function_name") or "").lower()
        if name in FUNCTIONS or (name and TABLES.match(name)):
            yield f"{name}()", at
        columns = [str(column).lower() for column in node.get("column_names") or ()]
        if len(columns) == 1 and columns[0] in KEYWORDS:
            yield columns[0], at
        if node.get("sample"):
            yield "sample", at
        # A file in FROM, such as 'a.csv', is a table without schema.
        if re.search(r"\W", node.get("table_name") or "") and not node.get("schema_name"):
            yield f"'{node['table_name']}'", at
        kinds = [one.get("type") for one in node.get("modifiers") or []]
        if any(kind in kinds for kind in _LIMITS) and "ORDER_MODIFIER" not in kinds:
            limit = next(one for one in node["modifiers"] if one.get("type") in _LIMITS).get("limit") or {}
            yield "LIMIT without ORDER BY", limit.get("query_location", at)
        waiting += [(below, at) for below in reversed(node.values())]


def files_named(tree: Any) -> Iterator[str]:
    """Yield the files that a SELECT reads by name, from its serialized tree; patterns match files as in DuckDB."""
    for node in _nodes(tree):
        is_reader = TABLES.match(str(node.get("function_name") or "").lower())
        texts = (below.get("text") for below in _nodes(node) if is_reader and below.get("kind") == "STRING")
        for name in filter(None, (*texts, None if node.get("schema_name") else node.get("table_name"))):
            # DuckDB expands `~`, too.
            found = glob.glob(str(Path(name).expanduser()), recursive=True)  # noqa: PTH207 - of absolute patterns, too
            yield from filter(os.path.isfile, found)


def _nodes(tree: Any, *, outside: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects of a serialized tree, except those of a class and what is below them."""
    waiting = [tree]  # no recursion: a chain of operators can be deep
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict) and node.get("class") != outside:
            yield node
            waiting += node.values()


_WORD = regex(rf"\b(?:(?:{'|'.join(sorted(FUNCTIONS))})\(|(?:{'|'.join(sorted(KEYWORDS))})\b)", re.IGNORECASE)


def looks_volatile(condition: str) -> bool:
    """Return True if the text of a check contains a volatile function.

    >>> looks_volatile("published < now()"), looks_volatile("bytes > 0")
    (True, False)
    """
    return _WORD.search(condition) is not None


_AGGREGATES = """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last
    arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bitstring_agg
    bool_and bool_or combine_aggr corr count count_if count_star countif covar_pop covar_samp decimal_average
    entropy favg first fsum geomean geometric_mean group_concat histogram histogram_exact histogram_values
    json_group_array json_group_object json_group_structure kahan_sum kurtosis kurtosis_pop last list listagg lttb
    mad max max_by mean median min min_by mode percentile_cont percentile_disc product quantile quantile_cont
    quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan var_pop
    var_samp variance variant_group_array variant_group_object wavg weighted_avg
"""
AGGREGATES = frozenset(_AGGREGATES.split())
"""Aggregates of DuckDB and its macros over them; a test compares."""


def needs(tree: Any) -> Needs:
    """Return the groups of required relations of a serialized statement."""
    return _of_query(tree["statements"][0]["node"], {})


def _of_query(node: Any, known: Mapping[str, Needs]) -> Needs:
    inside = dict(known)
    for entry in node.get("cte_map", {}).get("map", []):
        below = entry["value"].get("query_node") or entry["value"].get("query", {}).get("node")
        inside[entry["key"].lower()] = _of_query(below, inside) if below else NOTHING
    kind = node.get("type")
    if kind == "SELECT_NODE":
        return NOTHING if _is_one_row(node) else _of_table(node.get("from_table"), inside)
    if kind == "SET_OPERATION_NODE":
        sides = [_of_query(side, inside) for side in node.get("children") or (node["left"], node["right"])]
        # EXCEPT and INTERSECT only have rows of their first side.
        return _all_of(sides) if node.get("setop_type") in ("UNION", "UNION_BY_NAME") else sides[0]
    return NOTHING


def _is_one_row(select: Any) -> bool:
    """Return True if a SELECT aggregates all rows into one row, which exists even without input rows."""
    if _requires_rows(select.get("having")):
        return False
    sets = select.get("group_sets") or []
    if sets:
        # An empty grouping set, as of ROLLUP, gives a row of totals even without input.
        return any(not group for group in sets)
    if select.get("aggregate_handling") != "STANDARD_HANDLING":  # GROUP BY ALL
        return all(_aggregates(item) for item in select["select_list"])
    return any(_aggregates(select.get(clause)) for clause in ("select_list", "having", "qualify"))


def _requires_rows(having: Any) -> bool:
    """Return True if a HAVING clause is `count(*) > 0`, or `count(*) = n` with n at least 1."""
    match having:
        case {
            "type": "COMPARE_GREATERTHAN" | "COMPARE_EQUAL" as how,
            "left": {"class": "FUNCTION", "function_name": "count_star", "filter": None},
            "right": {"class": "CONSTANT", "literal": {"kind": "INTEGER", "text": least}},
        }:
            return int(least) > (-1 if how == "COMPARE_GREATERTHAN" else 0)
    return False


def _aggregates(tree: Any) -> bool:
    """Return True if an expression calls an aggregate outside its subqueries."""
    called = (node for node in _nodes(tree, outside="SUBQUERY") if node.get("class") == "FUNCTION")
    return any(str(node.get("function_name")).lower() in AGGREGATES for node in called)


def _of_table(node: Any, known: Mapping[str, Needs]) -> Needs:
    kind = (node or {}).get("type")
    if kind == "BASE_TABLE":
        if node["schema_name"]:
            return frozenset({frozenset({f"{node['schema_name']}.{node['table_name']}"})})
        return known.get(node["table_name"].lower(), NOTHING)
    if kind == "SUBQUERY":
        return _of_query(node["subquery"]["node"], known)
    if kind == "PIVOT" and node["unpivot_names"]:  # PIVOT can count no rows into one
        return _of_table(node["source"], known)
    if kind == "JOIN":
        left, right = _of_table(node["left"], known), _of_table(node["right"], known)
        match node["join_type"] if node["ref_type"] != "POSITIONAL" else "FULL":
            case "INNER" | "SEMI":
                return left | right
            case "LEFT" | "ANTI":  # without rows at the right, all rows of the left side stay
                return left
            case "RIGHT":
                return right
            case "FULL" | "OUTER":
                return _all_of([left, right])
    return NOTHING


def _all_of(sides: list[Needs]) -> Needs:
    """Return the groups for a result that is empty only if all sides are: the union of one group from each side."""
    found = sides[0]
    for side in sides[1:]:
        found = frozenset(one | other for one in found for other in side)
    return found
