"""Figures of the report on the sample: tables, texts and drawings, as the page has them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest


class _Page(HTMLParser):
    """Parser that returns each figure of a page: title, table, SQL, parameters, caption and drawing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, dict[str, Any]] = {}
        self.now: dict[str, Any] = {}
        self.path: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "figure" or (tag == "section" and given["id"] == "findings"):
            lists: dict[str, Any] = {"rows": [], "columns": [], "code": [], "marks": []}
            self.now = self.found.setdefault(str(given["id"]), {**lists, "sql": "", "says": "", "title": ""})
        elif tag == "tr" and "tbody" in self.path:
            self.now["rows"].append([])
        elif tag == "td":
            self.now["rows"][-1].append("")
        elif tag == "code" and "pre" not in self.path and self.now:
            self.now["code"].append("")
        elif "svg" in self.path and tag != "title":
            self.now["marks"].append({"tag": tag, "tip": "", "text": "", **given})
        elif tag == "svg":
            self.now["marks"].append({"tag": "svg", **given})
        if tag not in ("meta", "link", "br", "input"):
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.path and self.path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        last = self.path[-1:]
        if last == ["td"]:
            self.now["rows"][-1][-1] += data
        elif last == ["th"]:
            self.now["columns"].append(data)
        elif self.path[-2:] == ["pre", "code"]:
            self.now["sql"] += data
        elif last == ["code"] and self.now:
            self.now["code"][-1] += data
        elif last == ["figcaption"]:
            self.now["says"] += data
        elif last == ["h3"]:
            self.now["title"] += data.strip()
        elif "svg" in self.path and last in (["title"], ["text"]):
            self.now["marks"][-1]["tip" if last == ["title"] else "text"] += data


Figures = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def figures(report: Path) -> Figures:
    """Return the figures of the report that have rows, by name."""
    found = _Page(report.read_text(encoding="utf-8")).found
    return {name: one for name, one in found.items() if one["sql"]}


def values(one: dict[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a figure by column, as text."""
    return [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]]
