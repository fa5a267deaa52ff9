"""The report in a browser: every chart draws marks, nothing is asked of a network, phones, the dark, paper."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

DRAWN = "document.documentElement.dataset.charts === 'drawn'"
MARKS = """[...document.querySelectorAll('.chart')].map(chart => {
    const canvas = chart.querySelector('canvas');
    const marks = chart.querySelectorAll('.role-mark path, .role-mark text, .role-mark line');
    if (!canvas) return [chart.id, chart.dataset.state, marks.length];
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 64) if (data[at + 3] === 255) colours.add(data.slice(at, at + 3).join());
    return [chart.id, chart.dataset.state, colours.size];
})"""
"""Of each chart its state, and how many marks it has; of pixels, how many colours."""


@pytest.fixture
def opened(report: Path, browser: Browser) -> Browser:
    browser.size(1000, 800)
    browser.colours("light")
    browser.go(report)
    browser.wait(DRAWN)
    return browser


def _specs(report: Path) -> list[dict[str, Any]]:
    text = report.read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(re.split('<script id="specs"[^>]*>', text)[1].split("</script>")[0])
    return found


def test_every_chart_draws_marks_and_asks_no_network(report: Path, opened: Browser) -> None:
    marks = opened.run(MARKS)
    assert {name for name, *_ in marks} == {f"chart-{one['id']}" for one in _specs(report)}
    for name, state, count in marks:
        assert state == "drawn", name
        assert count > 1 or (count == 1 and not name.startswith(("chart-heatmap", "chart-fabric"))), name
    assert opened.said == []
    assert [one for one in opened.requests if not one.startswith("data:")] == [report.as_uri()]


def test_bars_are_as_many_as_rows(report: Path, opened: Browser) -> None:
    [spec] = [one["spec"] for one in _specs(report) if one["id"] == "leaving"]
    [rows] = spec["datasets"].values()
    assert opened.run("document.querySelectorAll('#chart-leaving .mark-rect path').length") == len(rows)


def test_a_phone_needs_no_moving_sideways(report: Path, browser: Browser) -> None:
    browser.size(390, 844)
    browser.colours("light")
    browser.go(report)
    browser.wait(DRAWN)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    charts = "[...document.querySelectorAll('.chart')]"
    wider = browser.run(f"{charts}.filter(one => one.getBoundingClientRect().width > 390).map(one => one.id)")
    assert all(name.startswith("chart-fabric") for name in wider), "in a frame of its own"
    names = "[...document.querySelectorAll('.sideways .role-mark text')]"
    sizes = browser.run(f"{names}.map(one => parseFloat(getComputedStyle(one).fontSize))")
    assert sizes
    assert min(sizes) >= 11
    assert all(name == "drawn" for _, name, _ in browser.run(MARKS))


def test_the_dark_has_light_text_in_charts_too(opened: Browser) -> None:
    ink = "getComputedStyle(document.querySelector('#chart-leaving .role-axis-label text')).fill"
    pixels = "document.querySelector('.chart canvas').toDataURL()"
    light, drawn = opened.run(ink), opened.run(pixels)
    opened.colours("dark")
    opened.wait(f"{ink} !== {json.dumps(light)}")
    assert (light, opened.run(ink)) == ("rgb(27, 27, 27)", "rgb(230, 230, 230)")
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 27)"
    opened.wait(f"document.querySelector('.chart canvas') !== null && {pixels} !== {json.dumps(drawn)}")


def test_data_sql_and_citation_are_one_click_away(opened: Browser) -> None:
    for what in ("data", "sql", "cite"):
        place = f"document.querySelector('#leaving details.{what}')"
        assert opened.run(f"{place}.querySelector('table, pre, code').checkVisibility()") is False
        opened.run(f"{place}.querySelector('summary').click()")
        assert opened.run(f"{place}.querySelector('table, pre, code').checkVisibility()") is True


def test_paper_has_charts_and_citations_and_no_controls(opened: Browser, tmp_path: Path) -> None:
    opened.print(tmp_path / "report.pdf")
    pdf = (tmp_path / "report.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert 5 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 60
    opened.size(680, 1000)  # the width of A4 without its margins
    opened.do("Emulation.setEmulatedMedia", media="print")
    opened.run("dispatchEvent(new Event('beforeprint'))")
    try:
        assert opened.run("document.documentElement.scrollWidth") <= 680
        assert opened.run("[...document.querySelectorAll('details.cite')].every(one => one.open)")
        shown = "[...document.querySelectorAll('{}')].filter(one => one.checkVisibility()).length"
        assert opened.run(shown.format("nav, details.sql, summary")) == 0
        assert opened.run(shown.format(".chart svg, .chart canvas")) == opened.run(shown.format(".chart"))
    finally:
        opened.do("Emulation.setEmulatedMedia", media="")
