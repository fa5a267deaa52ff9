"""Facts of a target that shape its dashboard: which charts have data, and why others have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bi.superset.charts import LOW, PAGE, chart_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from bi.superset.semantic import Table

_FRAME, _SEARCH = 15, 8
"""Height of title and header of a table, and of its search and pages, in units of the layout (8 pixels)."""


def without_empty(
    template: Mapping[str, Any], tables: Mapping[str, Table], warehouse: duckdb.DuckDBPyConnection
) -> dict[str, Any]:
    """Return the dashboard without empty tabs; a chart without data gets a `reason`."""
    tabs = []
    for tab in template["tabs"]:
        if "needs" in tab and not _one(warehouse, tab["needs"]):
            continue
        rows = [[_fitted(chart, tables[chart["table"]], warehouse) for chart in row] for row in tab["rows"]]
        tabs.append({**tab, "rows": rows})
    titles = {tab["title"] for tab in tabs}
    filters = [{**one, "tabs": [tab for tab in one["tabs"] if tab in titles]} for one in template["filters"]]
    return {**template, "tabs": tabs, "filters": [one for one in filters if one["tabs"]]}


def many_days(warehouse: duckdb.DuckDBPyConnection) -> bool:
    """Return True if the loaded hours span several days, so that time axes need dates."""
    return bool(_one(warehouse, "SELECT count(DISTINCT CAST(hour_utc AS DATE)) > 1 FROM metrics.leaf_hour"))


def _fitted(chart: Mapping[str, Any], table: Table, warehouse: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return a chart or the reason for its absence; a table with `row` is as high as its rows, up to a page."""
    found = _reasoned(chart, table, warehouse)
    if "row" in found and "reason" not in found:
        keys = ", ".join(table.column_sql(name) for name in [*found.get("by", ()), *found.get("columns", ())])
        rows = _one(warehouse, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {table.source})")
        found["height"] = _FRAME + found["row"] * min(int(str(rows)), PAGE)
        found["height"] += _SEARCH if found["height"] > LOW else 0
    return found


def _reasoned(chart: Mapping[str, Any], table: Table, warehouse: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    if _has_data(chart, table, warehouse):
        return dict(chart)
    if "why" in chart:
        return {**chart, "reason": str(_one(warehouse, chart["why"]))}
    rows = " and ".join(f"{name} {value}" for name, value in chart.get("where", {}).items())
    return {
        **chart,
        "reason": f"This warehouse has no numbers for it in {table.name}" + (f" with {rows}." if rows else "."),
    }


def _has_data(chart: Mapping[str, Any], table: Table, warehouse: duckdb.DuckDBPyConnection) -> bool:
    """Return True if a row remains and one of the chart's numbers is not NULL."""
    where = " AND ".join(f"{table.column_sql(name)} = '{value}'" for name, value in chart.get("where", {}).items())
    numbers = [f"({number.sql}) IS NOT NULL" for number in chart_numbers(chart, table)]
    found = f"count(*) > 0 AND ({' OR '.join(numbers)})" if numbers else "count(*) > 0"
    return bool(_one(warehouse, f"SELECT {found} FROM {table.source}" + (f" WHERE {where}" if where else "")))


def _one(warehouse: duckdb.DuckDBPyConnection, sql: str) -> object:
    row = warehouse.execute(sql).fetchone()
    return row[0] if row else None
