"""The site in a browser, from disk: keyboard search, lineage graph, links, phones, dark mode."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.site.axe import violations
from warehouse.lineage.column_lineage import Columns
from warehouse.lineage.select_steps import ROWS, Node
from warehouse.project.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

PAGES = (
    "index.html", "lineage.html", "queries.html", "tables/metrics.uplink_balance.html", "docs/glossary.html",
    "fabric.html", "formats.html",
)  # fmt: skip
FOUND = "[...document.querySelectorAll('#search-found b')].map(one => one.textContent)"


@pytest.fixture(autouse=True)
def wide(browser: Browser) -> None:
    browser.size(1200, 800)
    browser.colors("light")


def test_pages_work_from_disk_and_are_no_wider_than_a_phone(site: Path, browser: Browser) -> None:
    browser.size(390, 844)
    for page in PAGES:
        browser.go(site / page)
        assert browser.said == [], page
        assert all(one.startswith((site.as_uri(), "data:")) for one in browser.requests), browser.requests
        assert browser.run("document.documentElement.scrollWidth") <= 390, page
        assert browser.run("document.styleSheets.length") == 1
        assert browser.run("!document.querySelector('.search').hidden")


def test_search_tolerates_typos_and_knows_synonyms(site: Path, browser: Browser) -> None:
    for typed, wanted in (
        ("uplnik balnace", "metrics.uplink_balance"),
        ("suspekt-links", "suspect-links"),
        ("opning gap", "opening gap"),
        ("GPU-61", "GPU-61"),
        ("wait", "metrics.jobs.queue_seconds"),
    ):
        browser.go(site / "index.html")
        browser.type(f"/{typed}")
        browser.wait("index !== null && document.querySelector('#search-found b') !== null")
        assert browser.run(FOUND)[0] == wanted


def test_search_works_by_keyboard(site: Path, browser: Browser) -> None:
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
    browser.wait("document.getElementById('search-note').textContent === 'No match.'")
    browser.press("Escape")
    assert browser.run("document.getElementById('search-box-below').hidden")


def test_pages_are_accessible(site: Path, browser: Browser) -> None:
    for page, scheme, width in (
        ("index.html", "light", 1280), ("tables/metrics.uplink_balance.html", "dark", 390),
        ("fabric.html", "dark", 1280), ("queries.html", "light", 390),
    ):  # fmt: skip
        browser.size(width, 844)
        browser.colors(scheme)
        browser.go(site / page)
        assert violations(browser) == [], page


def test_the_tab_key_reaches_the_text_first_and_a_filter_narrows_the_rows(site: Path, browser: Browser) -> None:
    rows = "[...document.querySelectorAll('.filtered tbody tr')]"
    shown = f"{rows}.filter(one => !one.hidden).map(one => one.cells[0].textContent)"
    browser.go(site / "fabric.html")
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to content"
    browser.press("Enter")
    browser.wait("location.hash === '#main-text'")
    browser.press("Tab")
    assert browser.run("document.activeElement.closest('.commands') !== null")
    everything = browser.run(shown)
    browser.run("document.getElementById('filter').focus()")
    browser.type("gpu-1")
    assert {"Leaf-1", "GPU-10"}.isdisjoint(browser.run(shown))
    assert "GPU-1" in browser.run(shown)
    assert browser.run("location.search") == "?q=gpu-1"
    browser.run("location.search = '?odd=1'")
    browser.wait("document.readyState === 'complete' && document.getElementById('only-odd').checked")
    assert {"Leaf-2", "GPU-61", "GPU-69"} < set(browser.run(shown)) < set(everything)
    assert browser.said == []


def test_everything_is_shown_without_scripts(site: Path, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    shutil.copy(site / "assets" / "site.css", tmp_path / "assets")
    for page in ("fabric.html", "index.html", "queries.html"):
        shutil.copy(site / page, tmp_path)
        browser.go(tmp_path / page)
        rows, forms = (
            f"[...document.querySelectorAll('{one}')].map(one => one.offsetHeight)" for one in ("tbody tr", "form")
        )
        assert 0 not in browser.run(rows) != [], page
        assert set(browser.run(forms)) <= {0}, "what needs a script is not shown"


def _drawn(browser: Browser) -> set[str]:
    """Return the columns in the graph."""
    links = browser.run("[...document.querySelectorAll('#graph a')].map(one => one.getAttribute('href').slice(1))")
    return {one for one in links if one.count(".") > 1}


def test_the_graph_of_a_column_is_its_whole_path(site: Path, browser: Browser, built: Path) -> None:
    browser.go(site / "lineage.html", "metrics.leaf_hour.leaving_share")
    near = len(_drawn(browser))
    for name, value in (("rows", "none"), ("down", "0"), ("up", "99")):
        browser.run(f"document.getElementById('{name}').value = '{value}'")
    browser.run("document.getElementById('down').dispatchEvent(new Event('change'))")
    path = Columns(Project.open()).trace("metrics.leaf_hour", "leaving_share")
    expected = {str(node) for node in (*path.origins, *path.ends) if not node.block and node.column != ROWS}
    assert Node("raw.port_counters", "", "InOctets") in path.ends
    assert _drawn(browser) == expected
    assert near < len(expected)
    lit = browser.run("document.querySelectorAll('#graph path.lit').length")
    assert lit >= len(_drawn(browser)) - 1
    assert browser.run("document.querySelectorAll('#graph path.rows').length") == 0
    assert "raw.port_counters.InOctets" in browser.run("document.getElementById('steps').textContent")


def test_links_navigate_the_graph_and_row_deciding_columns_are_shown(site: Path, browser: Browser) -> None:
    click = (
        """document.querySelector('#graph a[href="#{}"]').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"""
    )
    browser.go(site / "lineage.html", "all")
    assert browser.run("document.querySelectorAll('#graph g').length") == len(list((site / "tables").iterdir()))
    browser.run(click.format("metrics.uplink_balance"))
    browser.wait("location.hash === '#metrics.uplink_balance' && document.querySelector('#graph .chosen') !== null")
    assert "metrics.uplink_balance.cov" in _drawn(browser)
    browser.run(click.format("metrics.uplink_balance.cov"))
    browser.wait("document.querySelector('#graph .at') !== null")
    assert "metrics.port_hour.port_class" in _drawn(browser)
    assert browser.run("document.querySelectorAll('#graph path.rows').length") > 3
    browser.run("document.querySelector('#steps a').click()")
    browser.wait("location.pathname.endsWith('/metrics.uplink_balance.html') && document.readyState === 'complete'")
    assert browser.run("document.querySelectorAll('.graph g').length") > 2
