"""Units of a result's columns, derived from the contracts of the columns that the SELECT uses.

Units propagate through names, CTEs, casts, `round`, `coalesce`, sums and differences of equal units, and aggregates
that keep the unit (`sum`, `min`, `max`, `avg`, quantiles). A quotient of equal units is a share if the column is named
`.._share`, `.._ratio` or `.._utilization`. A column has no unit where two units meet or a number is
multiplied: a wrong unit is worse than a plain number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

    from warehouse.reader.guard import Statement

SHARE = "share"
"""Unit of fractions of 1, shown as %."""
COUNT = "count"
"""Unit of counts."""
_QUOTIENT = "quotient"
"""Quotient of two values of one unit: a share if the column's name says so, else a plain number."""
_SHARE_NAMES = ("_share", "_utilization", "_ratio")
_SHARE_WORDS = frozenset({"duty_cycle", "in_out_difference", "mfu_6n", "mfu_6n_12lhs"})
_KEEP_FIRST = frozenset(
    {"any_value", "abs", "approx_quantile", "arbitrary", "arg_max", "arg_min", "avg", "ceil", "first", "floor", "last",
     "lag", "lead", "mad", "max", "max_by", "mean", "median", "min", "min_by", "mode", "nullif", "quantile",
     "quantile_cont", "quantile_disc", "round", "stddev", "stddev_pop", "stddev_samp", "trunc", "first_value",
     "last_value", "favg"}
)  # fmt: skip
_SUMS = frozenset({"sum", "fsum", "sum_no_overflow", "kahan_sum", "sumkahan"})
_KEEP_COMMON = frozenset({"+", "-", "greatest", "least", "coalesce", "ifnull"})
_COUNTS = frozenset({"count", "count_star", "count_if", "countif", "approx_count_distinct"})

Columns = list[tuple[str, str | None]]
"""Name and unit of each column, in order."""


def result_units(connection: duckdb.DuckDBPyConnection, statement: Statement, names: Sequence[str]) -> list[str | None]:
    """Return the unit of each column of a checked statement, or None if it is unknown."""
    tree = tree_of(connection, statement)
    return [None] * len(names) if tree is None else followed(tree, names, _contracts(connection))


def tree_of(connection: duckdb.DuckDBPyConnection, statement: Statement) -> dict[str, Any] | None:
    """Return the engine's syntax tree of a SELECT, or None for any other statement."""
    if statement.kind != "SELECT":
        return None
    row = connection.execute("SELECT json_serialize_sql($1)", [statement.text]).fetchone()
    parsed: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    return None if parsed["error"] else parsed["statements"][0]["node"]


def followed(tree: Mapping[str, Any], names: Sequence[str], contracts: Mapping[str, Columns]) -> list[str | None]:
    """Return for each column of an answer the value that `contracts` has for its source column."""
    found = _Reader(contracts).query(tree, {})
    if len(found) == len(names) and all(
        name.lower() == given.lower() or not given for name, (given, _) in zip(names, found, strict=True)
    ):
        return [unit for _, unit in found]
    by_name = _unique(found)
    return [by_name.get(name.lower()) for name in names]


def origin_of(tree: Mapping[str, Any], reference: Any, contracts: Mapping[str, Columns]) -> str | None:
    """Return the value that `contracts` has for the column that a tree expression names."""
    reader = _Reader(contracts)
    return reader.unit(reference, reader.sources(tree.get("from_table") or {}, {}), {})


def _contracts(connection: duckdb.DuckDBPyConnection) -> dict[str, Columns]:
    tables: dict[str, Columns] = {}
    for model, name, kind, unit in connection.execute(
        "SELECT model, column_name, type, unit FROM meta.columns ORDER BY model, position"
    ).fetchall():
        tables.setdefault(model, []).append((name, unit_of(name, kind, unit)))
    return tables


def unit_of(name: str, kind: str, unit: str | None) -> str | None:
    """Return the unit of a contract's column; unit `1` becomes a share, a count, or None.

    >>> unit_of("leaving_share", "DOUBLE", "1"), unit_of("polls", "BIGINT", "1"), unit_of("cov", "DOUBLE", "1")
    ('share', 'count', None)
    """
    if unit != "1":
        return unit
    if kind in ("DOUBLE", "FLOAT"):
        return SHARE if name.endswith(_SHARE_NAMES) or "_share_" in name or name in _SHARE_WORDS else None
    return COUNT


def _unique(columns: Columns) -> dict[str, str | None]:
    """Return units by name in lower case; a name with two units has None."""
    found: dict[str, str | None] = {}
    for name, unit in columns:
        key = name.lower()
        found[key] = unit if found.get(key, unit) == unit else None
    return found


