"""Layout of the dashboard: tabs, rows, widths, notes and filters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from bi.superset.semantic import NAMED_WITH_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEIGHTS = {"number": 22}
_HEIGHT = 50
_NOTE, _REASON = 8, 18
_ABOVE = ["ROOT_ID", "GRID_ID", "TABS-all"]


class Ids:
    """Deterministic uuids of the objects of one connection."""

    def __init__(self, connection: str) -> None:
        self._space = uuid5(NAMESPACE_URL, f"warehouse/{connection}")

    def __call__(self, kind: str, name: str) -> str:
        """Return the uuid of a `database`, `dataset`, `chart` or `dashboard`."""
        return str(uuid5(self._space, f"{kind}/{name}"))


def slug(name: str) -> str:
    """Return a name as part of a path."""
    return re.sub(r"\W+", "-", name).strip("-").lower()


def boxes_of(tab: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the charts of a tab, row by row, with reasons in place of missing charts."""
    return [chart for row in tab["rows"] for chart in row]


def charts_of(tab: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the charts of a tab with data, row by row."""
    return [chart for chart in boxes_of(tab) if "reason" not in chart]


def dashboard(template: Mapping[str, Any], titles: Mapping[str, str], connection: str, ids: Ids) -> dict[str, Any]:
    """Return the dashboard; `titles` has the full title of each chart."""
    title = f"{template['title']}: {connection}"
    return {
        "dashboard_title": title,
        "description": template["about"],
        "css": "",
        "published": True,
        "slug": slug(connection),
        "uuid": ids("dashboard", template["title"]),
        "position": _position(template, titles, title, ids),
        "metadata": {
            "native_filter_configuration": [_filter(one, ids) for one in template["filters"]],
            "cross_filters_enabled": False,  # they would also filter tabs whose columns have another meaning
            "refresh_frequency": 0,
            "color_scheme": "supersetColors",
            "label_colors": template["colors"],
            "timed_refresh_immune_slices": [],
            "expanded_slices": {},
            "default_filters": "{}",
            "chart_configuration": {},
        },
    }


def _position(template: Mapping[str, Any], titles: Mapping[str, str], title: str, ids: Ids) -> dict[str, Any]:
    tabs = [f"TAB-{slug(tab['title'])}" for tab in template["tabs"]]
    boxes: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": title}},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": ["TABS-all"], "parents": ["ROOT_ID"]},
        "TABS-all": {"type": "TABS", "id": "TABS-all", "children": tabs, "meta": {}, "parents": _ABOVE[:2]},
    }
    for name, tab in zip(tabs, template["tabs"], strict=True):
        boxes |= {str(box["id"]): box for box in _tab(name, tab, titles, ids)}
    charts = [box for box in boxes.values() if isinstance(box, dict) and box["type"] == "CHART"]
    for number, box in enumerate(charts, 1):
        box["meta"]["chartId"] = number  # id within this bundle; the import replaces it, by uuid
    return boxes


def _tab(name: str, tab: Mapping[str, Any], titles: Mapping[str, str], ids: Ids) -> Iterator[dict[str, Any]]:
    note = {"note": tab["note"], "width": 12, "height": _NOTE}
    rows = [[note], *tab["rows"]]
    keys = [f"ROW-{slug(tab['title'])}-{at}" for at in range(len(rows))]
    yield {"type": "TAB", "id": name, "children": keys, "meta": {"text": tab["title"]}, "parents": _ABOVE}
    for key, row in zip(keys, rows, strict=True):
        boxes = [_box(f"{key}-{at}", one, titles, ids) for at, one in enumerate(row)]
        yield {
            "type": "ROW", "id": key, "children": [box["id"] for box in boxes],
            "meta": {"background": "BACKGROUND_TRANSPARENT"}, "parents": [*_ABOVE, name],
        }  # fmt: skip
        yield from ({**box, "parents": [*_ABOVE, name, key]} for box in boxes)


def _box(place: str, one: Mapping[str, Any], titles: Mapping[str, str], ids: Ids) -> dict[str, Any]:
    """Return a chart, the reason for its absence, or a note."""
    meta = {"width": one["width"], "height": one.get("height", _HEIGHTS.get(one.get("kind", ""), _HEIGHT))}
    if "note" in one:
        return {"type": "MARKDOWN", "id": f"MARKDOWN-{place}", "children": [], "meta": {"code": one["note"], **meta}}
    if "reason" in one:
        text = f"#### {one['chart']}\n\n{one['reason']}"
        meta["height"] = _REASON
        return {"type": "MARKDOWN", "id": f"MARKDOWN-{place}", "children": [], "meta": {"code": text, **meta}}
    title = one["chart"]
    meta |= {"uuid": ids("chart", title), "sliceName": titles[title]}
    return {"type": "CHART", "id": f"CHART-{slug(title)}", "children": [], "meta": meta}


def _filter(one: Mapping[str, Any], ids: Ids) -> dict[str, Any]:
    table, _, column = one["column"].rpartition(".")
    return {
        "type": "NATIVE_FILTER",
        "id": f"NATIVE_FILTER-{slug(one['name'])}",
        "name": one["name"],
        "description": "",
        "filterType": "filter_select",
        "scope": {"rootPath": [f"TAB-{slug(tab)}" for tab in one["tabs"]], "excluded": []},
        "cascadeParentIds": [f"NATIVE_FILTER-{slug(name)}" for name in one.get("after", [])],
        "targets": [{"datasetUuid": ids("dataset", table), "column": {"name": column}}],
        "controlValues": {
            "multiSelect": True,
            "enableEmptyFilter": False,
            "defaultToFirstItem": False,
            "inverseSelection": False,
            "searchAllOptions": False,
            "sortAscending": True,
        },
        **({"sortMetric": f"order_of_{column}"} if column in NAMED_WITH_NUMBERS else {}),
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
    }
