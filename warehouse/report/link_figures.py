"""Links between leaves and spines: links without data one way, and balance of the others."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.base.text import natural, plural, size
from warehouse.report.charts import Bar, Bars, dots
from warehouse.report.figure import Figure, Values, distinct
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend, percent, short

WAY = {"in": "inward", "out": "outward"}
GOES = {"out": "leaf to spine (out)", "in": "spine to leaf (in)"}
CELL, TOP = 22, 34
"""Height of a matrix cell, and of what is above the cells."""
FAINT = 0.8
"""Largest opacity of a deviation's color; text on it stays readable."""
WIDEST = 999.5
"""Width of the bounds, in percent of the estimate, from which on a cell has no number: it says nothing but large."""
FULL = 50.0
"""Deviation from an even share, in percent, with the strongest color."""


def _links_chart(rows: Sequence[Values]) -> list[Panel]:
    keys = [Key("lost", "✕ an uplink carries no data"), Key("access", "less than even"), Key("bad", "more")]
    keys.append(Key("u0", "even"))
    return [legend(keys), *(_matrix(rows, way) for way in ("out", "in"))]


def _deviation(panel: Panel, row: Values, x: float, y: float, width: float) -> None:
    off, is_lost, at = row["off_even_percent"], bool(row["one_way_uplinks"]), {"leaf": row["leaf"]}
    way = " to ".join((row["leaf"], row["spine"]) if row["direction"] == "out" else (row["spine"], row["leaf"]))
    tip = f"{way}: {size(row['bytes'])}, {percent(off)} off even, {plural(row['uplinks'], 'uplink')}"
    text = "" if off is None else f"{off:+.0f}" if round(off) else "0"
    panel.rect(x, y, width - 1, CELL - 1, "u0", tip, **at)
    if is_lost:
        most = short(row["fullest_over_mean"])
        tip += f"; {row['leaf']} {row['one_way_ends']} carries no data {WAY[row['direction']]}; "
        tip += f"the fullest uplink between them carries {most} times the mean of the leaf's"
        panel.rect(x, y, width - 1, CELL - 1, "lost", tip, **at)
        text = f"✕ max {row['fullest_over_mean'] or 0:.2f}x"
        text = text if width >= len(text) * LETTER else "✕"
    elif off is not None:
        # Below 1, the exponent makes small deviations visible.
        strength = min(abs(off) / FULL, 1) ** 0.7 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "access" if off < 0 else "bad", tip, opacity=strength, **at)
    if width >= len(text) * LETTER:
        panel.text(x + width / 2 - 0.5, y + 15, text, "m onlost" if is_lost else "m", **at)


def _frame(label: str, down: Sequence[str], across: Sequence[str]) -> tuple[Panel, float, float]:
    """Return a panel with names at its left and heads above its cells, the left of the cells, and their width."""
    left = 8 + LETTER * max(map(len, down))
    width = (WIDTH - left) / len(across)
    panel = Panel(TOP + CELL * len(down) + 4, label)
    for at, head in enumerate(across):
        if width >= (len(head) + 1) * LETTER or at % 2 == 0:
            panel.text(left + (at + 0.5) * width, TOP - 5, head, "soft m")
    for at, name in enumerate(down):
        panel.text(left - 6, TOP + at * CELL + 15, name, "e", leaf=name)
    return panel, left, width


def _matrix(rows: Sequence[Values], way: str) -> Panel:
    """Draw the matrix of one direction: leaves down, spines across."""
    leaves, spines = (sorted(distinct(rows, end), key=natural) for end in ("leaf", "spine"))
    heads = [spine.removeprefix("spine-") for spine in spines]
    panel, left, width = _frame(f"{GOES[way]}, leaves down, spines across", leaves, heads)
    panel.text(left, 12, GOES[way], "b")
    panel.text(left - 6, TOP - 5, "spine", "soft e")
    for row in rows:
        if row["direction"] == way:
            x, y = left + spines.index(row["spine"]) * width, TOP + leaves.index(row["leaf"]) * CELL
            _deviation(panel, row, x, y, width)
    return panel


