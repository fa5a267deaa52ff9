"""The settings of one chart as Superset keeps them, from the few words that dashboard.yaml has for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bi.superset.semantic import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bi.superset.semantic import Table

ROW_LIMIT = 50_000
"""Rows that a chart may ask for; Superset cuts silently at it, so `make e2e` checks that no chart comes near."""
_KINDS = {
    "number": "big_number_total",
    "line": "echarts_timeseries_line",
    "bar": "echarts_timeseries_bar",
    "heatmap": "heatmap_v2",
    "pie": "pie",
    "table": "table",
}


def chart_params(chart: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """What Superset calls the form data of a chart.

    Raises
    ------
    LookupError
        When it names a column or measure that the table does not have.
    ValueError
        When its rows are not at a grain at which its numbers may be shown.
    """
    x, by = chart.get("x"), list(chart.get("by", []))
    columns, where = list(chart.get("columns", [])), dict(chart.get("where", {}))
    missing = {*by, *columns, *where, *([x] if x else [])} - table.columns.keys()
    if missing:
        raise LookupError(f"{chart['chart']}: {table.name} has no column {', '.join(sorted(missing))}")
    metrics = [] if columns else _metrics(chart, table, {*by, *where, *([x] if x else [])})
    common: dict[str, Any] = {
        "viz_type": _KINDS[chart["kind"]],
        "adhoc_filters": _filters(where, table.time),
        "row_limit": ROW_LIMIT,
        "time_range": "No filter",
        "color_scheme": "supersetColors",
    }
    if columns:
        return common | _table(columns, table)
    return common | _OF_KIND[chart["kind"]](chart, metrics, x, by)


def chart_title(chart: Mapping[str, Any], table: Table) -> str:
    """Its title with the unit of what it shows, where that is one: `Bytes into leaves, TB`."""
    shown = [chart["value"]] if "value" in chart else chart.get("measures", [])
    units = {table.measures[column].unit for column in shown if column in table.measures} - {"1"}
    return ", ".join([str(chart["chart"]), *sorted(units)])


def _metrics(chart: Mapping[str, Any], table: Table, fixed: set[str]) -> list[Any]:
    """Names of the dataset's measures; a number that cannot be summed as an expression of this chart."""
    if "value" in chart:
        coarser = {str(chart["x"])} if "grain" in chart else set()
        if missing := set(table.grain) - (fixed - coarser):
            raise ValueError(
                f"{chart['chart']}: {chart['value']} means nothing over several {', '.join(sorted(missing))}"
            )
        measure = table.measures[chart["value"]]
        return [
            {
                "expressionType": "SQL",
                "sqlExpression": measure.expression,
                "label": measure.title.replace("%", "percent"),
                "hasCustomLabel": True,
            }
        ]
    names = []
    for column in chart["measures"]:
        if column == ROWS:
            names.append(ROWS)
            continue
        if column not in table.measures:
            raise LookupError(f"{chart['chart']}: {table.name} has no measure {column}")
        measure = table.measures[column]
        if measure.how == "none" or set(measure.not_over) - fixed:
            raise ValueError(
                f"{chart['chart']}: {table.name}.{column} does not add up: {measure.how} {measure.not_over}"
            )
        names.append(measure.name)
    return names


def _filters(where: Mapping[str, str], time: str | None) -> list[dict[str, Any]]:
    simple = {"clause": "WHERE", "expressionType": "SIMPLE"}
    found = [simple | {"subject": name, "operator": "==", "comparator": value} for name, value in where.items()]
    if time:  # where the filter of time goes
        found.append(simple | {"subject": time, "operator": "TEMPORAL_RANGE", "comparator": "No filter"})
    return found


def _number(chart: Mapping[str, Any], metrics: Sequence[Any], x: str | None, by: list[str]) -> dict[str, Any]:
    return {"metric": metrics[0], "header_font_size": 0.4, "subheader_font_size": 0.15, "y_axis_format": ",.1~f"}


def _series(chart: Mapping[str, Any], metrics: Sequence[Any], x: str | None, by: list[str]) -> dict[str, Any]:
    return {
        "x_axis": x,
        "time_grain_sqla": chart.get("grain"),
        "x_axis_sort_asc": True,
        "xAxisForceCategorical": bool(chart.get("categories", chart["kind"] == "bar")),
        "metrics": list(metrics),
        "groupby": by,
        "truncate_metric": True,
        "show_empty_columns": True,
        "rich_tooltip": True,
        "show_legend": True,
        "legendType": "scroll",
        "legendOrientation": "top",
        "markerEnabled": chart["kind"] == "line",
        "markerSize": 3,
        "x_axis_time_format": "smart_date",
        "y_axis_format": "SMART_NUMBER",
        "logAxis": bool(chart.get("log")),
        "truncateXAxis": False,
    }


def _heatmap(chart: Mapping[str, Any], metrics: Sequence[Any], x: str | None, by: list[str]) -> dict[str, Any]:
    return {
        "x_axis": x,
        "time_grain_sqla": chart.get("grain"),
        "groupby": by[0],
        "metric": metrics[0],
        "sort_x_axis": "alpha_asc",  # rows come in another order from another server
        "sort_y_axis": "alpha_asc",
        "normalize_across": "heatmap",
        "linear_color_scheme": "superset_seq_1",
        "left_margin": 75,
        "bottom_margin": "auto",
        "xscale_interval": -1,
        "yscale_interval": -1,
        "value_bounds": [None, None],
        "x_axis_time_format": "smart_date",
        "y_axis_format": "SMART_NUMBER",
        "show_legend": True,
        "show_percentage": False,
        "show_values": False,
    }


def _pie(chart: Mapping[str, Any], metrics: Sequence[Any], x: str | None, by: list[str]) -> dict[str, Any]:
    return {
        "groupby": by,
        "metric": metrics[0],
        "label_type": "percent",
        "show_legend": True,
        "show_labels": True,
        "sort_by_metric": True,
        "number_format": "SMART_NUMBER",
    }


def _table(columns: Sequence[str], table: Table) -> dict[str, Any]:
    return {
        "query_mode": "raw",
        "all_columns": list(columns),
        "order_by_cols": [json.dumps([name, True]) for name in columns[:4]],
        "server_pagination": False,
        "page_length": 20,
        "include_search": True,
        "show_cell_bars": False,
        "table_timestamp_format": "%Y-%m-%d %H:%M:%S",
        "column_config": {
            name: {"d3NumberFormat": ",.4~f" if table.columns[name][0] == "DOUBLE" else ",d"}
            for name in columns
            if table.columns[name][0] in ("DOUBLE", "BIGINT", "INTEGER")
        },
    }


_OF_KIND = {"number": _number, "line": _series, "bar": _series, "heatmap": _heatmap, "pie": _pie}