class _Reader:
    def __init__(self, contracts: Mapping[str, Columns]) -> None:
        self.contracts = contracts

    def query(self, node: Any, steps: Mapping[str, Columns]) -> Columns:
        """Return the columns of a query node; `steps` are the CTEs in scope."""
        known = dict(steps)
        for entry in (node.get("cte_map") or {}).get("map") or []:
            cte = entry["value"]
            inner = cte.get("query_node") or (cte.get("query") or {}).get("node") or {}
            known[entry["key"].lower()] = _renamed(self.query(inner, known), cte.get("aliases") or [])
        match node.get("type"):
            case "SELECT_NODE":
                return self.select(node, known)
            case "SET_OPERATION_NODE":
                branches = node.get("children") or [node.get("left") or {}, node.get("right") or {}]
                columns = [self.query(branch, known) for branch in branches]
                if len({len(one) for one in columns}) != 1:
                    return []
                return [
                    (places[0][0], places[0][1] if len({unit for _, unit in places}) == 1 else None)
                    for places in zip(*columns, strict=True)
                ]
            case "CTE_NODE":
                known[str(node.get("ctename", "")).lower()] = self.query(node.get("query") or {}, known)
                return self.query(node.get("child") or {}, known)
            case _:
                return []

    def select(self, node: Any, steps: Mapping[str, Columns]) -> Columns:
        sources = self.sources(node.get("from_table") or {}, steps)
        found: Columns = []
        for one in node.get("select_list") or []:
            if one.get("class") == "STAR":
                found += self.star(one, sources)
                continue
            name = one.get("alias") or (one["column_names"][-1] if one.get("class") == "COLUMN_REF" else "")
            unit = self.unit(one, sources, steps)
            if unit == _QUOTIENT:
                unit = SHARE if name.endswith(_SHARE_NAMES) else None
            found.append((name, unit))
        return found

    def sources(self, table: Any, steps: Mapping[str, Columns]) -> list[tuple[str, Columns]]:
        """Return the alias and the columns of each relation in a FROM clause."""
        alias = str(table.get("alias") or "").lower()
        match table.get("type"):
            case "BASE_TABLE":
                name, schema = str(table.get("table_name", "")).lower(), str(table.get("schema_name") or "").lower()
                columns = steps[name] if not schema and name in steps else self.contracts.get(f"{schema}.{name}", [])
                return [(alias or name, _renamed(columns, table.get("column_name_alias") or []))]
            case "JOIN":
                left = self.sources(table.get("left") or {}, steps)
                right = self.sources(table.get("right") or {}, steps)
                shared = {str(name).lower() for name in table.get("using_columns") or []}
                # USING merges two columns: `*` has it once, with the left one's unit
                return left + [(name, [c for c in columns if c[0].lower() not in shared]) for name, columns in right]
            case "SUBQUERY":
                inner = (table.get("subquery") or {}).get("node") or {}
                return [(alias, _renamed(self.query(inner, steps), table.get("column_name_alias") or []))]
            case _:
                return []

    def star(self, node: Any, sources: list[tuple[str, Columns]]) -> Columns:
        wanted = str(node.get("relation_name") or "").lower()
        return [one for name, columns in sources if wanted in ("", name) for one in columns]

    def unit(self, node: Any, sources: list[tuple[str, Columns]], steps: Mapping[str, Columns]) -> str | None:
        """Return the unit of an expression."""
        arguments = [one.get("expression", one) for one in node.get("arguments") or node.get("children") or []]
        match node.get("class"):
            case "COLUMN_REF":
                return self.column([str(name).lower() for name in node["column_names"]], sources)
            case "CAST":
                return self.unit(node.get("child") or {}, sources, steps)
            case "SUBQUERY":
                inner = self.query((node.get("subquery") or {}).get("node") or {}, steps)
                return inner[0][1] if len(inner) == 1 else None
            case "CASE":
                branches = [check["then_expr"] for check in node.get("case_checks") or []]
                return self.common([*branches, node.get("else_expr") or {}], sources, steps)
            case "OPERATOR" if node.get("type") == "OPERATOR_COALESCE":
                return self.common(arguments, sources, steps)
            case "FUNCTION" | "WINDOW" | "AGGREGATE":
                name = str(node.get("function_name", "")).lower()
                if name in _COUNTS:
                    return COUNT
                if name == "/" and self.common(arguments, sources, steps) is not None:
                    return _QUOTIENT
                if name in _KEEP_COMMON:
                    return self.common(arguments, sources, steps)
                if name in _KEEP_FIRST and arguments:
                    return self.unit(arguments[0], sources, steps)
                if name in _SUMS and arguments:
                    unit = self.unit(arguments[0], sources, steps)
                    return None if unit in (SHARE, _QUOTIENT) else unit
        return None

    def common(self, nodes: list[Any], sources: list[tuple[str, Columns]], steps: Mapping[str, Columns]) -> str | None:
        """Return the unit that all nodes share, ignoring constants."""
        units = {self.unit(one, sources, steps) for one in nodes if one and not _is_constant(one)}
        return units.pop() if len(units) == 1 else None

    def column(self, path: list[str], sources: list[tuple[str, Columns]]) -> str | None:
        table, name = (path[-2] if len(path) > 1 else ""), path[-1]
        found = {
            unit for alias, columns in sources if table in ("", alias) for one, unit in columns if one.lower() == name
        }
        return found.pop() if len(found) == 1 else None


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if not names:
        return columns
    return [(name, unit) for name, (_, unit) in zip(names, columns, strict=False)] + columns[len(names) :]


def _is_constant(node: Any) -> bool:
    return node.get("class") == "CONSTANT" or (node.get("class") == "CAST" and _is_constant(node.get("child") or {}))
