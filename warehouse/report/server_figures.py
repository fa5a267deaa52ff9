"""The busiest servers, and those that pulse together."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import BLUE, GREY, ORANGE, ROW, chart, sized
from warehouse.report.words import count, number


def _busiest(rows: Sequence[Values]) -> str:
    top = rows[0]
    return (
        f"{top['server']} moved most: {number(top['rx_gbps'])} Gb/s received and {number(top['tx_gbps'])} Gb/s sent, "
        f"the mean of the hour over {count(top['nics'], 'NIC')} seen. Only NICs on loaded switches count."
    )


def _busiest_chart(rows: Sequence[Values]) -> Spec:
    import altair

    return sized(
        chart(rows)
        .transform_fold(["rx_gbps", "tx_gbps"], ["way", "gbps"])
        .transform_calculate(direction="datum.way === 'rx_gbps' ? 'received' : 'sent'")
        .mark_bar()
        .encode(
            x=altair.X("gbps:Q", title="Gb/s, mean of the hour"),
            y=altair.Y("server:N", sort=None, title=None),
            color=altair.Color(
                "direction:N", title=None, scale=altair.Scale(domain=["received", "sent"], range=[BLUE, ORANGE])
            ),
            tooltip=["server:N", "leaf_group:N", "direction:N", "gbps:Q", "rails_used:Q", "period_seconds:Q"],
        ),
        ROW * len(rows),
    )


def _pulsing(rows: Sequence[Values]) -> str:
    timed = [row for row in rows if row["period_seconds"] is not None]
    said = f"{count(len(rows), 'group')} of servers pulse together; "
    if not timed:
        return said + "of none is the period resolved."
    periods = ", ".join(f"{row['servers']} servers every {number(row['period_seconds'])} s" for row in timed[:5])
    return said + f"of {len(timed)} the period is resolved: {periods}{' and more' if len(timed) > 5 else ''}."


def _pulsing_chart(rows: Sequence[Values]) -> Spec:
    import altair

    named = [
        {
            **row,
            "name": f"group {row['group']}",
            "label": "no period" if row["period_seconds"] is None else f"every {row['period_seconds']} s",
        }
        for row in rows
    ]
    bars = chart(named).encode(
        x=altair.X("servers:Q", title="servers", axis=altair.Axis(tickMinStep=1)),
        y=altair.Y("name:N", sort=None, title=None),
        tooltip=["name:N", "servers:Q", "period_seconds:Q", "which:N"],
    )
    colour = altair.condition("datum.period_seconds === null", altair.value(GREY), altair.value(BLUE))
    top = max(row["servers"] for row in rows)
    bars = bars.encode(x=altair.X("servers:Q", scale=altair.Scale(domain=[0, top * 1.5], nice=False)))
    return sized(
        altair.layer(
            bars.mark_bar().encode(color=colour),
            bars.mark_text(align="left", dx=4, color="currentColor").encode(text="label:N"),
        ),
        ROW * len(rows) * 1.2,
    )


SECTION = Section(
    "servers",
    "Servers",
    (
        Figure("servers", "The busiest", _busiest, "No server with traffic is loaded.", _busiest_chart),
        Figure("pulsing", "Those that pulse together", _pulsing, "No servers pulse together.", _pulsing_chart),
    ),
)
