"""HTML of the report: one self-contained file.

Charts are inline SVG, which a browser shows without a script. The script filters, shows tooltips and offers
downloads. Text from data is escaped, and a content security policy forbids every request.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from warehouse.base.text import natural
from warehouse.reader.findings import NOT_JUDGED
from warehouse.report.theme import DARK, LIGHT, MARKS, for_paper, variables
from warehouse.report.trust_figures import cards, found_title, trust

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.report.figure import Answer, Figure, Section

    One = tuple[Figure, Answer | None]
    Answered = Sequence[tuple[Section, Sequence[One]]]

MOST_OPEN = 16
"""Longest table that is shown open in place of a chart."""
PAGES = ("metrics", "staging", "topology")
"""Layers whose tables have a page in the site."""


def page(
    build: tuple[Any, ...], found: One, answered: Answered, *, kept: bool, site: str, left_out: int,
    synthetic: bool = False, observed: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the report as HTML.

    Parameters
    ----------
    build
        Id, time, version and engine of the build.
    found
        The findings, for the first screen.
    answered
        Each section with its figures and their answers; None if a table is missing.
    kept
        True if the citations are stored for `warehouse cite`.
    site
        URL of the site with the table pages; empty if there is none.
    left_out
        Number of hours without figures.
    synthetic
        True if the data is the synthetic sample: the header says so, and no card judges published figures.
    observed
        What the loaded files observed, in a few lines.
    """
    import jinja2
    from markupsafe import Markup

    # Strict, so that a misspelled name in a template is an error and no empty text.
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    figures = [one for _, figures_of in answered for one in figures_of]
    rows = found[1].values if found[1] else []
    judged = [row for row in rows if not (synthetic and row["kind"] in NOT_JUDGED)]
    hours = sorted({figure.hour for figure, answer in figures if figure.hour and answer}, reverse=True)
    latest = hours[0] if hours else ""
    sections = [(section, [_shown(*one, latest=latest) for one in of]) for section, of in answered]
    return environment.from_string(_text("page.html.j2")).render(
        build=dict(zip(("id", "published", "version", "engine"), build, strict=True)),
        found={**_shown(*found, latest=""), "open": False, "title": found_title(judged)},
        looked=found[1] is not None,
        cards=cards(judged),
        synthetic=synthetic,
        trust=trust(answered),
        warnings=any(row["severity"] == "warning" for row in rows),
        observed=observed,
        # Sections without an answer go to the end; the sort keeps the order of the others.
        sections=sorted(sections, key=lambda one: all(shown["answer"] is None for shown in one[1])),
        hours=hours,
        leaves=sorted(_names(figures, "ports", "switch"), key=natural),
        servers=sorted(_names(figures, "servers", "server"), key=natural),
        kept=kept,
        site=site.rstrip("/") + "/" if site else "",
        pages=PAGES,
        left_out=left_out,
        style=Markup(_style()),  # noqa: S704 - texts of this package
        paper=Markup(for_paper()),  # noqa: S704
        script=Markup(_text("page.js")),  # noqa: S704
    ) + "\n"  # fmt: skip


def _shown(figure: Figure, answer: Answer | None, *, latest: str) -> dict[str, Any]:
    from markupsafe import Markup

    if answer is None or not answer.rows:
        return {"figure": figure, "answer": None, "title": figure.subject, "wide": False, "hidden": False}
    values = answer.values
    panels = figure.chart(values) if figure.chart else []
    return {
        "figure": figure,
        "answer": answer,
        "title": answer.text("title", figure) or answer.query.about.rstrip("."),
        "says": answer.text("conclusion", figure),
        "panels": [Markup(panel.svg()) for panel in panels],  # noqa: S704 - escaped where it is drawn
        # The page shows one hour at a time, the latest first; its script shows the others.
        "hidden": bool(figure.place and figure.hour and figure.hour != latest),
        "wide": figure.chart is None or len(panels) > 2,
        "open": figure.chart is None and (figure.is_open or len(answer.rows) <= MOST_OPEN),
        "whole": len(answer.rows) <= MOST_OPEN,
        "parameters": [f"${name} = {value}" for name, value in answer.citation.parameters.items()],
    }


def _names(figures: Iterable[One], query: str, column: str) -> set[str]:
    return {
        str(row[column])
        for figure, answer in figures
        if answer and figure.query == query
        for row in answer.values
        if row[column]
    }


def _style() -> str:
    light, dark = variables(LIGHT), variables(DARK)
    return (
        f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{MARKS}\n{_text('page.css')}"
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
