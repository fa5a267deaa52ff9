"""Findings, published figures compared with computed ones, conservation of bytes, checks and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warehouse.reader.findings import headline, scope
from warehouse.report.charts import Bar, Bars, bars, shares
from warehouse.report.figure import Answer, Figure, Section, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.words import count, distinct, first_names, foremost, number, size, total

VERDICTS = {"reproduced": "access", "differs": "out", "contradicted": "bad"}
VERBS = {"differs": "differ"}
"""Verdicts of several figures, where the verb is another."""
SHOWN_BY = {
    "uplink_silent": "links",
    "uplink_no_data": "links",
    "less_from_spine": "links",
    "servers_exchanged": "suspects",
    "server_cabled_elsewhere": "suspects",
    "uneven_leaf": "balance",
    "uneven_minutes": "uneven-minutes",
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


def cards(rows: Sequence[Values], tenants: Iterable[tuple[str, Values]] = ()) -> list[dict[str, str]]:
    """Return the first findings, at most `MOST_CARDS`, with the number as text and the figure that shows it.

    `tenants` are the groups of servers with their hours: the card of a group names its servers.
    """
    servers = {
        (hour, f"group of {row['first_server']}"): first_names(str(row["which"]).split()) for hour, row in tenants
    }
    return [
        {
            **{name: str(row[name] or "") for name in ("severity", "what", "sentence", "so_what", "others")},
            "number": headline(str(row["kind"]), _places(row), row["number"], str(row["unit"])),
            "scope": scope(str(row["kind"]), row["hour_utc"]),
            "figure": SHOWN_BY.get(str(row["kind"]), "findings"),
            "servers": servers.get((str(row["hour_utc"]), str(row["where_"])), ""),
        }
        for row in rows[:MOST_CARDS]
    ]


def _places(row: Values) -> list[str]:
    """Return the places of all findings of a kind."""
    return [str(row["where_"]), *(str(row["others"]).split(", ") if row["others"] else [])]


def trust(answered: Iterable[tuple[Section, Sequence[tuple[Figure, Answer | None]]]]) -> list[tuple[str, str, str]]:
    """Return the figures that say how far the numbers can be trusted: scope, name and title, of the latest hour."""
    found: dict[str, tuple[str, str, str]] = {}
    for _, figures in answered:
        for figure, answer in figures:
            if (kind := figure.id or figure.query) in TRUST and answer and answer.rows:
                found.setdefault(
                    kind, (figure.hour and scope("", figure.hour), figure.name, figure.title(answer.values))
                )
    return [found[kind] for kind in TRUST if kind in found]


def _found(rows: Sequence[Values]) -> str:
    warnings = total([row for row in rows if row["severity"] == "warning"], "findings")
    notes = total(rows, "findings") - warnings
    return (
        f"{count(warnings, 'warning') if warnings else 'No warning'} and {count(notes, 'note')}"
        if notes
        else count(warnings, "warning")
    )


def _claims_title(rows: Sequence[Values]) -> str:
    comparable = [row for row in rows if row["verdict"] != "no_data"]
    if not comparable:
        return "No published figure can be compared: the loaded files answer none"
    same = total([row for row in comparable if row["verdict"] == "reproduced"], "claims")
    return f"{same:,} of {count(total(comparable, 'claims'), 'published figure')} are reproduced"


def _claims_say(rows: Sequence[Values]) -> str:
    comparable = [row for row in rows if row["verdict"] != "no_data"]
    without = total(rows, "claims") - total(comparable, "claims")
    of = {verdict: total([row for row in rows if row["verdict"] == verdict], "claims") for verdict in VERDICTS}
    text = ", ".join(f"{many:,} {VERBS.get(verdict, verdict)}" for verdict, many in of.items() if many)
    more = " more" if comparable else ""
    rest = f"To test {without:,}{more}, files are needed that are not loaded." if without else ""
    return " ".join(filter(None, [f"{text[:1].upper()}{text[1:]}." if text else "", rest]))


def _claims(rows: Sequence[Values]) -> list[Panel]:
    comparable = [row for row in rows if row["verdict"] != "no_data"]
    groups = []
    for source in distinct(comparable, "source"):
        of = [row for row in comparable if row["source"] == source]
        whole = total(of, "claims")
        parts = [
            Bar(100 * row["claims"] / whole, kind, f"{source}: {row['claims']:,} of {whole:,} {verdict}")
            for verdict, kind in VERDICTS.items()
            for row in of
            if row["verdict"] == verdict
        ]
        groups.append(Bars(f"{source.removeprefix('figure/').removesuffix('.pdf')} ({whole})", parts))
    keys = [Key(kind, verdict) for verdict, kind in VERDICTS.items()]
    return shares(groups, "Published figures by source", keys, "% of its figures") if groups else []


def _conservation_title(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return f"Bytes in and out of each {top['kind']} agree within {number(top['apart_ppm'])} ppm ({top['switch']})"


def _conservation_says(rows: Sequence[Values]) -> str:
    storage = [row for row in rows if row["kind"] == "storage leaf"]
    text = f"Bytes into {count(len(rows), 'switch')} compared with bytes out of them, over the hour. "
    text += "A switch stores nothing, so the difference tests its counters (ppm: parts per million)."
    if not storage or len(storage) == len(rows):
        return text
    top = foremost(storage)
    return (
        f"{text} Storage leaves move fewer bytes and differ by up to {number(top['apart_ppm'])} ppm ({top['switch']})."
    )


def _conservation(rows: Sequence[Values]) -> list[Panel]:
    shown = [
        Bars(
            str(row["switch"]),
            [
                Bar(
                    row["apart_ppm"],
                    "access",
                    f"{row['switch']}: {size(row['in_bytes'])} in, {size(row['out_bytes'])} out",
                )
            ],
            leaf=str(row["switch"]),
        )
        for row in rows
    ]
    return bars(shown, "bytes in and out apart, parts per million", "Bytes in against bytes out")


def conservation(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the figure that tests the counters of each switch."""
    return Figure(
        "conservation",
        _conservation_title,
        _conservation_says,
        "Bytes in against bytes out",
        "No leaf with traffic is loaded.",
        _conservation,
        parameters,
        ("metrics.leaf_hour",),
        'sql "FROM metrics.leaf_hour"',
        place=place,
    )


