"""Largest network users: groups of servers with correlated traffic, single servers, distribution of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.report.charts import Bar, Bars, Curve, bars, distribution
from warehouse.report.figure import Figure, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.words import count, first_names, number, percent, size

MOST = 10
"""Largest number of groups drawn; the table has all."""
BUSIEST = 10
"""Largest number of servers drawn; the table has all."""
DIRECTIONS = (Key("in", "received"), Key("out", "sent"))


def _groups(rows: Sequence[Values]) -> list[Values]:
    return [row for row in rows if row["pulses_together"] == "true"]


def _tenants_title(rows: Sequence[Values]) -> str:
    groups = _groups(rows)
    if not groups:
        return "No servers pulse together: no tenant can be identified"
    top = groups[0]
    servers = f"{count(top['servers'], 'server')} ({first_names(str(top['which']).split())})"
    return f"Largest tenant: {servers}; {percent(top['bytes_percent'])} of the bytes of all servers"


def _tenants_say(rows: Sequence[Values]) -> str:
    groups = _groups(rows)
    if not groups:
        return f"{count(rows[0]['servers'], 'server')} moved {size(rows[0]['bytes'])}."
    top = groups[0]
    every = f", every {number(top['period_seconds'])} s" if top["period_seconds"] is not None else ""
    rest = [row for row in rows if row not in groups]
    text = (
        "A group is servers whose traffic rises and falls together: a job as the network sees it. "
        f"The largest of {count(len(groups), 'group')} received and sent {size(top['bytes'])}{every}."
    )
    return text + (
        f" {count(rest[0]['servers'], 'server')} in no group moved {percent(rest[0]['bytes_percent'])}." if rest else ""
    )


def _tenants_chart(rows: Sequence[Values]) -> list[Panel]:
    groups = _groups(rows)
    shown = [
        Bars(
            str(row["tenant"]) if row in groups else "no group",
            [Bar(row["bytes_percent"], "access" if row in groups else "none", _tenant_tip(row))],
            server=str(row["which"]),
        )
        for row in [*groups[:MOST], *(row for row in rows if row not in groups)]
    ]
    return bars(shown, "% of the bytes of all servers", "Bytes by group of servers")


def _tenant_tip(row: Values) -> str:
    return f"{count(row['servers'], 'server')}, {size(row['bytes'])}: {first_names(str(row['which']).split())}"


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


def tenants(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the traffic groups by bytes."""
    return Figure(
        "tenants",
        _tenants_title,
        _tenants_say,
        "Groups of servers",
        "No server with traffic is loaded.",
        _tenants_chart,
        parameters,
        ("metrics.traffic_groups", "metrics.server_hour"),
        f"sql -q traffic-jobs --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        place=place,
    )


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
