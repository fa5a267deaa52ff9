"""What a SELECT needs rows of, so as to give any: read off DuckDB's serialized tree.

A model that would be empty for want of raw files is not made at all, which costs a build of one trace next to
nothing for the models of the others. In doubt a SELECT needs nothing, and is made.

The answer is a list of groups of relations: no rows come out while all relations of one group are empty. A join
needs either side, a union any of its branches, and an aggregate over everything gives a row of nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Needs = frozenset[frozenset[str]]
NOTHING: Needs = frozenset()

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
"""DuckDB's aggregates and its macros over them; a test compares."""


def needs(tree: Any) -> Needs:
    """What a serialized statement needs rows of."""
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
        return _all_of(sides) if node.get("setop_type") in ("UNION", "UNION_BY_NAME") else sides[0]
    return NOTHING


def _is_one_row(select: Any) -> bool:
    """Whether it aggregates all rows into one, which is there even when no row is."""
    if _asks_for_rows(select.get("having")):
        return False
    sets = select.get("group_sets") or []
    if sets:
        return any(not group for group in sets)
    if select.get("aggregate_handling") != "STANDARD_HANDLING":  # GROUP BY ALL
        return all(_aggregates(item) for item in select["select_list"])
    return any(_aggregates(select.get(clause)) for clause in ("select_list", "having", "qualify"))


def _asks_for_rows(having: Any) -> bool:
    """Whether it is `count(*) > 0` or `count(*) = n`, n being 1 or more."""
    match having:
        case {
            "type": "COMPARE_GREATERTHAN" | "COMPARE_EQUAL" as how,
            "left": {"class": "FUNCTION", "function_name": "count_star", "filter": None},
            "right": {"class": "CONSTANT", "literal": {"kind": "INTEGER", "text": least}},
        }:
            return int(least) > (-1 if how == "COMPARE_GREATERTHAN" else 0)
    return False


def _aggregates(node: Any) -> bool:
    """Whether an expression calls an aggregate, outside of its subqueries."""
    below = [node]
    while below:
        one = below.pop()
        if isinstance(one, list):
            below += one
        elif isinstance(one, dict) and one.get("class") != "SUBQUERY":
            if one.get("class") == "FUNCTION" and str(one.get("function_name")).lower() in AGGREGATES:
                return True
            below += one.values()
    return False


def _of_table(node: Any, known: Mapping[str, Needs]) -> Needs:
    kind = (node or {}).get("type")
    if kind == "BASE_TABLE":
        if node["schema_name"]:
            return frozenset({frozenset({f"{node['schema_name']}.{node['table_name']}"})})
        return known.get(node["table_name"].lower(), NOTHING)
    if kind == "SUBQUERY":
        return _of_query(node["subquery"]["node"], known)
    if kind == "JOIN":
        left, right = _of_table(node["left"], known), _of_table(node["right"], known)
        match node["join_type"] if node["ref_type"] != "POSITIONAL" else "FULL":
            case "INNER" | "SEMI":
                return left | right
            case "LEFT" | "ANTI":
                return left
            case "RIGHT":
                return right
            case "FULL" | "OUTER":
                return _all_of([left, right])
    return NOTHING


def _all_of(sides: list[Needs]) -> Needs:
    """What is needed where every one of several sides must be empty: a group of each, together."""
    found = sides[0]
    for side in sides[1:]:
        found = frozenset(one | other for one in found for other in side)
    return found
