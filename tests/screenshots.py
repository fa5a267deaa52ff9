"""Screenshots for the docs: `python -m tests.screenshots TARGET DIR` for a warehouse, by `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser import CHROMIUM, WITHOUT, Browser, chromium
from warehouse.project.project import Project
from warehouse.report.report_file import write_report
from warehouse.site.site_folder import write_docs

REPORT = {
    "report-findings": ("header", "#findings"),
    "report-links": ("#links", "#links"),
    "report-ports": ("#ports", "#ports"),
    "report-observation": ("#section-complete", "#minutes"),
    "report-tasks": ("#section-tasks", "#task-traffic"),
    "report-jobs": ("#section-jobs", "#section-jobs"),
}
"""Parts of the report: first and last element."""


def main(target: Path, folder: Path) -> int:
    """Write the report and the site to a temporary folder and take screenshots."""
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
    return 0


def _of_report(browser: Browser, report: Path, folder: Path) -> None:
    browser.size(1200, 800)
    browser.colors("light")
    browser.go(report)
    for name, (top, bottom) in REPORT.items():
        browser.picture(folder / f"{name}.png", _height(browser, top, bottom), top)
    browser.size(390, 844)
    browser.colors("dark")
    browser.go(report)
    browser.picture(folder / "report-phone.png", _height(browser, "#section-look", "#links"), "#section-look")


def _height(browser: Browser, top: str, bottom: str) -> int:
    """Return the pixels from the top of one element to the end of another."""
    box = "document.querySelector({!r}).getBoundingClientRect()"
    return int(browser.run(f"{box.format(bottom)}.bottom - {box.format(top)}.top")) + 12


def _of_site(browser: Browser, site: Path, folder: Path) -> None:
    browser.size(900, 620)
    browser.colors("light")
    browser.go(site / "index.html")
    start = _height(browser, "body", ".cards > li:nth-child(4)")
    browser.picture(folder / "site-start.png", start)
    browser.size(900, 1300)  # the list of the search is at most 70 % of it
    browser.type("/uplnik balnace")
    browser.wait("document.querySelectorAll('#search-found a').length > 3")
    browser.picture(folder / "site-search.png", start)
    browser.size(1100, 1200)
    browser.go(site / "fabric.html")
    browser.picture(folder / "site-fabric.png", _height(browser, "body", ".table"))
    browser.go(site / "lineage.html", "metrics.uplink_balance.cov")
    browser.picture(folder / "site-lineage.png", _height(browser, "body", ".graph"))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
