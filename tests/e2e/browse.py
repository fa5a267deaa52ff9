"""Looks at a dashboard as a person would, and says as JSON what was drawn; runs in Superset's environment.

browse.py BASE_URL SLUG SCREENSHOTS: logs in, opens each tab, scrolls through it, and waits for its charts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
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
"""The last one: no name but this machine's is looked up."""
WAIT = 120_000
"""Milliseconds; a busy machine draws slowly."""
SWITCH = "Leaf-1"
"""What the filter of the first tab is set to."""
DRAWN = """() => [...document.querySelectorAll('.dashboard-component-chart-holder')]
    .filter(box => box.offsetParent !== null).map(box => ({
        title: (box.querySelector('[data-test="editable-title"], .header-title') || {}).innerText || '',
        busy: !!box.querySelector('.loading, [data-test="loading-indicator"]'),
        canvas: [...box.querySelectorAll('canvas')].some(one => {
            const seen = one.getContext('2d')?.getImageData(0, 0, one.width, one.height).data || []
            const colours = new Set()
            for (let at = 0; at < seen.length; at += 4) {
                if (seen[at + 3] > 0) colours.add(seen[at] << 16 | seen[at + 1] << 8 | seen[at + 2])
                if (colours.size > 8) return true
            }
            return false
        }),
        cells: box.querySelectorAll('tbody td').length,
        number: (box.querySelector('.header-line') || {}).innerText || '',
    }))"""
"""What each visible box of the dashboard shows: a canvas of several colours, cells of a table, or a number."""


def main() -> None:
    from playwright.sync_api import sync_playwright  # here alone: the tests' own environment has none

    base, slug, pictures = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    pictures.mkdir(parents=True, exist_ok=True)
    answers: list[dict[str, object]] = []
    elsewhere: list[str] = []

    def requested(one: Request) -> None:
        where = urlsplit(one.url)
        if where.scheme not in ("data", "blob") and where.hostname != "127.0.0.1":
            elsewhere.append(one.url)

    def failed(one: Request) -> None:
        if one.failure == "csp" and one.url in elsewhere:  # the page's own policy: nothing was sent
            elsewhere.remove(one.url)

    def answered(response: Response) -> None:
        if "/api/v1/chart/data" not in response.url:
            return
        asked = json.loads(response.request.post_data or "{}")
        slice_id = json.loads(parse_qs(urlsplit(response.url).query).get("form_data", ["{}"])[0]).get("slice_id")
        said = response.json()
        for query, result in zip(asked.get("queries", []), said.get("result", [{}]), strict=False):
            answers.append(
                {
                    "slice": slice_id,
                    "status": response.status,
                    "rows": result.get("rowcount"),
                    "limit": query.get("row_limit"),
                    "error": result.get("error") or said.get("errors"),
                    "data": result.get("data"),
                }
            )

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), headless=True, args=FLAGS
        )
        context = browser.new_context(viewport={"width": 1500, "height": 1000}, service_workers="block")
        # the page's log of clicks: its late anonymous answers would overwrite the cookie of the login
        context.route("**/superset/log/**", lambda one: one.abort())
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("request", requested)
        page.on("requestfailed", failed)
        page.on("response", answered)
        log_in(page, base)
        page.goto(f"{base}/superset/dashboard/{slug}/?standalone=0")
        tabs = page.locator('.dashboard [role="tab"]')
        tabs.first.wait_for()
        names = [name.strip() for name in tabs.all_inner_texts()]
        drawn = {}
        for at, name in enumerate(names):
            tabs.nth(at).click()
            drawn[name] = look(page, pictures / f"superset-{name.lower()}.png")
        text = page.inner_text("body")
        shown = len(answers)
        tabs.first.click()
        choose(page, "NATIVE_FILTER-fabric-switch", SWITCH)
        for _ in range(60):  # charts that are out of sight ask when they come into it
            if len({answer["slice"] for answer in answers[shown:]} - {None}) >= len(drawn[names[0]]):
                break
            page.mouse.move(800, 700)
            page.mouse.wheel(0, 4000)
            page.wait_for_timeout(1000)
        browser.close()
    answers, filtered = answers[:shown], answers[shown:]
    print(json.dumps({"drawn": drawn, "answers": answers, "filtered": filtered, "elsewhere": elsewhere, "text": text}))


def log_in(page: Page, base: str) -> None:
    """Until the answer to the login is there: late anonymous answers overwrite the cookie of who leaves earlier."""
    page.goto(f"{base}/login/")
    page.fill('input[name="username"], #username', "admin")
    page.fill('input[name="password"], #password', "admin")
    page.wait_for_load_state("networkidle")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")


def look(page: Page, picture: Path) -> list[dict[str, object]]:
    """Scroll through a tab until all its charts are there, take a picture, and say what is in them."""
    page.wait_for_timeout(500)
    found: list[dict[str, object]] = []
    for _ in range(40):
        page.mouse.move(800, 700)
        page.mouse.wheel(0, 4000)
        page.wait_for_timeout(1500)
        page.wait_for_load_state("networkidle")
        found = page.evaluate(DRAWN)
        if found and not any(box["busy"] or not (box["canvas"] or box["cells"] or box["number"]) for box in found):
            break
    page.mouse.wheel(0, -20000)
    page.wait_for_timeout(1000)
    page.screenshot(path=str(picture), full_page=True)
    return found


def choose(page: Page, name: str, value: str) -> None:
    """Set a filter of the bar at the left and apply it."""
    box = page.locator(f'[data-test="filter-bar"] [role="combobox"][aria-label="{name}"]')
    box.click()
    box.fill(value)
    page.locator(f'.ant-select-item-option[title="{value}"]').first.click()
    page.keyboard.press("Escape")
    page.locator('[data-test="filter-bar__apply-button"]').click()


if __name__ == "__main__":
    main()
