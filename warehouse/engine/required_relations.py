"""Relations that must be non-empty for a SELECT to return a row, found in DuckDB's serialized tree.

A model that must be empty because raw files are missing is not built at all. So a build of one trace spends almost no
time on the models of other traces. In doubt, a SELECT has no required relations and is built.

The result is a set of groups: if all relations of one group are empty, the SELECT returns no row. An inner join
requires both sides, a union any of its branches. An aggregate over all rows requires none, since it always returns a
row.
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
        return _all_of(sides) if node.get("setop_type") in ("UNION", "UNION_BY_NAME") else sides[0]
    return NOTHING


def _is_one_row(select: Any) -> bool:
    """Return True if a SELECT aggregates all rows into one row, which exists even without input rows."""
    if _requires_rows(select.get("having")):
        return False
    sets = select.get("group_sets") or []
    if sets:
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


def _aggregates(node: Any) -> bool:
    """Return True if an expression calls an aggregate outside its subqueries."""
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
    """Return the groups for a result that is empty only if all sides are: the union of one group from each side."""
    found = sides[0]
    for side in sides[1:]:
        found = frozenset(one | other for one in found for other in side)
    return found
