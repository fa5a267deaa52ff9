"""Chart files in paper sizes: SVG, one and two columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.report.svg import WIDTH
from warehouse.report.theme import for_paper
from warehouse.runner.reporter import Bar, with_progress
from warehouse.store.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.report.figure import Answer, Figure
    from warehouse.report.svg import Panel

COLUMN, PAGE = 320, 672
"""3.33 and 7 inches at 96 pixels per inch: one column, and two columns with their gap."""
BETWEEN = 16
"""Gap between panels, in SVG units."""


def write_figures(folder: Path, answers: Sequence[tuple[Figure, Answer]], bar: Bar | None = None) -> int:
    """Write each chart as `NAME.svg`; return the number of files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = 0
    for figure, answer in with_progress(answers, bar, lambda one: one[0].name):
        panels = figure.chart(answer.values) if figure.chart else []
        if not panels:
            continue
        with replacing(folder / f"{figure.name}.svg") as temporary:
            temporary.write_text(composed(panels), encoding="utf-8", newline="\n")
        files += 1
    return files


def composed(panels: Sequence[Panel]) -> str:
    """Return one SVG of panels: the legend, then one column, or two columns for several panels."""
    several = len(panels) > 2
    across = 2 * WIDTH + BETWEEN if several else WIDTH
    placed, y, row = [], 0.0, 0.0
    for at, panel in enumerate(panels):
        column = (at - 1) % 2 if several and at else 0
        if at and column == 0:
            y, row = y + row + BETWEEN, 0.0
        row = max(row, panel.height)
        placed.append(f'<g transform="translate({column * (WIDTH + BETWEEN)} {y:.1f})">{panel.body}</g>')
    width = PAGE if several else COLUMN
    high = y + row
    size = f'width="{width}" height="{high * width / across:.0f}"'
    label = next((panel.label for panel in panels[1:]), panels[0].label)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="-4 -4 {across + 8} {high + 8:.1f}"><title>{_escaped(label)}</title><style>{for_paper()}</style>'
        f'<rect x="-4" y="-4" width="{across + 8}" height="{high + 8:.1f}" fill="#ffffff"/>{"".join(placed)}</svg>\n'
    )


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)
