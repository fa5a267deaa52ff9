"""Balance of uplinks by minute, beside a fair hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.report.charts import Bar, Bars, dots
from warehouse.report.figure import Figure, Values
from warehouse.report.svg import Key, Panel
from warehouse.report.words import count, distinct, foremost, percent


def minutes_title(rows: Sequence[Values]) -> str:
    """Return a title that names the leaf farthest above a fair hash, or says that none is."""
    top = foremost(rows)
    where = f"{top['switch']} {top['direction']}"
    if int(top["minutes_above"]) == 0:
        return f"No minute is less even than a fair hash: {where} comes to {percent(top['largest_percent'])} of it"
    return (
        f"{where} is less even than a fair hash in {top['minutes_above']} of {count(top['minutes'], 'minute')}, "
        f"up to {percent(top['largest_percent'])} of it"
    )


def _minutes_say(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    is_counted = top["flows_source"].startswith("flow")
    return (
        "The least even minute of each leaf: standard deviation of the bytes of its uplinks, in percent of what a fair "
        "hash of as many equal flows exceeds in one of a hundred minutes (dashed). For "
        f"{top['switch']} {top['direction']} that is {count(top['flows_assumed'], 'flow')}, known from "
        f"{'the flow table' if is_counted else 'busy access ports and assumed queue pairs'}; "
        f"its least even minute is {top['minute']} UTC."
    )


def _minutes_chart(rows: Sequence[Values]) -> list[Panel]:
    groups = [
        Bars(
            switch,
            [Bar(row["largest_percent"], row["direction"], _tip(row)) for row in rows if row["switch"] == switch],
            leaf=switch,
        )
        for switch in distinct(rows, "switch")
    ]
    keys = [Key("in", "in (from spines)"), Key("out", "out (to spines)"), Key("limit", "a fair hash")]
    axis = "standard deviation of bytes, % of a fair hash's"
    return dots(groups, axis, "The least even minute of each leaf", keys, rows[0]["limit_percent"])


def _tip(row: Values) -> str:
    return (
        f"{row['switch']} {row['direction']}: {percent(row['largest_percent'])} at {row['minute']} UTC, "
        f"{row['minutes_above']} of {count(row['minutes'], 'minute')} above, median {percent(row['median_percent'])}"
    )


def minutes(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the least even minute of each leaf."""
    return Figure(
        "uneven-minutes",
        minutes_title,
        _minutes_say,
        "Uplinks by minute, beside a fair hash",
        "No uplinks with traffic are loaded.",
        _minutes_chart,
        parameters,
        ("metrics.uplink_balance_minute",),
        f"sql -q uneven-minutes --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        place=place,
    )