def _pairs_chart(rows: Sequence[Values]) -> list[Panel]:
    """Draw the bytes from leaf to leaf: senders down, receivers across, the width of the bounds in each cell."""
    names = distinct(rows, "src")
    heads = [one.replace("ST-leaf-", "S").removeprefix("Leaf-").replace("outside", "out") for one in names]
    panel, left, width = _frame("Bytes from leaf to leaf, senders down, receivers across", names, heads)
    for row in rows:
        x, y = left + names.index(row["dst"]) * width, TOP + names.index(row["src"]) * CELL
        tip = f"{row['src']} to {row['dst']}: {size(row['bytes_estimate'])}, by the counters at least "
        tip += f"{size(row['bytes_low'])} and at most {size(row['bytes_high'])}; estimated from {row['evidence']}"
        # Bytes of pairs differ by orders of magnitude: without the root, most cells would look empty.
        strength = ((row["of_largest_percent"] or 0) / 100) ** 0.5 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "u0", tip, leaf=row["src"])
        panel.rect(x, y, width - 1, CELL - 1, "access", tip, opacity=strength, leaf=row["src"])
        known = row["width_percent"] is not None and row["width_percent"] < WIDEST
        if known and width >= len(text := f"{row['width_percent']:.0f}") * LETTER:
            panel.text(x + width / 2 - 0.5, y + 15, text, "m", leaf=row["src"])
    return [legend([Key("access", "bytes, darkest in the largest cell"), Key("u0", "none")]), panel]


def _points(rows: Sequence[Values], name: str, value: str, unit: str, label: str, limit: str) -> list[Panel]:
    """Draw a row for each switch, with a point for each direction."""
    groups: dict[str, dict[str, Bar]] = {one: {} for one in distinct(rows, name)}
    for row in rows:
        if row[value] is not None:
            lost = f", {row['one_way_uplinks']} carries no data" if row["one_way_uplinks"] and name == "switch" else ""
            tip = f"{row[name]} {row['direction']}: {percent(row[value])}{lost}"
            note = "not judged" if row.get("judged") == "false" else ""
            groups[row[name]][row["direction"]] = Bar(row[value], row["direction"], tip, note=note)
    drawn = [Bars(one, list(points.values()), leaf=one if name == "switch" else "") for one, points in groups.items()]
    keys = [Key("in", "in (from spines)"), Key("out", "out (to spines)"), Key("limit", "uneven from here")]
    return dots(drawn, unit, label, keys, rows[0][limit])


def _spines_chart(rows: Sequence[Values]) -> list[Panel]:
    ordered = sorted(rows, key=lambda row: natural(row["spine"]))
    column, unit = "spine_off_mean_percent", "bytes off the mean of the spines, %"
    return _points(ordered, "spine", column, unit, "How evenly spines are used", "spine_threshold_percent")


def _balance_chart(rows: Sequence[Values]) -> list[Panel]:
    unit = "standard deviation of bytes, % of their mean"
    return _points(rows, "switch", "cov_percent", unit, "How evenly uplinks share", "threshold_percent")


NO_UPLINKS = "No uplinks with traffic are loaded."
LINKS = Figure("links", "Links between leaves and spines", NO_UPLINKS, _links_chart, "sql -q hottest-uplinks")
SPINES = Figure("links", "How evenly spines are used", NO_UPLINKS, _spines_chart, "sql -q spine-balance", "spines")
PAIRS = Figure(
    "matrix", "Who talks to whom", "No leaf with traffic is loaded.", _pairs_chart, "sql -q who-talks-to-whom"
)
BALANCE = Figure(
    "balance", "How evenly uplinks share the traffic", NO_UPLINKS, _balance_chart, "sql -q most-unbalanced"
)
SUSPECTS = Figure("suspects", "Suspect links", "No link is suspect.", further="sql -q suspect-links")
