"""Links between leaves and spines: links without data one way, and balance of the others."""

from __future__ import annotations

from collections.abc import Sequence

from warehouse.base.text import natural, plural, size
from warehouse.report.charts import Bar, Bars, dots
from warehouse.report.figure import Figure, Values, distinct
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend, percent, short

WAY = {"in": "inward", "out": "outward"}
GOES = {"out": "leaf to spine (out)", "in": "spine to leaf (in)"}
CELL = 22
"""Height of a matrix cell."""
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


def _matrix(rows: Sequence[Values], way: str) -> Panel:
    """Draw the matrix of one direction: leaves down, spines across."""
    leaves = sorted(distinct(rows, "leaf"), key=natural)
    spines = sorted(distinct(rows, "spine"), key=natural)
    left, top = 8 + LETTER * max(map(len, leaves)), 34
    width = (WIDTH - left) / len(spines)
    panel = Panel(top + CELL * len(leaves) + 4, f"{GOES[way]}, leaves down, spines across")
    panel.text(left, 12, GOES[way], "b")
    panel.text(left - 6, top - 5, "spine", "soft e")
    for at, spine in enumerate(spines):
        if width >= 3 * LETTER or at % 2 == 0:
            panel.text(left + (at + 0.5) * width, top - 5, spine.removeprefix("spine-"), "soft m")
    for at, leaf in enumerate(leaves):
        panel.text(left - 6, top + at * CELL + 15, leaf, "e", leaf=leaf)
    for row in rows:
        if row["direction"] == way:
            x, y = left + spines.index(row["spine"]) * width, top + leaves.index(row["leaf"]) * CELL
            _deviation(panel, row, x, y, width)
    return panel


def _pairs_chart(rows: Sequence[Values]) -> list[Panel]:
    """Draw the bytes from leaf to leaf: senders down, receivers across, the width of the bounds in each cell."""
    names = distinct(rows, "src")
    left, top = 8 + LETTER * max(map(len, names)), 34
    width = (WIDTH - left) / len(names)
    panel = Panel(top + CELL * len(names) + 4, "Bytes from leaf to leaf, senders down, receivers across")
    for at, name in enumerate(names):
        across = name.replace("ST-leaf-", "S").removeprefix("Leaf-").replace("outside", "out")
        if width >= (len(across) + 1) * LETTER or at % 2 == 0:
            panel.text(left + (at + 0.5) * width, top - 5, across, "soft m")
        panel.text(left - 6, top + at * CELL + 15, name, "e")
    for row in rows:
        x, y = left + names.index(row["dst"]) * width, top + names.index(row["src"]) * CELL
        tip = f"{row['src']} to {row['dst']}: {size(row['bytes_estimate'])}, by the counters at least "
        tip += f"{size(row['bytes_low'])} and at most {size(row['bytes_high'])}; estimated from {row['evidence']}"
        strength = ((row["of_largest_percent"] or 0) / 100) ** 0.5 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "u0", tip)
        panel.rect(x, y, width - 1, CELL - 1, "access", tip, opacity=strength)
        known = row["width_percent"] is not None and row["width_percent"] < WIDEST
        if known and width >= len(text := f"{row['width_percent']:.0f}") * LETTER:
            panel.text(x + width / 2 - 0.5, y + 15, text, "m")
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
