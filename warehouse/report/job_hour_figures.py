"""Bytes of an hour: jobs as the network sees them, with their bytes by the minute, and the busiest servers."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.base.text import few, plural, size
from warehouse.report.charts import Bar, Bars, bars
from warehouse.report.figure import Figure, Values
from warehouse.report.svg import WIDTH, Key, Panel, legend, linear, percent, short, x_axis

MOST = 12
"""Largest number of jobs drawn; the table has all."""
ALONE = 5
"""Most rows of one panel; more are split into two."""
ROW, STRIP = 66, 26
"""Height of a job, and of its rates."""
LEFT = 8
"""Start of the hour; its end is as far from the other edge."""
BOLD = 7.6
"""Average width of a bold letter at label size, in SVG units."""
HOUR = (0.0, 15.0, 30.0, 45.0, 60.0)
BUSIEST = 10
"""Largest number of servers drawn; the table has all."""
DIRECTIONS = (Key("in", "received"), Key("out", "sent"))


def _chart(rows: Sequence[Values]) -> list[Panel]:
    jobs, others = ([row for row in rows if (row["job_id"] is None) == other] for other in (False, True))
    shown = [*jobs[:MOST], *others]
    half = len(shown) if len(shown) <= ALONE else -(-len(shown) // 2)
    keys = [Key("access", "a job"), Key("none", "no job"), Key("hatch", "no poll: mean of the gap")]
    return [legend(keys), *(_panel(shown[at : at + half]) for at in range(0, len(shown), half))]


def _panel(rows: Sequence[Values]) -> Panel:
    bottom = ROW * len(rows) + 2
    panel = Panel(bottom + 36, f"Jobs in this hour, rates by the minute: {', '.join(map(_name, rows))}")
    scale = linear(0, 60, LEFT, WIDTH - LEFT)
    second = LEFT + BOLD * max(len(_name(row)) for row in rows) + 8
    for at, row in enumerate(rows):
        top, who = ROW * at, str(row["which"])
        unknown = plural(row["servers"], "server") if row["job_id"] is None else "period not resolved"
        share = percent(row["bytes_percent"]) if row["bytes_percent"] else "< 0.1 %"
        panel.text(LEFT, top + 12, _name(row), "b", server=who)
        panel.text(second, top + 12, f"every {row['period']}" if row["period"] else unknown, server=who)
        panel.text(WIDTH - LEFT, top + 12, share, "b e", server=who)
        panel.text(LEFT, top + 27, few(str(row["on_leaves"] or "").split(), 4), "soft", server=who)
        panel.text(WIDTH - LEFT, top + 27, size(row["bytes"]), "soft e", server=who)
        _profile(panel, row, top + 33)
    x_axis(panel, HOUR, scale, bottom - 5, bottom, "minute of the hour")
    return panel


def _name(row: Values) -> str:
    return str(row["job"]) if row["job_id"] is not None else "in no job"


def _profile(panel: Panel, row: Values, top: float) -> None:
    """Draw the rate of each minute as steps, filled to the base line."""
    x, base, who = linear(0, 60, LEFT, WIDTH - LEFT), top + STRIP, str(row["which"])
    for at in HOUR:
        panel.path(f"M{x(at):.1f} {top}V{base}", "grid")
    if not row["gbps"]:
        panel.hatch(LEFT, top, x(60) - LEFT, STRIP, f"{_name(row)}: the minutes of this hour were dropped")
        return
    y = linear(0, max(row["highest_gbps"], 1e-9), base, top)
    gap = (row["opening_gap_seconds"] or 0) / 60
    kind, busiest = "none" if row["job_id"] is None else "access", row["gbps"].index(max(row["gbps"]))
    tip = (
        f"{_name(row)}: {plural(row['servers'], 'server')}, {size(row['bytes'])}; "
        f"highest in minute {busiest}, {short(row['highest_gbps'])} Gb/s"
    )
    steps = [f"V{y(value):.1f}H{x(minute + 1):.1f}" for minute, value in enumerate(row["gbps"])]
    panel.path("".join([f"M{x(0):.1f} {base}", *steps, f"V{base}z"]), kind, tip, server=who)
    if gap:
        panel.rect(LEFT, top, x(gap) - LEFT, STRIP, "u0", opacity=0.7)
        panel.hatch(LEFT, top, x(gap) - LEFT, STRIP, f"{_name(row)}: no poll in the first {gap * 60:.0f} s")
    panel.path(f"M{LEFT} {base}H{x(60):.1f}", "axis")


def _servers_chart(rows: Sequence[Values]) -> list[Panel]:
    shown = [
        Bars(
            str(row["server"]),
            [
                Bar(row["rx_gbps"], "in", f"{row['server']} received {short(row['rx_gbps'])} Gb/s"),
                Bar(row["tx_gbps"], "out", f"{row['server']} sent {short(row['tx_gbps'])} Gb/s"),
            ],
            server=str(row["server"]),
        )
        for row in rows[:BUSIEST]
    ]
    return bars(shown, "Gb/s, mean of the hour", "The busiest servers", keys=DIRECTIONS)


NO_SERVER = "No server with traffic is loaded."
JOBS_IN_HOUR = Figure("jobs-in-hour", "Jobs in this hour", NO_SERVER, _chart, "sql -q traffic-jobs")
SERVERS = Figure("servers", "The busiest servers", NO_SERVER, _servers_chart, "sql -q busiest-servers")
