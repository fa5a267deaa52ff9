"""Coverage of the observation; minutes without a poll are hatched, never drawn as zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend, linear, ticks, x_axis, y_axis
from warehouse.report.words import count, foremost, number, percent, rate, total

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


def _coverage_title(rows: Sequence[Values]) -> str:
    seen = _loaded(rows)
    if not seen:
        return "No switch is loaded in this hour"
    top = foremost(seen)
    text = f"{len(seen)} of {count(rows[0]['leaves_of_cluster'], 'leaf')} loaded"
    if top["longest_gap_seconds"] is None:
        return text
    gaps = sum(row["opening_gap_seconds"] is not None for row in seen)
    where = "" if gaps == len(seen) else f" on {gaps} of them"
    return f"{text}; the hour begins with up to {number(top['longest_gap_seconds'])} s without a poll{where}"


def _coverage_says(rows: Sequence[Values]) -> str:
    seen = _loaded(rows)
    if not seen:
        return "Its port counters are not among the files."
    top = foremost(seen)
    return (
        f"In this hour, {percent(top['gap_bytes_percent_of_hour'])} of the bytes that entered "
        f"{count(len(seen), 'switch')} came in this gap, the largest share at {top['switch']}: "
        f"{percent(top['gap_bytes_percent'])}. Their sum is known, their minutes are not. "
        f"After the gap, {count(total(seen, 'missing_port_polls'), 'poll')} of single ports are missing. "
        "Hatched: not observed, to the second."
    )


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
                    f"{tip}seen, a poll every {number(row['median_poll_ms'])} ms",
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
        _unseen(panel, left, y, scale(60), f"{count(unnamed, 'leaf')} of the cluster that no file names")
    x_axis(panel, HOUR, scale, 2, bottom, "minute of the hour")
    keys = [Key("access", "polled"), Key("hatch", "not polled (orange: sum known)")]
    return [legend(keys), panel]


def _unseen(panel: Panel, left: float, y: float, right: float, tip: str) -> None:
    panel.hatch(left, y, right - left, ROW - 3, tip)
    panel.path(f"M{left:.1f} {y}H{right:.1f}v{ROW - 3}H{left:.1f}z", "edge")


def _series_title(rows: Sequence[Values]) -> str:
    seen = [row for row in _loaded(rows) if row["in_gbps"]]
    if not seen:
        return "No minute is known"
    top = min(seen, key=lambda row: int(row["busiest_place"]))
    return f"{top['switch']} has the busiest polled minute: {_highest(top)}"


def _highest(row: Values) -> str:
    return rate(max(row["highest_in_gbps"] or 0, row["highest_out_gbps"] or 0))


def _series_says(rows: Sequence[Values]) -> str:
    return (
        "Traffic between each leaf and its servers, by the minute. Hatched: no poll. The line there is the mean of the "
        "gap, from its known sum, and the highest minute has no part of it. Scales differ."
    )


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


def coverage(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the observed minutes of each switch."""
    return Figure(
        "observation",
        _coverage_title,
        _coverage_says,
        "What was observed",
        "No port counters are loaded.",
        _coverage,
        parameters,
        ("metrics.sampling_quality", "staging.switch_polls"),
        "sql -q hour-quality",
        "coverage",
        place,
    )


def series(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the time series of each leaf."""
    return Figure(
        "observation",
        _series_title,
        _series_says,
        "Traffic by the minute",
        "No port counters are loaded.",
        _series,
        parameters,
        ("metrics.port_minute", "metrics.leaf_hour"),
        'sql "FROM metrics.leaf_hour"',
        "minutes",
        place,
    )
