"""Form data of one Superset chart, from its entry in dashboard.yaml."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bi.superset.semantic import NAMED_WITH_NUMBERS, ROWS, Measure, sort_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bi.superset.semantic import Table

ROW_LIMIT = 50_000
"""Row limit of a chart. Superset truncates silently at it; `make e2e` checks that no chart comes near."""
LOW, PAGE = 40, 20
"""Height up to which a table has neither search nor pages, and rows of a page."""
_KINDS = {
    "number": "big_number_total",
    "line": "echarts_timeseries_line",
    "bar": "echarts_timeseries_bar",
    "heatmap": "heatmap_v2",
    "table": "table",
}
_SCHEMES = {"in": "schemeBlues", "out": "schemeOranges"}
_WORDS = {"%": "share", "1": "ratio"}
_TIME = "%H:%M UTC"
_DATE = "%Y-%m-%d"
_TITLE_MARGINS = {"task": 125, "server": 95, "switch": 70}
"""Pixels between an axis with long names and its title."""
_WIDTHS = {"hour": 145}
"""Pixels of columns of a table that would wrap to the width of a word."""
_MOMENT = "%Y-%m-%d %H:%M UTC"


@dataclass(frozen=True)
class Shown:
    """A number that a chart draws."""

    label: str
    sql: str
    unit: str
    number_format: str
    setting: str | dict[str, Any]
    """Name of a dataset metric, or an ad hoc metric of this chart."""


def chart_params(chart: Mapping[str, Any], table: Table, *, many_days: bool = False) -> dict[str, Any]:
    """Return the form data of a chart.

    Raises
    ------
    LookupError
        The chart names a column or measure that the table does not have.
    ValueError
        The chart's grain does not allow to show its numbers.
    """
    x, by = chart.get("x"), list(chart.get("by", []))
    columns, where = list(chart.get("columns", [])), dict(chart.get("where", {}))
    missing = {*by, *columns, *where, *chart.get("order", []), *([x] if x else [])} - table.columns.keys()
    if missing:
        raise LookupError(f"{chart['chart']}: {table.name} has no column {', '.join(sorted(missing))}")
    shown = chart_numbers(chart, table)
    common: dict[str, Any] = {
        "viz_type": _KINDS[chart["kind"]],
        "adhoc_filters": _filters(where),
        "row_limit": chart.get("top", ROW_LIMIT),
        "time_range": "No filter",
        "color_scheme": "supersetColors",
    }
    if chart["kind"] == "table":
        return common | _table(chart, shown, columns, by, table)
    time = _DATE if "grain" in chart else _MOMENT if many_days else _TIME
    return common | _OF_KIND[chart["kind"]](chart, shown, x, by) | ({"x_axis_time_format": time} if x else {})


def chart_title(chart: Mapping[str, Any], table: Table) -> str:
    """Return the title of a chart, with the unit if all numbers share one: `Into leaves, TB; the gap is blank`."""
    units = {one.unit for one in chart_numbers(chart, table)} - {"1", "%"}
    if chart["kind"] == "table" or chart.get("stack") == "shares" or not units:
        return str(chart["chart"])
    title, _, note = str(chart["chart"]).partition("; ")
    return "; ".join([", ".join([title, *sorted(units)]), *([note] if note else [])])


def chart_numbers(chart: Mapping[str, Any], table: Table) -> list[Shown]:
    """Return the numbers that a chart draws, after checking that they are additive."""
    measures = chart.get("measures", [])
    if isinstance(measures, list):
        measures = {None: measures}
    found = []
    for label, columns in measures.items():
        for one in columns if isinstance(columns, list) else [columns]:
            place = one if isinstance(one, dict) else {"column": one}
            found.append(_measure(chart, table, label, **place))
    singles = [*chart.get("values", []), *([chart["value"]] if "value" in chart else [])]
    found += [_value(chart, table, column) for column in singles]
    for name in chart.get("metrics", []):
        metric = table.metrics[name]
        found.append(Shown(metric.title, metric.expression, "1", metric.number_format, metric.name))
    return found


def _measure(chart: Mapping[str, Any], table: Table, label: str | None, column: str, where: str = "") -> Shown:
    """Return an aggregated number: a dataset metric, or an ad hoc one if unit, rows or label differ."""
    if column == ROWS:
        return Shown(ROWS, "count(*)", "1", ",d", ROWS)
    if column not in table.measures:
        raise LookupError(f"{chart['chart']}: {table.name} has no measure {column}")
    measure, how = table.measures[column], chart.get("extreme")
    if not how:
        how = measure.how
        apart = set(measure.not_over) - _fixed(chart)
        if how == "none" or apart:
            raise ValueError(f"{chart['chart']}: {table.name}.{column} does not add up: {how} {sorted(apart)}")
    return _shown(chart, measure, measure.sql(how, where=where, unit=chart.get("unit")), label, own=bool(where))


def _value(chart: Mapping[str, Any], table: Table, column: str) -> Shown:
    """Return the number of single rows; the chart must group by the whole grain."""
    coarser = {str(chart["x"])} if "grain" in chart else set()
    fixed = _fixed(chart)
    fixed |= {"hour_utc"} if "hour" in fixed else set()
    fixed |= {"port"} if "short_port" in fixed else set()
    if missing := set(table.grain) - (fixed - coarser):
        raise ValueError(f"{chart['chart']}: {column} means nothing over several {', '.join(sorted(missing))}")
    measure = table.measures[column]
    return _shown(chart, measure, measure.sql(measure.how, unit=chart.get("unit")), None, own=measure.how == "none")


def _fixed(chart: Mapping[str, Any]) -> set[str]:
    """Return the columns with one value for each mark of the chart."""
    return {*chart.get("by", []), *chart.get("where", {}), *([chart["x"]] if "x" in chart else [])}


def _shown(chart: Mapping[str, Any], measure: Measure, sql: str, label: str | None, *, own: bool) -> Shown:
    unit = chart.get("unit", measure.unit)
    other = Measure(measure.column, measure.how, unit=unit, is_whole=measure.is_whole)
    # always with its unit: a bare `out` is a keyword to the SQL parser
    name = f"{label}, {_WORDS.get(unit, unit)}" if label else other.title
    if not (own or label or "unit" in chart or "extreme" in chart):
        return Shown(name, sql, unit, other.number_format, measure.name)
    return Shown(name, sql, unit, other.number_format, _ad_hoc(name, sql))


def _ad_hoc(name: str, sql: str) -> dict[str, Any]:
    """Return a metric of one chart."""
    return {
        "expressionType": "SQL",
        "sqlExpression": sql,
        "label": name,
        "hasCustomLabel": True,
        "optionName": f"metric_{name}",
    }


def _filters(where: Mapping[str, str]) -> list[dict[str, Any]]:
    simple = {"clause": "WHERE", "expressionType": "SIMPLE"}
    return [simple | {"subject": name, "operator": "==", "comparator": value} for name, value in where.items()]


def _axis_format(shown: Sequence[Shown]) -> str:
    return ".0%" if shown[0].unit == "%" else shown[0].number_format.replace(".3f", "~f").replace(".1f", "~f")


def _number(chart: Mapping[str, Any], shown: Sequence[Shown], x: str | None, by: list[str]) -> dict[str, Any]:
    return {"metric": shown[0].setting, "header_font_size": 0.4, "y_axis_format": shown[0].number_format}


def _series(chart: Mapping[str, Any], shown: Sequence[Shown], x: str | None, by: list[str]) -> dict[str, Any]:
    unit = "" if shown[0].unit in ("1", "%") else shown[0].unit
    is_time = str(x).endswith("_utc")
    order = _axis_order(chart, shown)
    titles = {"x": chart.get("x_title", "UTC" if is_time else x), "y": chart.get("y_title", unit or "share")}
    turned = bool(chart.get("categories") or chart.get("rotate") or x in NAMED_WITH_NUMBERS)
    return {
        "x_axis": x,
        "time_grain_sqla": chart.get("grain"),
        "x_axis_sort_asc": True,
        "xAxisForceCategorical": bool(chart.get("categories", chart["kind"] == "bar" and not is_time)),
        "metrics": [one.setting for one in shown],
        "groupby": by,
        "stack": "Stack" if chart.get("stack") else None,
        "contributionMode": "row" if chart.get("stack") == "shares" else None,
        "truncate_metric": True,
        "sort_series_type": "name",
        "sort_series_ascending": True,
        "show_empty_columns": True,
        "connectNulls": False,
        "rich_tooltip": True,
        "tooltipTimeFormat": _MOMENT,
        "show_legend": bool(by) or len(shown) > 1,
        "legendType": "scroll",
        "legendOrientation": chart.get("legend", "top"),
        "legendMargin": chart.get("legend_width"),
        "markerEnabled": False,
        "x_axis_number_format": ",d" if chart.get("categories") else "~g",
        "x_axis_title": titles["x"],
        "x_axis_title_margin": _TITLE_MARGINS.get(str(x), 50) if turned else 30,
        "y_axis_title": titles["y"],
        "y_axis_title_margin": 60,
        "y_axis_title_position": "Left",
        "y_axis_format": ".0%" if chart.get("share") else _axis_format(shown),
        "y_axis_bounds": [0, 1] if chart.get("share") else [None, None],
        "truncateYAxis": bool(chart.get("share")),
        "echart_options": "{ yAxis: { interval: 0.25 } }" if chart.get("share") else None,
        "xAxisLabelRotation": 45 if turned else 0,
        "xAxisLabelInterval": "0" if chart["kind"] == "bar" and not is_time else "auto",
        "logAxis": bool(chart.get("log")),
        "truncateXAxis": False,
    } | order


def _axis_order(chart: Mapping[str, Any], shown: Sequence[Shown]) -> dict[str, Any]:
    """Return the sort order of names on the axis: by number, or largest first."""
    if "top" in chart:
        return {"x_axis_sort": shown[0].label, "x_axis_sort_asc": False, "order_desc": True}
    if chart["x"] not in NAMED_WITH_NUMBERS:
        return {}
    return {"x_axis_sort": f"order_of_{chart['x']}", "timeseries_limit_metric": f"order_of_{chart['x']}"}


def _heatmap(chart: Mapping[str, Any], shown: Sequence[Shown], x: str | None, by: list[str]) -> dict[str, Any]:
    return {
        "x_axis": x,
        "time_grain_sqla": chart.get("grain"),
        "groupby": by[0],
        "metric": shown[0].setting,
        "sort_x_axis": "alpha_asc",  # by number within names; row order depends on the server
        "sort_y_axis": "alpha_desc",  # the first at the top
        "normalize_across": "heatmap",
        "linear_color_scheme": _SCHEMES[chart["scheme"]],
        "left_margin": 90,
        "bottom_margin": "auto",
        "xscale_interval": -1,
        "yscale_interval": -1 if by[0] == "server" else 1,  # every leaf has a label, of many servers some
        "value_bounds": [0, None],
        "y_axis_format": shown[0].number_format.replace(".1f", ".3~f"),
        "show_legend": True,
        "show_percentage": False,
        "show_values": False,
    }


def _table(
    chart: Mapping[str, Any], shown: Sequence[Shown], columns: Sequence[str], by: list[str], table: Table
) -> dict[str, Any]:
    long = chart.get("height", 100) > LOW
    common = {
        "server_pagination": False,
        "page_length": PAGE if long else 0,
        "include_search": long,
        "show_cell_bars": False,
        "table_timestamp_format": _MOMENT,
        "allow_render_html": True,
        "column_config": {one.label: {"d3NumberFormat": one.number_format} for one in shown}
        | {name: {"columnWidth": _WIDTHS[name]} for name in [*columns, *by] if name in _WIDTHS},
    }
    if columns:
        places = [f"place_of_{name}" if name in NAMED_WITH_NUMBERS else name for name in chart.get("order", [])]
        keys = [json.dumps([name, True]) for name in [*places, *columns]][:4]
        return common | {"query_mode": "raw", "all_columns": list(columns), "order_by_cols": keys}
    order = sort_key(table, chart["order"]) if "order" in chart else None
    return common | {
        "query_mode": "aggregate",
        "groupby": by,
        "metrics": [one.setting for one in shown],
        "order_desc": False,
        **({"timeseries_limit_metric": _ad_hoc("order", order)} if order else {}),
    }


_OF_KIND = {"number": _number, "line": _series, "bar": _series, "heatmap": _heatmap}
