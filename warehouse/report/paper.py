"""Charts as files in the sizes of papers: SVG and PDF, one and two columns wide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from warehouse.report.theme import as_dict, for_paper

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from warehouse.report.figure import Answer

COLUMN, PAGE = 320, 672
"""3.33 and 7 inches, at 96 pixels an inch: one column, and two with the gap between them."""
WIDE = frozenset({"fabric", "heatmap", "iterations", "allocation"})
"""Queries whose charts go over two columns."""


def write_figures(folder: Path, answers: Iterable[Answer]) -> int:
    """Write each chart as `NAME.svg` and `NAME.pdf`; returns the number of files."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    files = 0
    for answer in answers:
        figure = answer.figure
        if figure.chart is None:
            continue
        spec = as_dict(figure.chart(answer.values), figure.says(answer.values))
        width = PAGE if figure.query in WIDE else COLUMN
        paper = json.dumps(for_paper(spec, width))
        printed = json.dumps(for_paper(spec, width * 3 // 4))  # the converter makes a pixel a point, 72 an inch
        (folder / f"{figure.name}.svg").write_text(vl_convert.vegalite_to_svg(paper), encoding="utf-8", newline="\n")
        (folder / f"{figure.name}.pdf").write_bytes(vl_convert.vegalite_to_pdf(printed))
        files += 2
    return files
