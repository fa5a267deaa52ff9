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
    off = row["off_even_percent"]
    tip = f"{_where(row)}: {size(row['bytes'])}, {percent(off)} off even, {plural(row['uplinks'], 'uplink')}"
    at = {"leaf": row["leaf"]}
    panel.rect(x, y, width - 1, CELL - 1, "u0", tip, **at)
    if row["one_way_uplinks"]:
        tip += f"; {row['leaf']} {row['one_way_ends']} carries no data {WAY[row['direction']]}; {_fullest(row)}"
        panel.rect(x, y, width - 1, CELL - 1, "lost", tip, **at)
    elif off is not None:
        strength = min(abs(off) / FULL, 1) ** 0.7 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "access" if off < 0 else "bad", tip, opacity=strength, **at)
    text = "" if off is None else f"{off:+.0f}" if round(off) else "0"
    if row["one_way_uplinks"]:
        times = f"{row['fullest_over_mean'] or 0:.2f}x"
        text = next((one for one in (f"✕ max {times}", f"✕ {times}") if width >= len(one) * LETTER), "✕")
    if width >= len(text) * LETTER:
        panel.text(x + width / 2 - 0.5, y + 15, text, "m onlost" if row["one_way_uplinks"] else "m", **at)


def _fullest(row: Values) -> str:
    return f"the fullest uplink between them carries {short(row['fullest_over_mean'])} times the mean of the leaf's"


def _where(row: Values) -> str:
    ends = (row["leaf"], row["spine"]) if row["direction"] == "out" else (row["spine"], row["leaf"])
    return " to ".join(ends)


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
        strength = ((row["of_largest_percent"] or 0) / 100) ** 0.5 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "u0", tip, leaf=row["src"])
        panel.rect(x, y, width - 1, CELL - 1, "access", tip, opacity=strength, leaf=row["src"])
        known = row["width_percent"] is not None and row["width_percent"] < WIDEST
        if known and width >= len(text := f"{row['width_percent']:.0f}") * LETTER:
            panel.text(x + width / 2 - 0.5, y + 15, text, "m", leaf=row["src"])
    return [legend([Key("access", "bytes, darkest in the largest cell"), Key("u0", "none")]), panel]


def _off_mean(direction: str, off: float) -> str:
    """Return how far a spine is off the mean.

    >>> _off_mean("out", -11.2), _off_mean("in", 3.0)
    ('gets 11.2 % less', 'sends 3 % more')
    """
    return f"{'gets' if direction == 'out' else 'sends'} {percent(abs(off))} {'less' if off < 0 else 'more'}"


def _spines_chart(rows: Sequence[Values]) -> list[Panel]:
    groups = []
    for spine in sorted(distinct(rows, "spine"), key=natural):
        of = {row["direction"]: row for row in rows if row["spine"] == spine}
        points = [
            Bar(
                row["spine_off_mean_percent"],
                way,
                f"{spine} {_off_mean(way, row['spine_off_mean_percent'])}: {size(row['spine_bytes'])}",
            )
            for way, row in of.items()
            if row["spine_off_mean_percent"] is not None
        ]
        groups.append(Bars(spine, points))
    keys = [Key("in", "in (from spines)"), Key("out", "out (to spines)"), Key("limit", "uneven from here")]
    limit = rows[0]["spine_threshold_percent"]
    return dots(groups, "bytes off the mean of the spines, %", "How evenly spines are used", keys, limit)


def _balance_chart(rows: Sequence[Values]) -> list[Panel]:
    groups = []
    for switch in distinct(rows, "switch"):
        of = [row for row in rows if row["switch"] == switch]
        notes = ["" if row["judged"] == "true" else "not judged" for row in of]
        points = [
            Bar(row["cov_percent"], row["direction"], _balance_tip(row), note=note)
            for row, note in zip(of, notes, strict=True)
        ]
        groups.append(Bars(switch, points, leaf=switch))
    keys = [Key("in", "in (from spines)"), Key("out", "out (to spines)"), Key("limit", "uneven from here")]
    return dots(
        groups,
        "standard deviation of bytes, % of their mean",
        "How evenly uplinks share",
        keys,
        rows[0]["threshold_percent"],
    )


def _balance_tip(row: Values) -> str:
    lost = f", {row['one_way_uplinks']} carries no data" if row["one_way_uplinks"] else ""
    over = plural(row["uplinks"], "uplink")
    return f"{row['switch']} {row['direction']}: {percent(row['cov_percent'])} over {over}{lost}"


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
