"""Coverage of the observation; minutes without a poll are hatched, never drawn as zero."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend, linear, percent, short, ticks, x_axis, y_axis

ROW = 15
"""Height of a switch in the coverage figure."""
HOUR = (0.0, 15.0, 30.0, 45.0, 60.0)


def _loaded(rows: Sequence[Values]) -> list[Values]:
    return [row for row in rows if row["loaded"] == "true"]


def _stretches(minutes: str) -> list[tuple[str, int, int]]:
    """Return runs of equal minutes: state, first minute, end minute (exclusive).

    >>> _stretches("gg...-")
    [('g', 0, 2), ('.', 2, 5), ('-', 5, 6)]
    """
    found, at = [], 0
    for state, of in groupby(minutes):
        end = at + len(list(of))
        found.append((state, at, end))
        at = end
    return found


def _spans(row: Values) -> list[tuple[str, float, float]]:
    """Return the runs of minutes, with the end of the opening gap at its second."""
    (state, start, end), *rest = _stretches(str(row["minutes"] or "-" * 60))
    gap = (row["opening_gap_seconds"] or 0) / 60
    if state != "g" or not end - 1 < gap < end:
        return [(state, start, end), *rest]
    polled = [(".", gap, float(end))]
    if rest and rest[0][0] == ".":
        polled, rest = [(".", gap, float(rest[0][2]))], rest[1:]
    return [(state, start, gap), *polled, *rest]


def _between(start: float, end: float) -> str:
    """Return a time range of the hour.

    >>> _between(0, 4.235), _between(4.235, 60)
    ('0:00 to 4:14', '4:14 to 60:00')
    """
    first, last = (f"{round(60 * at) // 60}:{round(60 * at) % 60:02}" for at in (start, end))
    return f"{first} to {last}"


def _coverage(rows: Sequence[Values]) -> list[Panel]:
    left = 8 + LETTER * max(len(str(row["switch"])) for row in rows)
    scale = linear(0, 60, left, WIDTH - 8)
    unnamed = rows[0]["leaves_of_cluster"] - len(rows)
    bottom = 4 + ROW * (len(rows) + (unnamed > 0))
    panel = Panel(bottom + 36, "Minutes that were observed, by switch")
    for at, row in enumerate(rows):
        leaf, y = str(row["switch"]), 4 + ROW * at
        panel.text(left - 6, y + 11, leaf, "e" if row["loaded"] == "true" else "e soft", leaf=leaf)
        if row["loaded"] != "true":
            _unseen(panel, left, y, scale(60), f"{leaf}: no port counters are loaded")
            continue
        for state, start, end in _spans(row):
            x, width = scale(start), scale(end) - scale(start)
            tip = f"{leaf}, {_between(start, end)}: "
            if state == ".":
                panel.rect(
                    x,
                    y,
                    width,
                    ROW - 3,
                    "access",
                    f"{tip}seen, a poll every {short(row['median_poll_ms'])} ms",
                    leaf=leaf,
                )
            else:
                panel.rect(x, y, width, ROW - 3, "out", f"{tip}no poll", opacity=0.45, leaf=leaf)
                panel.hatch(
                    x,
                    y,
                    width,
                    ROW - 3,
                    f"{tip}no poll; the sum is known, {percent(row['gap_bytes_percent'])} of the bytes in",
                )
    if unnamed > 0:
        y = 4 + ROW * len(rows)
        panel.text(left - 6, y + 11, f"{unnamed} more", "e soft")
        _unseen(panel, left, y, scale(60), f"{unnamed} more of the cluster, which no file names")
    x_axis(panel, HOUR, scale, 2, bottom, "minute of the hour")
    keys = [Key("access", "polled"), Key("hatch", "not polled (orange: sum known)")]
    return [legend(keys), panel]


def _unseen(panel: Panel, left: float, y: float, right: float, tip: str) -> None:
    panel.hatch(left, y, right - left, ROW - 3, tip)
    panel.path(f"M{left:.1f} {y}H{right:.1f}v{ROW - 3}H{left:.1f}z", "edge")


def _highest(row: Values) -> str:
    return f"{short(max(row['highest_in_gbps'] or 0, row['highest_out_gbps'] or 0))} Gb/s"


def _series(rows: Sequence[Values]) -> list[Panel]:
    seen = [row for row in _loaded(rows) if row["in_gbps"]]
    keys = [
        Key("line s-in", "from servers (in)"),
        Key("line s-out dash", "to servers (out)"),
        Key("hatch", "no poll: mean of the gap"),
    ]
    return [legend(keys), *map(_leaf_series, seen)] if seen else []


def _leaf_series(row: Values) -> Panel:
    leaf = str(row["switch"])
    panel = Panel(150, f"{leaf}: Gb/s by the minute", leaf=leaf)
    high = max([value for name in ("in_gbps", "out_gbps") for value in row[name] if value is not None], default=1)
    at = ticks(max(high, 0.001), 4)
    left = 48
    x, y = linear(0, 60, left, WIDTH - 12), linear(0, at[-1], 116, 20)
    panel.text(0, 11, leaf, "b")
    panel.text(LETTER * (len(leaf) + 1) + 4, 11, "Gb/s", "soft")
    panel.text(WIDTH, 11, f"highest polled minute {_highest(row)}", "soft e")
    y_axis(panel, at, y, left, x(60))
    x_axis(panel, HOUR, x, 20, 116, "minute of the hour")
    for state, start, end in _spans(row):
        if state != ".":
            panel.hatch(x(start), 20, x(end) - x(start), 96, f"{leaf}, {_between(start, end)}: no poll")
    for name, dash, words in (("in", "", "from servers"), ("out", " dash", "to servers")):
        points = [
            None if value is None else (x(minute + 0.5), y(value)) for minute, value in enumerate(row[f"{name}_gbps"])
        ]
        panel.line(points, f"{name}{dash}", f"{leaf}, {words}", leaf=leaf)
    return panel


COVERAGE = Figure(
    "observation", "What was observed", "No port counters are loaded.", _coverage, "sql -q hour-quality", "coverage"
)
MINUTES = Figure(
    "observation",
    "Traffic by the minute",
    "No port counters are loaded.",
    _series,
    'sql "FROM metrics.leaf_hour"',
    "minutes",
)
