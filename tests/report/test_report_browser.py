"""The report in a browser: no network, filters in the URL, downloads, phones, dark mode, print, accessibility."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.report.conftest import Figures
from tests.site.axe import violations

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

SHOWN = "[...document.querySelectorAll({})].filter(one => one.checkVisibility()).length"

FOCUSED = (
    "one => one === document.body ? '' : one.closest('figure, form, ul, section, header')?.tagName + ' ' + one.tagName"
)


@pytest.fixture
def opened(report: Path, browser: Browser) -> Browser:
    browser.size(1000, 800)
    browser.colors("light")
    browser.go(report)
    return browser


def _shown(browser: Browser, what: str) -> int:
    return int(browser.run(SHOWN.format(json.dumps(what))))


def accessible(browser: Browser) -> None:
    """Compare the page with axe's rules; this removes most of its rows."""
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert violations(browser) == []


def test_every_chart_is_shown_and_downloaded_without_network_requests_and_is_accessible(
    figures: Figures, report: Path, opened: Browser
) -> None:
    opened.size(1280, 900)
    drawn = sum(mark["tag"] == "svg" for one in figures.values() for mark in one["marks"])
    assert opened.run("document.querySelectorAll('.panels svg').length") == drawn > 30
    assert opened.run("[...document.querySelectorAll('.panels svg')].every(one => one.children.length > 1)")
    one = figures["ports"]
    text = opened.run("report.csv(document.querySelector('#ports table'))")
    assert list(csv.reader(io.StringIO(text))) == [one["columns"], *one["rows"]]
    vector = opened.run("report.vector(document.querySelector('#ports'))")
    assert "var(" not in vector
    panels = ElementTree.fromstring(vector).findall("{http://www.w3.org/2000/svg}svg")
    assert len(panels) == sum(mark["tag"] == "svg" for mark in one["marks"])
    assert len({(panel.attrib["x"], panel.attrib["y"]) for panel in panels}) == len(panels), "none lies on another"
    assert opened.said == []
    assert [one for one in opened.requests if not one.startswith("data:")] == [report.as_uri()]
    accessible(opened)


def test_a_dark_phone_needs_no_horizontal_scrolling_and_is_accessible(report: Path, browser: Browser) -> None:
    browser.size(390, 844)
    browser.colors("dark")
    browser.go(report)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    shown = "[...document.querySelectorAll('.panels svg')].filter(one => one.checkVisibility())"
    widths = browser.run(f"{shown}.map(one => one.getBoundingClientRect().width)")
    assert max(widths) <= 390
    assert 11.5 * min(widths) / browser.run("document.querySelector('.panels svg').viewBox.baseVal.width") >= 11
    accessible(browser)


def test_filters_are_stored_in_the_url(report: Path, opened: Browser) -> None:
    panels = _shown(opened, "#ports svg")
    choose = "{0}.value = {1}; {0}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    opened.run(choose.format("document.querySelector('[name=leaf]')", "'Leaf-2'"))
    assert opened.run("location.hash") == "#&leaf=Leaf-2"
    rows = "[...document.querySelectorAll('#links tbody tr:not(.off)')].map(one => one.cells[0].textContent)"
    for _ in range(2):
        assert _shown(opened, "#ports svg") == 2 < panels, "the legend and the leaf"
        assert set(opened.run(rows)) == {"Leaf-2"}
        opened.go(report, "ports&leaf=Leaf-2")
    assert opened.run("document.querySelector('[name=leaf]').value") == "Leaf-2"
    opened.run("document.querySelector('a[href=\"#jobs-in-hour\"]').click()")
    assert opened.run("location.hash") == "#jobs-in-hour&leaf=Leaf-2"
    opened.run("document.querySelector('[type=reset]').click()")
    opened.wait("location.hash === '#jobs-in-hour'")
    assert _shown(opened, "#ports svg") == panels
    assert (_shown(opened, "#links"), _shown(opened, "#links-2024-05-23T16")) == (1, 0)
    opened.go(report, "links-2024-05-23T16&hour=2024-05-23T16")
    assert (_shown(opened, "#links"), _shown(opened, "#links-2024-05-23T16")) == (0, 1)


def test_everything_is_shown_without_scripts(report: Path, browser: Browser) -> None:
    browser.do("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.go(report)
        hidden = "[...document.querySelectorAll('figure')].filter(one => !one.checkVisibility()).length"
        assert browser.run(hidden) == 0, "earlier hours, too"
        assert _shown(browser, ".panels svg") > 30
        assert _shown(browser, "form.filters, button.csv") == 0
    finally:
        browser.do("Emulation.setScriptExecutionDisabled", value=False)


def test_paper_has_charts_and_citations_and_no_controls(opened: Browser) -> None:
    opened.size(680, 1000)  # the width of A4 without margins
    opened.do("Emulation.setEmulatedMedia", media="print")
    opened.run("dispatchEvent(new Event('beforeprint'))")
    try:
        assert opened.run("document.documentElement.scrollWidth") <= 680
        assert _shown(opened, ".cite") == _shown(opened, "figure, #findings")
        assert _shown(opened, "nav, form, summary, button, .source pre, .source .table") == 0
        assert _shown(opened, ".panels svg") == _shown(opened, "figure:not([hidden]) .panels svg") > 20
    finally:
        opened.do("Emulation.setEmulatedMedia", media="")


def test_the_keyboard_reaches_filters_figures_and_tables(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = one.closest('#balance') !== null; })")
    names = set[str]()
    while "" not in names:
        opened.press("Tab")
        names.add(opened.run(f"({FOCUSED})(document.activeElement)"))
    wanted = "FORM SELECT, FORM INPUT, FIGURE A, FIGURE SUMMARY, FIGURE DIV, FIGURE PRE, FIGURE BUTTON"
    assert set(wanted.split(", ")) <= names
