"""Browse a dashboard and print what was drawn as JSON; runs in Superset's environment.

browse.py BASE_URL SLUG SCREENSHOTS SETTINGS: logs in, opens each tab and waits for its charts. Then sets the filters
of each of the SETTINGS, a JSON list of {"tab": ..., "filters": {name: [value, ...]}}, and reads the tab again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request, Response

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
"""The last flag blocks host lookups outside of this machine."""
WAIT = 600_000
"""Milliseconds until a step fails: a busy machine draws slowly."""
WIDTH, HEIGHT = 1440, 2600
"""High enough that all charts of a tab are visible and draw."""
DRAWN = """() => [...document.querySelectorAll('.dashboard-component-chart-holder')]
    .filter(box => box.offsetParent !== null).map(box => ({
        title: (box.querySelector('[data-test="editable-title"], .header-title') || {}).innerText || '',
        note: box.closest('.dashboard-markdown') ? box.innerText : '',
        busy: !!box.querySelector('.loading, [data-test="loading-indicator"]'),
        canvas: [...box.querySelectorAll('canvas')].some(one => {
            const seen = one.getContext('2d')?.getImageData(0, 0, one.width, one.height).data || []
            const colors = new Set()
            for (let at = 0; at < seen.length; at += 4) {
                if (seen[at + 3] > 0) colors.add(seen[at] << 16 | seen[at + 1] << 8 | seen[at + 2])
                if (colors.size > 3) return true
            }
            return false
        }),
        cells: box.querySelectorAll('tbody td').length,
        number: (box.querySelector('.header-line') || {}).innerText || '',
        bottom: box.getBoundingClientRect().bottom,
    }))"""
"""Content of each visible box: a note, a canvas with several colors, cells of a table, or a number."""


class Watch:
    """Chart answers, and requests to other hosts."""

    def __init__(self, page: Page) -> None:
        self.answers: list[dict[str, Any]] = []
        self.elsewhere: list[str] = []
        page.on("request", self._requested)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _requested(self, one: Request) -> None:
        where = urlsplit(one.url)
        if where.scheme not in ("data", "blob") and where.hostname != "127.0.0.1":
            self.elsewhere.append(one.url)

    def _failed(self, one: Request) -> None:
        if one.failure == "csp" and one.url in self.elsewhere:  # blocked by the page's own policy: nothing was sent
            self.elsewhere.remove(one.url)

    def _answered(self, response: Response) -> None:
        if "/api/v1/chart/data" not in response.url:
            return
        asked = json.loads(response.request.post_data or "{}")
        slice_id = json.loads(parse_qs(urlsplit(response.url).query).get("form_data", ["{}"])[0]).get("slice_id")
        if slice_id is None:  # values of a filter
            return
        said = response.json()
        for query, result in zip(asked.get("queries", []), said.get("result", [{}]), strict=False):
            self.answers.append(
                {
                    "slice": slice_id,
                    "status": response.status,
                    "rows": result.get("rowcount"),
                    "limit": query.get("row_limit"),
                    "filters": len(query.get("filters") or []),
                    "error": result.get("error") or said.get("errors"),
                    "data": result.get("data"),
                }
            )


def main() -> None:
    from playwright.sync_api import sync_playwright  # only here: the environment of the tests lacks playwright

    base, slug, pictures = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), headless=True, args=FLAGS
        )
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, service_workers="block")
        # the page's click log: its late anonymous answers would overwrite the login cookie
        context.route("**/superset/log/**", lambda one: one.abort())
        page = context.new_page()
        page.set_default_timeout(WAIT)
        watch = Watch(page)
        log_in(page, base)
        drawn, text = {}, ""
        for name in open_dashboard(page, base, slug):
            open_tab(page, name)
            drawn[name] = look(page)
            text += page.inner_text("body")
            bottom = max(box["bottom"] for box in drawn[name])
            page.mouse.move(5, 5)
            clip: Any = {"x": 0, "y": 0, "width": WIDTH, "height": min(HEIGHT, bottom + 24)}
            page.screenshot(clip=clip, path=pictures / f"superset-{name.lower()}.png")
        answers = list(watch.answers)
        settings = [setting(page, base, slug, watch, one) for one in json.loads(sys.argv[4])]
        browser.close()
    said = {"drawn": drawn, "answers": answers, "settings": settings, "elsewhere": watch.elsewhere, "text": text}
    print(json.dumps(said))


def log_in(page: Page, base: str) -> None:
    """Log in and wait for the answer, since late anonymous answers overwrite the cookie."""
    page.goto(f"{base}/login/")
    page.fill('input[name="username"], #username', "admin")
    page.fill('input[name="password"], #password', "admin")
    page.wait_for_load_state("networkidle")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")


def open_dashboard(page: Page, base: str, slug: str) -> list[str]:
    """Open a dashboard and return the names of its tabs."""
    page.goto(f"{base}/superset/dashboard/{slug}/?standalone=0")
    tabs = page.locator('.dashboard [role="tab"]')
    tabs.first.wait_for()
    return [name.strip() for name in tabs.all_inner_texts()]


def open_tab(page: Page, name: str) -> None:
    """Click on a tab."""
    page.locator('.dashboard [role="tab"]', has_text=re.compile(f"^{name}$")).first.click()
    page.wait_for_timeout(500)


def look(page: Page) -> list[dict[str, Any]]:
    """Wait until all charts of the tab are drawn, and return the content of its boxes."""
    found: list[dict[str, Any]] = []
    until = time.monotonic() + WAIT / 1000
    while time.monotonic() < until:
        page.wait_for_timeout(1500)
        page.wait_for_load_state("networkidle")
        found = page.evaluate(DRAWN)
        shown = ("note", "canvas", "cells", "number")
        if found and not any(box["busy"] or not any(box[how] for how in shown) for box in found):
            break
    page.wait_for_timeout(1500)  # bars are animated
    return found


def setting(page: Page, base: str, slug: str, watch: Watch, one: dict[str, Any]) -> dict[str, Any]:
    """Set filters; return the requests of the tab and its content."""
    open_dashboard(page, base, slug)
    open_tab(page, one["tab"])
    before = len(watch.answers)
    for name, values in one["filters"].items():
        choose(page, name, values)
    page.locator('[data-test="filter-bar__apply-button"]').click()
    answers: list[dict[str, Any]] = []
    until = time.monotonic() + WAIT / 1000
    while time.monotonic() < until:  # answers to requests before the filters may come late
        page.wait_for_timeout(1000)
        answers = [answer for answer in watch.answers[before:] if answer["filters"] == len(one["filters"])]
        charts = [box for box in page.evaluate(DRAWN) if not box["note"]]
        if len({answer["slice"] for answer in answers}) == len(charts):
            break
    return {**one, "drawn": look(page), "answers": answers}


def choose(page: Page, name: str, values: list[str]) -> None:
    """Choose values of a filter in the left bar."""
    label = f"NATIVE_FILTER-{name.lower().replace(' ', '-')}"
    box = page.locator(f'[data-test="filter-bar"] [role="combobox"][aria-label="{label}"]')
    for value in values:
        option = page.locator(f'.ant-select-item-option[title="{value}"]').first
        for attempt in range(8):  # a click closes an open list
            box.click()
            box.fill(value)
            page.wait_for_timeout(1500 * 2**attempt)
            if option.is_visible():
                option.click()
                break
            page.keyboard.press("Escape")
        else:
            raise LookupError(f"the filter {name} offers no {value}")
    page.keyboard.press("Escape")


if __name__ == "__main__":
    main()