def _checks_title(rows: Sequence[Values]) -> str:
    others = total(rows, "not_passed")
    return f"{count(total(rows, 'passed'), 'check')} passed, {f'{others:,} did not' if others else 'none failed'}"


def _checks_say(rows: Sequence[Values]) -> str:
    found = "The next table has those that did not pass." if total(rows, "not_passed") else "All hold."
    return f"A check is a condition on a table, counted once for all hours and parts of the table. {found}"


def _files_title(rows: Sequence[Values]) -> str:
    read = [row for row in rows if row["status"] in ("read", "partial")]
    text = f"{count(total(read, 'files'), 'file')} of {count(len(distinct(read, 'cluster')), 'cluster')} read"
    return f"{text}, {size(total(read, 'bytes'))}"


def _files_say(rows: Sequence[Values]) -> str:
    others = total([row for row in rows if row["status"] not in ("read", "partial")], "files")
    return f"Skipped or ignored: {count(others, 'file')}, with the reason in the table." if others else ""


OBSERVED = Figure("observed", lambda _: "", lambda _: "", "What was observed", "No file was loaded.")
"""Lines at the top of the page; no figure of its own."""
FINDINGS = Figure(
    "findings",
    _found,
    lambda rows: "Kinds and thresholds are those of warehouse findings.",
    "Findings",
    "Nothing found: no threshold of reference.finding_kinds is crossed.",
    tables=("metrics.findings", "reference.finding_kinds"),
    further="findings",
)
FIGURES = (
    Figure(
        "claims",
        _claims_title,
        _claims_say,
        "Published figures beside ours",
        "No published figure is listed.",
        _claims,
        tables=("metrics.published_claims",),
        further="sql -q claim-verdicts",
    ),
    Figure(
        "checks",
        _checks_title,
        _checks_say,
        "Checks",
        "The build has no checks.",
        is_folded=True,
        tables=("meta.checks",),
        further='sql "FROM meta.checks"',
    ),
    Figure(
        "failed-checks",
        lambda rows: f"{count(len({(row['model'], row['condition']) for row in rows}), 'check')} to look at",
        lambda rows: (
            "What each check says about its first failing rows, their table, and the hour or part of the table."
        ),
        "Checks that did not pass",
        "None.",
        is_open=True,
        tables=("meta.checks", "meta.failures"),
        further='sql "FROM meta.failures"',
    ),
    Figure(
        "claim-list",
        lambda rows: f"{count(len(rows), 'published figure')} beside our values",
        lambda rows: "Figures that disagree come first.",
        "Each published figure beside ours",
        "The loaded files answer none of them.",
        tables=("metrics.published_claims",),
        further="sql -q claims",
    ),
)
LOADED = Section(
    "loaded",
    "What was loaded?",
    (
        Figure(
            "files",
            _files_title,
            _files_say,
            "Files",
            "No file was loaded.",
            tables=("raw.files",),
            further='sql "FROM raw.files"',
        ),
    ),
)
