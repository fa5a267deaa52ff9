"""Findings, published figures compared with computed ones, conservation of bytes, checks and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from warehouse.base.text import plural, size
from warehouse.reader.findings import headline, scope
from warehouse.report.charts import Bar, Bars, bars, shares
from warehouse.report.figure import Answer, Figure, Section, Values, distinct
from warehouse.report.svg import Key, Panel

VERDICTS = {"reproduced": "access", "differs": "out", "contradicted": "bad"}
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


def cards(rows: Sequence[Values]) -> list[dict[str, str]]:
    """Return the first findings, at most `MOST_CARDS`, with the number as text and the figure that shows it."""
    return [
        {
            **{name: str(row[name] or "") for name in ("severity", "what", "sentence", "so_what", "others")},
            "number": headline(
                str(row["kind"]),
                [str(row["where_"]), *filter(None, str(row["others"] or "").split(", "))],
                row["number"],
                str(row["unit"]),
            ),
            "scope": scope(str(row["kind"]), row["hour_utc"]),
            "figure": SHOWN_BY.get(str(row["kind"]), "findings"),
        }
        for row in rows[:MOST_CARDS]
    ]


def trust(answered: Iterable[tuple[Section, Sequence[tuple[Figure, Answer | None]]]]) -> list[tuple[str, str, str]]:
    """Return the figures that say how far the numbers can be trusted: scope, name and title, of the latest hour."""
    found: dict[str, tuple[str, str, str]] = {}
    for _, figures in answered:
        for figure, answer in figures:
            if (kind := figure.id or figure.query) in TRUST and answer and answer.rows:
                title = answer.text("title", figure)
                found.setdefault(kind, (figure.hour and scope("", figure.hour), figure.name, title))
    return [found[kind] for kind in TRUST if kind in found]


def found_title(rows: Sequence[Values]) -> str:
    """Return the numbers of warnings and notes."""
    warnings, notes = (sum(row["findings"] for row in rows if row["severity"] == one) for one in ("warning", "note"))
    said = [plural(warnings, "warning") if warnings else "No warning", plural(notes, "note") if notes else ""]
    return " and ".join(filter(None, said))


def _claims(rows: Sequence[Values]) -> list[Panel]:
    groups = []
    for source in distinct(rows, "source"):
        of = Counter(row["verdict"] for row in rows if row["source"] == source)
        parts = [
            Bar(100 * of[one] / of.total(), kind, f"{source}: {of[one]:,} of {of.total():,} {one}")
            for one, kind in VERDICTS.items()
            if of[one]
        ]
        groups.append(Bars(f"{source.removeprefix('figure/').removesuffix('.pdf')} ({of.total()})", parts))
    keys = [Key(kind, verdict) for verdict, kind in VERDICTS.items()]
    return shares(sorted(groups), "Published figures by source", keys, "% of its figures")


def _conservation(rows: Sequence[Values]) -> list[Panel]:
    shown = []
    for row in rows:
        tip = f"{row['switch']}: {size(row['in_bytes'])} in, {size(row['out_bytes'])} out"
        shown.append(Bars(str(row["switch"]), [Bar(row["apart_ppm"], "access", tip)], leaf=str(row["switch"])))
    return bars(shown, "bytes in and out apart, parts per million", "Bytes in against bytes out")


CONSERVATION = Figure(
    "conservation",
    "Bytes in against bytes out",
    "No leaf with traffic is loaded.",
    _conservation,
    'sql "FROM metrics.leaf_hour"',
)
OBSERVED = Figure("observed", "What was observed", "No file was loaded.")
"""Lines at the top of the page; no figure of its own."""
FINDINGS = Figure(
    "findings", "Findings", "Nothing found: no threshold of reference.finding_kinds is crossed.", further="findings"
)
FIGURES = (
    Figure(
        "claims",
        "Published figures beside ours",
        "The loaded files answer none of the published figures.",
        _claims,
        "sql -q claims",
    ),
    Figure("checks", "Checks", "The build has no checks.", further='sql "FROM meta.checks"'),
    Figure("failed-checks", "Checks that did not pass", "None.", further='sql "FROM meta.failures"', is_open=True),
)
LOADED = Section(
    "loaded",
    "What was loaded?",
    (Figure("files", "Files", "No file was loaded.", further='sql "FROM raw.files"'),),
)
