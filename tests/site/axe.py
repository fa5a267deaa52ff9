"""axe-core, Deque's accessibility rules, run in a browser page; the script is from PyPI."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser import Browser

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""WCAG 2.2 AA and axe-core's best practices, such as landmarks."""

MANY = (
    "main section:nth-of-type(n+10), main tr:nth-child(n+4), main li:nth-child(n+6), main pre *:nth-child(n+4), "
    "main svg:nth-child(n+4), svg :nth-child(n+12), figure[hidden]"
)
"""Most of many similar queries, rows, items, panels, marks and words of SQL, and earlier hours: they only take time."""


def violations(browser: Browser) -> list[str]:
    """Return the violations on the open page: rule and first elements."""
    package = pytest.importorskip("axe_playwright_python", reason="no axe-core: pip install axe-playwright-python")
    script = (resources.files(package) / "axe.min.js").read_text(encoding="utf-8")
    browser.run(f"document.querySelectorAll('{MANY}').forEach(one => one.remove())")
    browser.run(f"{script};0")
    found = browser.run(
        f"axe.run(document, {{runOnly: {TAGS}, resultTypes: ['violations']}}).then(one => one.violations.map("
        "rule => [rule.id, rule.help, rule.nodes.length, rule.nodes.slice(0, 3).map(node => "
        "node.html.slice(0, 160) + ' | ' + node.failureSummary.split('\\n')[1])]))"
    )
    return [f"{rule} ({count}): {said}: {nodes}" for rule, said, count, nodes in found]
