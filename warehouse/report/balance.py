"""How evenly uplinks share the traffic, and how much of it leaves a leaf."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import BLUE, ORANGE, ROW, chart, sized
from warehouse.report.words import count, distinct, foremost, number

LOCALITIES = ("same_leaf", "same_group", "across_groups")


def _balance(rows: Sequence[Values]) -> str:
    worst = foremost(rows)
    said = (
        f"The uplinks of {worst['switch']} share the traffic {worst['direction']} least evenly: a coefficient of "
        f"variation of {number(worst['cov_percent'])} % over {count(worst['uplinks'], 'uplink')}"
    )
    return said + (f", of which {worst['dead_uplinks']} is dead." if worst["dead_uplinks"] else ".")


def _balance_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_bar()
        .encode(
            x=altair.X("cov_percent:Q", title="coefficient of variation of bytes, %"),
            y=altair.Y("switch:N", sort=None, title=None),
            yOffset="direction:N",
            color=altair.Color("direction:N", scale=altair.Scale(domain=["in", "out"], range=[BLUE, ORANGE])),
            tooltip=["cluster:N", "switch:N", "direction:N", "cov_percent:Q", "max_over_mean:Q", "dead_uplinks:N"],
        ),
        2 * ROW * len(distinct(rows, "switch")),
    )


def _leaving(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return (
        f"Of what servers send into {top['switch']}, {number(top['leaving_percent'])} % goes up to spines, the most of "
        f"{count(len(rows), 'switch')}; the rest stays below the switch."
    )


def _leaving_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_bar(color=BLUE)
        .encode(
            x=altair.X("leaving_percent:Q", title="leaves the switch upwards, % of bytes from servers"),
            y=altair.Y("switch:N", sort=None, title=None),
            tooltip=["cluster:N", "switch:N", "leaving_percent:Q"],
        ),
        ROW * len(distinct(rows, "switch")),
    )


def _locality(rows: Sequence[Values]) -> str:
    last = [row for row in rows if row["hour_utc"] == rows[-1]["hour_utc"]]
    shares = ", ".join(f"{str(row['locality']).replace('_', ' ')} {number(row['packet_percent'])} %" for row in last)
    return f"Packets by the distance that they go, in the latest hour with flows ({last[0]['hour_utc']}): {shares}."


def _locality_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .mark_bar()
        .encode(
            x=altair.X("packet_percent:Q", title="packets, %", stack="zero"),
            y=altair.Y("hour_utc:N", title=None),
            color=altair.Color("locality:N", title=None, scale=altair.Scale(domain=list(LOCALITIES))),
            order=altair.Order("locality:N", sort="descending"),
            tooltip=["cluster:N", "hour_utc:N", "locality:N", "packet_percent:Q", "flows:Q"],
        ),
        2 * ROW * len(distinct(rows, "hour_utc")),
    )


BALANCE = Section(
    "balance",
    "Uplink balance",
    (
        Figure(
            "uplink-balance",
            "How unevenly uplinks share the traffic",
            _balance,
            "No uplinks with traffic are loaded.",
            _balance_chart,
        ),
    ),
)
LOCALITY = Section(
    "locality",
    "Locality",
    (
        Figure("leaving", "How much leaves a leaf", _leaving, "No leaf with traffic is loaded.", _leaving_chart),
        Figure("flow-locality", "How far flows go", _locality, "No flow tables are loaded.", _locality_chart),
    ),
)
