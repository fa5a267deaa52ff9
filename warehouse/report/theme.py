"""How charts look: colours that colour-blind people can tell apart, text in the colour of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.report.figure import Spec, Values

BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
"""Of Okabe and Ito's palette (Color Universal Design, 2008); its black and yellow vanish on one of the grounds."""
CATEGORIES = [BLUE, ORANGE, GREEN, PINK, SKY, RED]
GREY = "#8a8a8a"
SEQUENTIAL: Final = "cividis"
FONT = "system-ui, 'DejaVu Sans', sans-serif"
ROW = 20
"""Height of a row of bars, in pixels."""
HIGHEST = 800
"""Of a chart on paper, in pixels: a page is no higher."""

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "range": {"category": CATEGORIES, "heatmap": {"scheme": SEQUENTIAL}, "ramp": {"scheme": SEQUENTIAL}},
    "mark": {"color": BLUE},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GREY,
        "gridOpacity": 0.25,
        "titleFontWeight": "normal",
        "labelLimit": 120,
    },
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "columns": 3,
        "gradientLength": 160,
    },
    "text": {"color": "currentColor"},
}


def chart(rows: Sequence[Values] | None = None) -> Spec:
    """An empty chart over these rows."""
    import altair

    return altair.Chart(altair.InlineData(values=[dict(row) for row in rows or ()]))


def sized(spec: Spec, height: float | None = None) -> Spec:
    """As wide as the page lets it, and so high."""
    wide = spec.properties(width="container", autosize={"type": "fit-x", "contains": "padding"})
    return wide.properties(height=height) if height else wide


def as_dict(spec: Spec, text: str) -> dict[str, Any]:
    """The Vega-Lite of a chart, with its theme and the text that stands for it."""
    made: dict[str, Any] = spec.properties(description=text).to_dict()
    made.pop("$schema", None)
    made["config"] = CONFIG
    return made


def for_paper(spec: dict[str, Any], width: int) -> dict[str, Any]:
    """The same chart, black on white and so wide, for a file of its own."""
    import json

    paper: dict[str, Any] = json.loads(json.dumps(spec).replace('"currentColor"', '"#000000"'))
    paper["width"] = width
    if isinstance(paper.get("height"), int | float):
        paper["height"] = min(paper["height"], HIGHEST)
    paper["config"] |= {"background": "white", "font": "DejaVu Sans"}
    return paper
