"""Figures of the report on the sample: tables, texts and drawings, as the page has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.html_tree import Element, parsed

Figures = dict[str, dict[str, Any]]


def _mark(one: Element) -> dict[str, str]:
    tip = "".join(part.text for part in one.parts if isinstance(part, Element) and part.tag == "title")
    return {"tag": one.tag, "tip": tip, "text": one.own, **one.attributes}


def _figure(one: Element) -> dict[str, Any]:
    return {
        "title": "".join(head.own for head in one.all("h3")).strip(),
        "says": "".join(caption.own for caption in one.all("figcaption")),
        "columns": [head.text for head in one.all("th")],
        "rows": [[cell.text for cell in row.all("td")] for body in one.all("tbody") for row in body.all("tr")],
        "sql": "".join(pre.text for pre in one.all("pre")),
        "code": [code.text for code in one.all("code") if code.parent and code.parent.tag != "pre"],
        "marks": [_mark(mark) for svg in one.all("svg") for mark in (svg, *svg.below()) if mark.tag != "title"],
    }


@pytest.fixture(scope="session")
def figures(report: Path) -> Figures:
    """Return the figures of the report that have rows, by name."""
    page = parsed(report.read_text(encoding="utf-8"))
    found = {one.attributes["id"]: _figure(one) for one in (*page.all("figure"), *page.all("findings"))}
    return {name: one for name, one in found.items() if one["sql"]}


def values(one: dict[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a figure by column, as text."""
    return [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]]
