"""Coverage of the observation; minutes without a poll are hatched, never drawn as zero."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend, linear, percent, short, ticks, x_axis, y_axis

ROW = 15
"""Height of a switch in the coverage figure."""
HOUR = (0.0, 15.0, 30.0, 45.0, 60.0)


def _spans(row: Values) -> list[tuple[str, float, float]]:
    """Return the runs of equal minutes: state, start and end; the opening gap ends at its second.

    >>> _spans({"minutes": "gg...-", "opening_gap_seconds": 90})
    [('g', 0, 1.5), ('.', 1.5, 5), ('-', 5, 6)]
    """
    found: list[tuple[str, float, float]] = []
    for state, of in groupby(str(row["minutes"] or "-" * 60)):
        start = found[-1][2] if found else 0
        found.append((state, start, start + len(list(of))))
    gap = (row["opening_gap_seconds"] or 0) / 60
    (state, _, end), *rest = found
    # Polls begin inside the last minute of the gap, which a whole minute cannot show.
    if state == "g" and end - 1 < gap < end and rest and rest[0][0] == ".":
        return [("g", 0, gap), (".", gap, rest[0][2]), *rest[1:]]
    return found


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
    bottom = 4 + ROW * len(rows)
    panel = Panel(bottom + 36, "Minutes that were observed, by switch")
    for at, row in enumerate(rows):
        leaf, y = str(row["switch"]), 4 + ROW * at
        is_loaded = row["loaded"] == "true"
        panel.text(left - 6, y + 11, leaf, "e" if is_loaded else "e soft", leaf=leaf)
        for state, start, end in _spans(row):
            box, tip = (scale(start), y, scale(end) - scale(start), ROW - 3), f"{leaf}, {_between(start, end)}: "
            if not is_loaded:
                panel.hatch(*box, f"{leaf}: no port counters are loaded")
                panel.path(f"M{box[0]:.1f} {y}h{box[2]:.1f}v{ROW - 3}h{-box[2]:.1f}z", "edge")
            elif state == ".":
                panel.rect(*box, "access", f"{tip}seen, a poll every {short(row['median_poll_ms'])} ms", leaf=leaf)
            else:
                known = f"no poll; the sum is known, {percent(row['gap_bytes_percent'])} of the bytes in"
                panel.rect(*box, "out", f"{tip}no poll", opacity=0.45, leaf=leaf)
                panel.hatch(*box, f"{tip}{known}")
    x_axis(panel, HOUR, scale, 2, bottom, "minute of the hour")
    return [legend([Key("access", "polled"), Key("hatch", "not polled (orange: sum known)")]), panel]


def _series(rows: Sequence[Values]) -> list[Panel]:
    seen = [row for row in rows if row["in_gbps"]]
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
    highest = max(row["highest_in_gbps"] or 0, row["highest_out_gbps"] or 0)
    panel.text(WIDTH, 11, f"highest polled minute {short(highest)} Gb/s", "soft e")
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
