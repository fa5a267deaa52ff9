"""Cost of the report and the site, on a built warehouse; runs in turn.

    python -m bench.report                     the real files (data/real or WAREHOUSE_REAL), else the sample
    python -m bench.report --data DIR --rounds 5
    python -m bench.report --target DIR        an existing warehouse
    python -m bench.report --other DIR/python  also another version's report, by its interpreter
    python -m bench.report --only report       nothing but the report

Ratios are to a program that opens the warehouse with the libraries that the report needs, and exits. With Chromium, the
first paint of the report is also measured, compared with the same bytes without the script.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.measure import Cost, machine, run, table
from bench.noop import default_data

START = "import duckdb, jinja2"
PAINTED = """new Promise(done => {
    const painted = () => performance.getEntriesByName('first-contentful-paint')[0];
    if (painted()) return done(painted().startTime);
    new PerformanceObserver((_, observer) => { if (painted()) { observer.disconnect(); done(painted().startTime); } })
        .observe({ type: 'paint', buffered: true });
})"""
PAINTS = 7
"""Loads of each page, in turn."""


def main() -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path)
    options.add_argument("--target", type=Path)
    options.add_argument("--other", metavar="PYTHON", type=Path)
    options.add_argument("--only", choices=("report",))
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="warehouse-bench-") as folder:
        scratch = Path(folder)
        ours = [sys.executable, "-m", "warehouse"]
        target, page = ["-t", str(given.target or scratch / "target")], str(scratch / "report.html")
        if given.target is None:
            run([*ours, "build", "-d", str(given.data or default_data(scratch)), *target, "--quiet"])
        cases = {START: [sys.executable, "-c", START], "warehouse report": [*ours, "report", page, *target]}
        if given.other:
            theirs = [str(given.other), "-P", "-m", "warehouse", "report", str(scratch / "other.html"), *target]
            cases["warehouse report, the other"] = theirs
        if not given.only:
            cases |= {
                "warehouse report --figures": [*ours, "report", page, *target, "--figures", str(scratch / "figures")],
                "warehouse docs": [*ours, "docs", str(scratch / "site"), *target],
            }
        costs: dict[str, list[Cost]] = {name: [] for name in cases}
        for _ in range(given.rounds):
            for name, command in cases.items():
                costs[name].append(run(command))
        sizes = [
            Path(page).stat().st_size,
            *(sum(one.stat().st_size for one in (scratch / name).rglob("*.*")) for name in ("figures", "site")),
        ]
        paints = first_paints(Path(page), scratch)
    print(machine())
    text = "report {:.1f} MB, its figures {:.1f} MB, site {:.1f} MB".format(*(size / 1e6 for size in sizes))
    print(f"{text}; {given.rounds} rounds in turn\n")
    table(costs, START, width=36)
    if paints:
        print(f"\nfirst paint: report {paints[0]:.0f} ms, the same bytes without a script {paints[1]:.0f} ms")
        print(f"             ratio {paints[0] / paints[1]:.2f}; medians of {PAINTS} loads in turn")
    return 0


def first_paints(page: Path, scratch: Path) -> tuple[float, float] | None:
    """Return the first paint of the page, and of the same bytes without a script, in ms; None without Chromium."""
    from tests.browser import CHROMIUM, chromium

    if CHROMIUM is None:
        return None
    plain = scratch / "plain.html"
    text = page.read_text(encoding="utf-8")
    plain.write_text(re.sub(r"<script.*?</script>", _comment, text, flags=re.DOTALL), encoding="utf-8")
    found: dict[Path, list[float]] = {page: [], plain: []}
    with chromium(scratch / "profile") as browser:
        browser.size(1280, 900)
        for _ in range(PAINTS):
            for one, times in found.items():
                browser.go(one)
                times.append(float(browser.run(PAINTED)))
    return median(found[page]), median(found[plain])


def _comment(script: re.Match[str]) -> str:
    """Return a comment of the same length."""
    return f"<!--{' ' * (len(script[0]) - 7)}-->"


if __name__ == "__main__":
    raise SystemExit(main())
