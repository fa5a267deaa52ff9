"""The site in a browser, from disk: search by keyboard, the lineage graph, links, phones, the dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.lineage.column_lineage import Node, load
from warehouse.lineage.steps import ROWS
from warehouse.project.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

PAGES = (
    "index.html", "lineage.html", "queries.html", "tables/metrics.uplink_balance.html", "tables/raw.port_counters.html",
    "docs/glossary.html", "docs/formats/port_counters.html",
)  # fmt: skip
FOUND = "[...document.querySelectorAll('#search-found b')].map(one => one.textContent)"


@pytest.fixture(autouse=True)
def wide(browser: Browser) -> None:
    browser.size(1200, 800)
    browser.colours("light")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_from_disk_and_is_no_wider_than_a_phone(site: Path, browser: Browser, page: str) -> None:
    browser.size(390, 844)
    browser.go(site / page)
    assert browser.said == []
    assert all(one.startswith((site.as_uri(), "data:")) for one in browser.requests), browser.requests
    assert len(browser.requests) >= 3
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.styleSheets.length") == 1
    assert browser.run("!document.querySelector('.search').hidden")


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("port_hour", "metrics.port_hour"),
        ("port_huor", "metrics.port_hour"),
        ("uplnik balnace", "metrics.uplink_balance"),
        ("suspekt-links", "suspect-links"),
        ("opning gap", "opening gap"),
        ("jian", "metrics.uplink_balance.jain_index"),
    ],
)
def test_search_forgives_slips(site: Path, browser: Browser, typed: str, wanted: str) -> None:
    browser.go(site / "index.html")
    browser.type(f"/{typed}")
    browser.wait("index !== null && document.querySelector('#search-found b') !== null")
    assert browser.run(FOUND)[0] == wanted


def test_search_needs_no_mouse(site: Path, browser: Browser) -> None:
    browser.go(site / "docs" / "formats" / "port_counters.html")
    browser.type("/")
    assert browser.run("document.activeElement.id") == "search-box"
    browser.type("leaving_share")
    browser.wait("document.querySelectorAll('#search-found b').length > 1")
    first, second = browser.run(FOUND)[:2]
    assert first == "metrics.leaf_hour.leaving_share"
    assert second != first
    browser.press("ArrowDown")
    assert browser.run("document.querySelector('[aria-selected=true] b').textContent") == second
    browser.press("ArrowUp")
    browser.press("Enter")
    browser.wait("location.pathname.endsWith('/tables/metrics.leaf_hour.html') && document.readyState === 'complete'")
    assert browser.run("location.hash") == "#leaving_share"
    browser.type("/zzzzqqqq")
    browser.wait("document.getElementById('search-said').textContent === 'Nothing is like that.'")
    browser.press("Escape")
    assert browser.run("document.getElementById('search-box-below').hidden")


def _drawn(browser: Browser) -> set[str]:
    """The columns in the graph."""
    links = browser.run("[...document.querySelectorAll('#graph a')].map(one => one.getAttribute('href').slice(1))")
    return {one for one in links if one.count(".") > 1}


def _click(browser: Browser, name: str) -> None:
    """Follow a link of the graph."""
    link = f"""document.querySelector('#graph a[href="#{name}"]')"""
    browser.run(f"{link}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")


def test_the_graph_of_a_column_is_its_whole_path(site: Path, browser: Browser, built: Path) -> None:
    browser.go(site / "lineage.html", "metrics.leaf_hour.leaving_share")
    browser.run("document.getElementById('rows').value = 'none', document.getElementById('down').value = '0'")
    browser.run("document.getElementById('down').dispatchEvent(new Event('change'))")
    path = load(Project.open(), built).trace("metrics.leaf_hour", "leaving_share")
    expected = {str(node) for node in (*path.origins, *path.ends) if not node.block and node.column != ROWS}
    assert Node("raw.port_counters", "", "InOctets") in path.ends
    assert _drawn(browser) == expected
    lit = browser.run("document.querySelectorAll('#graph path.lit').length")
    assert lit >= len(_drawn(browser)) - 1
    assert browser.run("document.querySelectorAll('#graph path.rows').length") == 0
    assert "raw.port_counters.InOctets" in browser.run("document.getElementById('steps').textContent")


def test_the_graph_is_walked_by_links_and_shows_what_decides_rows(site: Path, browser: Browser) -> None:
    browser.go(site / "lineage.html")
    everything = browser.run("document.querySelectorAll('#graph g').length")
    assert everything == len(list((site / "tables").iterdir()))
    _click(browser, "metrics.uplink_balance")
    browser.wait("location.hash === '#metrics.uplink_balance' && document.querySelector('#graph .chosen') !== null")
    assert "metrics.uplink_balance.cov" in _drawn(browser)
    assert browser.run("document.querySelectorAll('#graph g').length") < everything
    _click(browser, "metrics.uplink_balance.cov")
    browser.wait("document.querySelector('#graph .at') !== null")
    assert "metrics.port_hour.port_class" in _drawn(browser)
    assert browser.run("document.querySelectorAll('#graph path.rows').length") > 3
    browser.run("history.back()")
    browser.wait("location.hash === '#metrics.uplink_balance' && document.querySelector('#graph .at') === null")
    browser.run("document.querySelector('#steps a').click()")
    browser.wait("location.pathname.endsWith('/metrics.uplink_balance.html') && document.readyState === 'complete'")
    assert browser.run("document.querySelectorAll('.graph g').length") > 2


def test_the_dark_is_dark(site: Path, browser: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.go(site / "index.html")
    light = browser.run(ground)
    browser.colours("dark")
    assert (light, browser.run(ground)) == ("rgb(255, 255, 255)", "rgb(22, 24, 27)")
