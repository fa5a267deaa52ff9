"""Largest network users: single servers, and the distribution of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.report.charts import Bar, Bars, Curve, bars, distribution
from warehouse.report.figure import Figure, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.words import count, number, size

BUSIEST = 10
"""Largest number of servers drawn; the table has all."""
DIRECTIONS = (Key("in", "received"), Key("out", "sent"))


def _servers_title(rows: Sequence[Values]) -> str:
    top = rows[0]
    return f"{top['server']} is busiest: {number(top['rx_gbps'])} Gb/s received, {number(top['tx_gbps'])} Gb/s sent"


def _servers_say(rows: Sequence[Values]) -> str:
    those = (
        f"The {BUSIEST} busiest of {count(len(rows), 'server')}" if len(rows) > BUSIEST else count(len(rows), "server")
    )
    return f"{those}; received and sent are side by side and not added. Only NICs on loaded switches count."


def _servers_chart(rows: Sequence[Values]) -> list[Panel]:
    shown = [
        Bars(
            str(row["server"]),
            [
                Bar(row["rx_gbps"], "in", f"{row['server']} received {number(row['rx_gbps'])} Gb/s"),
                Bar(row["tx_gbps"], "out", f"{row['server']} sent {number(row['tx_gbps'])} Gb/s"),
            ],
            server=str(row["server"]),
        )
        for row in rows[:BUSIEST]
    ]
    return bars(shown, "Gb/s, mean of the hour", "The busiest servers", keys=DIRECTIONS)


def _spread_title(rows: Sequence[Values]) -> str:
    received = sorted(row["rx_bytes"] for row in rows)
    return f"Half of the servers received less than {size(received[len(rows) // 2])}, the busiest {size(received[-1])}"


def _spread_says(rows: Sequence[Values]) -> str:
    sent = sorted(row["tx_bytes"] for row in rows)
    return (
        f"Bytes of {count(len(rows), 'server')} in the hour. Half of them sent less than {size(sent[len(rows) // 2])}, "
        f"the busiest {size(sent[-1])}."
    )


def _spread(rows: Sequence[Values]) -> list[Panel]:
    curves = [
        Curve("received", "in", [row["rx_bytes"] for row in rows]),
        Curve("sent", "out dash", [row["tx_bytes"] for row in rows]),
    ]
    return distribution(curves, "Bytes of servers", "bytes of the hour", "% of the servers", words=size)


def servers(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the single servers by rate."""
    return Figure(
        "servers",
        _servers_title,
        _servers_say,
        "The busiest servers",
        "No server with traffic is loaded.",
        _servers_chart,
        parameters,
        ("metrics.server_hour", "metrics.traffic_periods"),
        f"sql -q busiest-servers --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        place=place,
    )


def spread(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the distribution of bytes over servers."""
    return Figure(
        "servers",
        _spread_title,
        _spread_says,
        "How bytes of servers are distributed",
        "No server with traffic is loaded.",
        _spread,
        parameters,
        ("metrics.server_hour",),
        f"sql -q busiest-servers --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        "server-bytes",
        place,
    )
