"""Where the charts of the dashboard stand: tabs, rows, widths, and the filters of each tab."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEIGHTS = {"number": 20, "table": 50}
_HEIGHT = 50


class Ids:
    """uuids of what belongs to one connection, the same in each run."""

    def __init__(self, connection: str) -> None:
        self._space = uuid5(NAMESPACE_URL, f"warehouse/{connection}")

    def __call__(self, kind: str, name: str) -> str:
        """The uuid of a `database`, `dataset`, `chart` or `dashboard`."""
        return str(uuid5(self._space, f"{kind}/{name}"))


def slug(name: str) -> str:
    """A name as part of a path."""
    return re.sub(r"\W+", "-", name).strip("-").lower()


def charts_of(tab: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The charts of a tab, row by row."""
    return [chart for row in tab["rows"] for chart in row]


def dashboard(said: Mapping[str, Any], titles: Mapping[str, str], connection: str, ids: Ids) -> dict[str, Any]:
    """The dashboard itself; `titles` has what each chart of dashboard.yaml is called in full."""
    title = f"{said['title']}: {connection}"
    return {
        "dashboard_title": title,
        "description": said["about"],
        "css": "",
        "published": True,
        "slug": slug(connection),
        "uuid": ids("dashboard", said["title"]),
        "position": _position(said, titles, title, ids),
        "metadata": {
            "native_filter_configuration": [one for tab in said["tabs"] for one in _filters(tab, ids)],
            "cross_filters_enabled": True,
            "refresh_frequency": 0,
            "color_scheme": "supersetColors",
            "timed_refresh_immune_slices": [],
            "expanded_slices": {},
            "default_filters": "{}",
            "chart_configuration": {},
        },
    }


def _position(said: Mapping[str, Any], titles: Mapping[str, str], title: str, ids: Ids) -> dict[str, Any]:
    tabs = [f"TAB-{slug(tab['title'])}" for tab in said["tabs"]]
    boxes: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": title}},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": ["TABS-all"], "parents": ["ROOT_ID"]},
        "TABS-all": {
            "type": "TABS", "id": "TABS-all", "children": tabs, "meta": {}, "parents": ["ROOT_ID", "GRID_ID"],
        },
    }  # fmt: skip
    number = 0
    for name, tab in zip(tabs, said["tabs"], strict=True):
        above = ["ROOT_ID", "GRID_ID", "TABS-all"]
        rows = [f"ROW-{slug(tab['title'])}-{at}" for at in range(len(tab["rows"]))]
        boxes[name] = {
            "type": "TAB", "id": name, "children": rows, "meta": {"text": tab["title"]}, "parents": above,
        }  # fmt: skip
        for row, charts in zip(rows, tab["rows"], strict=True):
            keys = [f"CHART-{slug(chart['chart'])}" for chart in charts]
            boxes[row] = {
                "type": "ROW", "id": row, "children": keys, "meta": {"background": "BACKGROUND_TRANSPARENT"},
                "parents": [*above, name],
            }  # fmt: skip
            for key, chart in zip(keys, charts, strict=True):
                number += 1
                boxes[key] = {
                    "type": "CHART",
                    "id": key,
                    "children": [],
                    "parents": [*above, name, row],
                    "meta": {
                        "chartId": number,  # of this bundle; the import puts its own in its place, by uuid
                        "uuid": ids("chart", chart["chart"]),
                        "sliceName": titles[chart["chart"]],
                        "width": chart["width"],
                        "height": _HEIGHTS.get(chart["kind"], _HEIGHT),
                    },
                }
    return boxes


def _filters(tab: Mapping[str, Any], ids: Ids) -> list[dict[str, Any]]:
    scope = {"rootPath": [f"TAB-{slug(tab['title'])}"], "excluded": []}
    common = {"type": "NATIVE_FILTER", "scope": scope, "cascadeParentIds": [], "description": ""}
    found = []
    for title, place in tab["filters"].items():
        table, _, column = place.rpartition(".")
        found.append(
            common
            | {
                "id": f"NATIVE_FILTER-{slug(tab['title'])}-{slug(title)}",
                "name": title,
                "filterType": "filter_select",
                "targets": [{"datasetUuid": ids("dataset", table), "column": {"name": column}}],
                "controlValues": {
                    "multiSelect": True,
                    "enableEmptyFilter": False,
                    "defaultToFirstItem": False,
                    "inverseSelection": False,
                    "searchAllOptions": False,
                },
                "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
            }
        )
    if tab.get("time"):
        found.append(
            common
            | {
                "id": f"NATIVE_FILTER-{slug(tab['title'])}-time",
                "name": "Time, UTC",
                "filterType": "filter_time",
                "targets": [{}],
                "controlValues": {"enableEmptyFilter": False},
                "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
            }
        )
    return found
