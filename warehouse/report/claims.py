"""What was published about the traces, and whether it comes out here."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import BLUE, GREY, ORANGE, RED, ROW, chart, sized
from warehouse.report.words import count, distinct, total

VERDICTS = ("reproduced", "differs", "contradicted", "no_data")


def _claims(rows: Sequence[Values]) -> str:
    of = {verdict: total([row for row in rows if row["verdict"] == verdict], "claims") for verdict in VERDICTS}
    said = ", ".join(f"{number:,} {verdict.replace('_', ' ')}" for verdict, number in of.items() if number)
    return f"{count(total(rows, 'claims'), 'claim')} of {count(len(distinct(rows, 'source')), 'source')}: {said}."


def _claims_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_bar()
        .encode(
            x=altair.X("claims:Q", title="claims"),
            y=altair.Y("source:N", title=None, sort=None),
            color=altair.Color(
                "verdict:N", title=None, scale=altair.Scale(domain=list(VERDICTS), range=[BLUE, ORANGE, RED, GREY])
            ),
            tooltip=["source:N", "verdict:N", "claims:Q"],
        ),
        ROW * len(distinct(rows, "source")) * 1.2,
    )


SECTION = Section(
    "claims",
    "Published claims",
    (
        Figure("claims", "By source", _claims, "No published claims are listed.", _claims_chart),
        Figure(
            "claim-list",
            "Those that the loaded data can answer",
            lambda rows: f"{count(len(rows), 'claim')}, each with the published value and ours.",
            "The loaded data answers none of them.",
        ),
    ),
)
