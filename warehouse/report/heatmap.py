"""How full each port was in each minute, drawn from one list a port."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from warehouse.report.figure import Figure, Section, Spec, Values
from warehouse.report.theme import SEQUENTIAL, chart, sized
from warehouse.report.words import count, distinct, foremost, number

LOWEST, HIGHEST = 160, 900
"""Pixels of the whole; where there are more ports, it is as high as they need."""


def _says(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    return (
        f"{count(len(rows), 'port')} of {count(len(distinct(rows, 'switch')), 'switch')} that were seen, a line each, "
        f"in the hour from {rows[0]['hour_utc']}. The fullest minute is one of {top['switch']} {top['port']}, "
        f"{number(top['fullest_percent'])} % of its line rate."
    )


def _chart(rows: Sequence[Values]) -> Spec:
    import altair

    starts, at = {}, 0
    for switch, found in groupby(rows, key=lambda row: str(row["switch"])):
        starts[at] = switch
        at += len(list(found))
    data = [
        {"row": at, "port": f"{row['switch']} {row['port']}", "p": row["percent_by_minute"]}
        for at, row in enumerate(rows)
    ]
    hour, no_grid = altair.Scale(domain=[0, 60], nice=False), altair.Axis(grid=False)
    named = json.dumps({str(at): switch for at, switch in starts.items()})
    return sized(
        chart(data)
        .transform_flatten(["p"], ["percent"])
        .transform_window(minute="row_number()", groupby=["row"])
        .transform_calculate(m="datum.minute - 1", end="min(datum.minute + 0.05, 60)", next="datum.row + 1")
        .transform_filter("datum.percent !== null")
        .mark_rect()
        .encode(
            x=altair.X("m:Q", title="minute of the hour", axis=no_grid, scale=hour),
            x2="end:Q",
            y=altair.Y(
                "row:Q",
                title=None,
                scale=altair.Scale(domain=[0, len(rows)], reverse=True, nice=False),
                axis=altair.Axis(
                    values=list(starts), labelExpr=f"{named}[datum.value]", labelBaseline="top", grid=False
                ),
            ),
            y2="next:Q",
            color=altair.Color(
                "percent:Q", title="% of line rate", scale=altair.Scale(scheme=SEQUENTIAL, type="sqrt", domainMin=0)
            ),
            tooltip=["port:N", "m:Q", "percent:Q"],
        ),
        _height(len(rows)),
    )


def _height(ports: int) -> int:
    """Pixels: a whole number a port, so that no colour is mixed of two."""
    return ports * max(1, min(HIGHEST // ports, max(2, -(-LOWEST // ports))))


def section(clusters: Sequence[str]) -> Section:
    """A heatmap a cluster."""
    return Section(
        "heatmap",
        "Ports by the minute",
        tuple(
            Figure(
                "heatmap",
                f"Utilisation of ports of {cluster}",
                _says,
                f"No port counters of {cluster} are loaded.",
                _chart,
                {"cluster": cluster},
                canvas=True,
            )
            for cluster in clusters
        ),
        "No port counters are loaded.",
    )
