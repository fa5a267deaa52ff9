"""Figures of the report, each a query of `sql/report/` with its texts and a chart of its rows, and the page of them.

The page is one self-contained HTML file. Charts are inline SVG, which a browser shows without a script. The script
filters, shows tooltips and offers downloads. Text from data is escaped, and a content security policy forbids every
request.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from warehouse.base.startup import duckdb
from warehouse.base.text import natural, plural
from warehouse.reader.citations import Citation, cited_answer
from warehouse.reader.findings import Card, scope
from warehouse.reader.guard import check_read_only
from warehouse.reader.named_queries import Query, bind, find_query, tables_of
from warehouse.reader.query_errors import from_engine
from warehouse.reader.result import Column, Row
from warehouse.report.charts import Panel, Values

TEXTS = ("title", "conclusion")
"""Columns with texts about all rows. A second figure of a query has a prefix: `spines_title`."""
MOST_OPEN = 16
"""Longest table that is shown open in place of a chart."""
SHOWN_BY = {
    "uplink_silent": "links",
    "uplink_no_data": "links",
    "less_from_spine": "links",
    "servers_exchanged": "suspects",
    "server_cabled_elsewhere": "suspects",
    "uneven_leaf": "balance",
    "uneven_minutes": "balance",
    "peer_differs": "suspects",
    "spine_out_of_line": "spines",
    "rails_differ": "servers",
    "nics_at_line_rate": "ports",
    "job_pauses": "jobs-in-hour",
    "one_way_servers": "servers",
    "idle_servers": "servers",
    "fullest_link": "ports",
    "observation": "coverage",
    "job_trades_most": "jobs-in-hour",
    "claims_differ": "claims",
}
"""The figure of each kind of finding."""
MOST_CARDS = 12
TRUST = ("checks", "conservation", "coverage")
"""Figures whose titles say how far the numbers can be trusted."""
LIGHT = {
    "ground": "#ffffff", "ink": "#1b1b1b", "soft": "#595959", "line": "#c9c9c9", "box": "#f4f4f4", "link": "#00538a",
    "in": "#009E73", "out": "#E69F00", "access": "#0072B2", "uplink": "#CC79A7", "bad": "#D55E00", "none": "#8a8a8a",
    "u0": "#f2f2f2",
    "u1": "#d7e6f4", "u2": "#a6cce5", "u3": "#63a7d3", "u4": "#2d7fb9", "u5": "#0d5296", "u6": "#06264d",
}  # fmt: skip
"""Colors by class of a mark, of the color-blind safe palette of Okabe and Ito; paper has them, too."""
DARK = LIGHT | {
    "ground": "#16181b", "ink": "#e6e6e6", "soft": "#adadad", "line": "#43484e", "box": "#202327", "link": "#7cc4f0",
    "in": "#1fb98c", "out": "#E69F00", "access": "#4aa3dd", "uplink": "#d98fba", "bad": "#f0803a",
    "u0": "#24272b",
    "u1": "#15324f", "u2": "#1b4f7d", "u3": "#2877b0", "u4": "#5aa5d8", "u5": "#9fcdec", "u6": "#eaf5fd",
}  # fmt: skip
"""Dark mode; here larger values are lighter."""
MARKS = (
    "svg{font:11.5px system-ui,'DejaVu Sans',sans-serif;fill:var(--ink);overflow:visible}"
    "svg .soft{fill:var(--soft)}svg .b{font-weight:600}svg .e{text-anchor:end}svg .m{text-anchor:middle}"
    "svg .grid{stroke:var(--line);stroke-width:1;fill:none}svg .axis{stroke:var(--soft);stroke-width:1;fill:none}"
    "svg .hatch{stroke:var(--soft);stroke-width:1;fill:none;opacity:.6}"
    "svg .line{fill:none;stroke-width:2;stroke-linejoin:round}svg .dash{stroke-dasharray:5 3}"
    "svg .edge{fill:none;stroke:var(--soft);stroke-width:.75}svg .cross{stroke:var(--bad);stroke-width:2.5;fill:none}"
    "svg .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:4 3;fill:none}"
    "svg .lost{fill:var(--ink)}svg .onlost{fill:var(--ground)}"
    "svg .v{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}"
    "svg .p{stroke:var(--soft);stroke-width:.5}"
    + "".join(
        f"svg .{name}{{fill:var(--{name})}}svg .line.{name},svg .line.s-{name}{{fill:none;stroke:var(--{name})}}"
        for name in ("in", "out", "access", "uplink", "bad", "none")
    )
    + "".join(f"svg .u{at}{{fill:var(--u{at})}}" for at in range(7))
)
"""CSS of the marks of all charts."""


@dataclass(frozen=True)
class Figure:
    """Query and chart of a figure. Its title and conclusion are columns of the query, equal in all rows."""

    query: str
    """Name of the file in `sql/report/`."""
    subject: str
    """Subject in a few words: the title if there are no rows."""
    without: str
    """Line shown if the query returns no row or the chart has nothing to draw."""
    chart: Callable[[Sequence[Values]], list[Panel]] | None = None
    """Chart of the rows; None shows the table only."""
    further: str = ""
    """Command that shows more, without `warehouse`; a named query gets the hour."""
    id: str = ""
    """Name of the figure if several figures share a query, and with `_` the prefix of its texts."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    """Suffix for another cluster or an earlier hour; empty for the first."""
    is_open: bool = False
    """True to show the table although it is long: its box scrolls."""
    each: str = ""
    """`hour` for a figure of each cluster and hour, `cluster` for one of each cluster; empty for a single one."""

    @property
    def name(self) -> str:
        """Id in the page and file name."""
        return "-".join(filter(None, [self.id or self.query, plain(self.place)]))

    @property
    def hour(self) -> str:
        """Hour of the figure, empty if it has none."""
        return self.parameters.get("hour", "")

    @property
    def command(self) -> str:
        """Command that shows more, for the figure's hour."""
        is_named = self.further.startswith("sql -q ") and self.hour
        return f"{self.further} --hour {self.hour[:13].replace(' ', 'T')}:00" if is_named else self.further


