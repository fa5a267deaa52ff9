"""The pictures of the docs: `python -m tests.screenshots TARGET DIR [LOOK]` of a warehouse, by `make screenshots`.

Into LOOK go pages of the site of every kind, wide and as on a phone, light and dark: for looking at, not for the docs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser import CHROMIUM, WITHOUT, Browser, chromium
from warehouse.project.project import Project
from warehouse.report.report_file import write_report
from warehouse.site.site_folder import write_docs

REPORT = {
    "report-fabric": ("figure[id^=fabric]", 500),
    "report-ports": ("figure[id^=heatmap]", 460),
    "report-tasks": ("figure[id^=task-traffic]:has(+ figure) ~ figure[id^=task-traffic]", 470),
    "report-jobs": ("#job-durations", 480),
}
"""Parts of the report: where each begins, and how high it is."""

KINDS = (
    "index.html", "fabric.html", "fabric/*/Leaf-2.html", "fabric/*/spine-1.html", "fabric/*/GPU-1.html", "formats.html",
    "formats/zhejiang.port_counters.html", "tables/metrics.port_hour.html", "lineage.html", "queries.html",
    "docs/glossary.html",
)  # fmt: skip
"""A page of the site of each kind."""
WAYS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]
HEIGHT = 1600


def main(target: Path, folder: Path, look: Path | None = None) -> int:
    """Write the report and the site somewhere, and take pictures of them."""
    if CHROMIUM is None:
        sys.stderr.write(f"{WITHOUT}\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary_path:
        report, site = Path(temporary_path) / "report.html", Path(temporary_path) / "site"
        write_report(target, report, Project.open().report_folders)
        write_docs(site, Project.open(), target)
        with chromium(Path(temporary_path) / "profile") as browser:
            _of_report(browser, report, folder)
            _of_site(browser, site, folder)
            if look is not None:
                _of_kinds(browser, site, look)
    return 0


def _of_report(browser: Browser, report: Path, folder: Path) -> None:
    browser.size(900, 700)
    browser.colours("light")
    browser.go(report)
    browser.wait("document.documentElement.dataset.charts === 'drawn'")
    for name, (top, height) in REPORT.items():
        browser.picture(folder / f"{name}.png", height, top)
    browser.size(390, 700)
    browser.colours("dark")
    browser.go(report)
    browser.wait("document.documentElement.dataset.charts === 'drawn'")
    browser.picture(folder / "report-phone.png", 700, "#section-balance")


def _of_site(browser: Browser, site: Path, folder: Path) -> None:
    browser.size(900, 620)
    browser.colours("light")
    browser.go(site / "index.html")
    browser.picture(folder / "site-start.png")
    browser.type("/uplnik balnace")
    browser.wait("document.querySelectorAll('#search-found a').length > 3")
    browser.picture(folder / "site-search.png")
    browser.size(1100, 620)
    browser.go(next(site.glob("fabric/*/Leaf-2.html")))
    browser.picture(folder / "site-switch.png")
    browser.go(site / "lineage.html", "metrics.uplink_balance.cov")
    browser.picture(folder / "site-lineage.png")


def _of_kinds(browser: Browser, site: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in (next(site.glob(kind)) for kind in KINDS):
        for scheme, width in WAYS:
            browser.size(width, 900)
            browser.colours(scheme)
            browser.go(page)
            browser.picture(folder / f"site-{page.stem}-{width}-{scheme}.png", HEIGHT)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