@dataclass(frozen=True)
class Section:
    """Figures that answer one question."""

    name: str
    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Answer:
    """A figure with the rows of its query."""

    query: Query
    columns: tuple[str, ...]
    """Columns of the table: all but the texts about all rows."""
    numeric: tuple[bool, ...]
    rows: list[Row]
    """Rows as exact text, as the table shows them."""
    citation: Citation
    texts: Mapping[str, str | None] = field(default_factory=dict)

    def text(self, name: str, of: Figure) -> str:
        """Return the title or the conclusion of a figure of this query."""
        return self.texts.get(f"{of.id}_{name}") or self.texts.get(name) or ""

    @property
    def tables(self) -> list[str]:
        """Tables that the query reads."""
        return sorted(tables_of(self.query.sql))

    @property
    def values(self) -> list[Values]:
        """Rows as values, for the chart."""
        return [
            {
                name: _value(text, number=number)
                for name, text, number in zip(self.columns, row, self.numeric, strict=True)
            }
            for row in self.rows
        ]


def ask(
    connection: duckdb.DuckDBPyConnection, target: Path, figure: Figure, queries: Mapping[str, Query]
) -> Answer | None:
    """Run a figure's query; return None if the warehouse lacks a table of the query.

    Raises
    ------
    QueryError
        When the file holds no query, or the query fails.
    """
    query = find_query(figure.query, queries)
    text = query.sql.strip()
    try:
        [statement] = check_read_only(connection, text)
        citation, columns, rows = cited_answer(connection, target, statement, bind(query, figure.parameters))
    except duckdb.CatalogException:  # a custom project without the shipped models
        return None
    except duckdb.Error as error:
        raise from_engine(error, text, connection, path=query.path) from error
    names = [column.name for column in columns]
    texts = _texts(names)
    shown = [at for at, name in enumerate(names) if name not in texts]
    return Answer(
        query,
        tuple(names[at] for at in shown),
        tuple(_is_number(columns[at]) for at in shown),
        [tuple(row[at] for at in shown) for row in rows],
        citation,
        {name: rows[0][at] for at, name in enumerate(names) if rows and name in texts},
    )


One = tuple[Figure, Answer | None]
Answered = Sequence[tuple[Section, Sequence[One]]]


def page(
    build: Mapping[str, str], cards: Sequence[Card] | None, found: One, answered: Answered, *, kept: bool, site: str,
    left_out: int, synthetic: bool = False, observed: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the report as HTML.

    Parameters
    ----------
    build
        Id, time, version and engine of the build.
    cards
        The findings by kind, for the first screen; None if the build did not look for any.
    found
        The findings as a figure, with their data.
    answered
        Each section with its figures and their answers; None if a table is missing.
    kept
        True if the citations are stored for `warehouse cite`.
    site
        URL of the site with the table pages; empty if there is none.
    left_out
        Number of hours without figures.
    synthetic
        True if the data is the synthetic sample: the header says so.
    observed
        What the loaded files observed, in a few lines.
    """
    # Strict, so that a misspelled name in a template is an error and no empty text.
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    figures = [one for _, figures_of in answered for one in figures_of]
    count = Counter(one.severity for card in cards or () for one in (card.first, *card.others))
    said = [plural(count[one], one) for one in ("warning", "note") if count[one]]
    title = " and ".join(said if count["warning"] else ["No warning", *said])
    hours = sorted({figure.hour for figure, answer in figures if figure.hour and answer}, reverse=True)
    latest = hours[0] if hours else ""
    sections = [(section, [_shown(*one, latest=latest) for one in of]) for section, of in answered]
    return environment.from_string(_text("page.html.j2")).render(
        build=build,
        found={**_shown(*found, latest=""), "open": False, "title": title},
        looked=cards is not None,
        cards=(cards or ())[:MOST_CARDS],
        shown_by=SHOWN_BY,
        synthetic=synthetic,
        trust=trust(answered),
        warnings=count["warning"],
        observed=observed,
        # Sections without an answer go to the end; the sort keeps the order of the others.
        sections=sorted(sections, key=lambda one: all(shown["answer"] is None for shown in one[1])),
        hours=hours,
        leaves=sorted(_names(figures, "ports", "switch"), key=natural),
        servers=sorted(_names(figures, "servers", "server"), key=natural),
        kept=kept,
        site=site.rstrip("/") + "/" if site else "",
        # Layers whose tables have a page in the site.
        pages=("metrics", "staging", "topology"),
        left_out=left_out,
        style=Markup(_style()),  # noqa: S704 - texts of this package
        # Converters ignore variables, so an image for a paper has the light colors themselves.
        paper=Markup(re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], MARKS)),  # noqa: S704
        script=Markup(_text("page.js")),  # noqa: S704
    ) + "\n"  # fmt: skip


def _shown(figure: Figure, answer: Answer | None, *, latest: str) -> dict[str, Any]:
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


def trust(answered: Answered) -> list[tuple[str, str, str]]:
    """Return the figures that say how far the numbers can be trusted: scope, name and title, of the latest hour."""
    found: dict[str, tuple[str, str, str]] = {}
    for _, figures in answered:
        for figure, answer in figures:
            if (kind := figure.id or figure.query) in TRUST and answer and answer.rows:
                title = answer.text("title", figure)
                found.setdefault(kind, (figure.hour and scope("", figure.hour), figure.name, title))
    return [found[kind] for kind in TRUST if kind in found]


def _names(figures: Iterable[One], query: str, column: str) -> set[str]:
    return {
        str(row[column])
        for figure, answer in figures
        if answer and figure.query == query
        for row in answer.values
        if row[column]
    }


def _style() -> str:
    light, dark = ("".join(f"--{name}:{color};" for name, color in colors.items()) for colors in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{MARKS}\n{_text('page.css')}"
    )


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def plain(text: str) -> str:
    """Return text for file names and anchors: characters other than letters, digits, `.` and `_` become `-`."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._") else "-" for sign in text).strip("-.")


def _texts(columns: Sequence[str]) -> set[str]:
    """Return the columns with texts about all rows: a title with its conclusion.

    >>> sorted(_texts(["job_title", "title", "conclusion", "spines_title", "spines_conclusion"]))
    ['conclusion', 'spines_conclusion', 'spines_title', 'title']
    """
    title, conclusion = ({one.removesuffix(text) for one in columns if one.endswith(text)} for text in TEXTS)
    return {f"{prefix}{text}" for prefix in title & conclusion for text in TEXTS}


def _is_number(column: Column) -> bool:
    """Return True for numbers and lists of numbers."""
    is_list = column.type.endswith("[]") and not column.type.startswith(("VARCHAR", "TIMESTAMP", "BOOLEAN", "STRUCT"))
    return is_list or column.kind == "number"


def _value(text: str | None, *, number: bool) -> object:
    if text is None or not number:
        return text
    try:
        # From the exact text, so that chart and table show one number.
        return json.loads(text.replace("NULL", "null"))  # a list, as DuckDB shows it
    except ValueError:
        return None  # NaN, infinity
