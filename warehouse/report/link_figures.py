"""Links between leaves and spines: dead links, and balance of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warehouse.report.charts import Bar, Bars, dots
from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, legend
from warehouse.report.words import by_number, count, distinct, foremost, listed, number, percent, short_name, size

WAY = {"in": "inward", "out": "outward"}
GOES = {"out": "leaf to spine (out)", "in": "spine to leaf (in)"}
CELL = 22
"""Height of a matrix cell."""
FAINT = 0.8
"""Largest opacity of a deviation's color; text on it stays readable."""
FULL = 50.0
"""Deviation from an even share, in percent, with the strongest color."""


def _dead(rows: Sequence[Values]) -> list[str]:
    return [f"{row['leaf']} {row['dead_uplinks']} {WAY[row['direction']]}" for row in rows if row["dead_uplinks"]]


def links_title(rows: Sequence[Values]) -> str:
    """Return a title that names the dead links."""
    dead = [row for row in rows if row["dead_uplinks"]]
    if not dead:
        return "No link is dead"
    if len(dead) == 1:
        row = dead[0]
        return f"Replace {row['leaf']} {row['dead_uplinks']} to {row['spine']}: it is dead {WAY[row['direction']]}"
    return f"Replace {listed(_dead(rows))}: dead one way"


def _links_say(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    leaves, spines = len(distinct(rows, "leaf")), len(distinct(rows, "spine"))
    text = (
        f"Bytes between {count(leaves, 'leaf')} and {count(spines, 'spine')}. "
        "Each cell says how many percent they are above or below an even share of the leaf's uplinks. "
        f"Farthest off is {top['leaf']} with {top['spine']}, {top['direction']}: {percent(top['off_even_percent'])}."
    )
    return text + (" Cells with a dead uplink have a ✕." if _dead(rows) else "")


def _links_chart(rows: Sequence[Values]) -> list[Panel]:
    keys = [Key("dead", "✕ an uplink is dead"), Key("access", "less than even"), Key("bad", "more"), Key("u0", "even")]
    return [legend(keys), *(_matrix(rows, way, _deviation) for way in ("out", "in"))]


def _deviation(panel: Panel, row: Values, x: float, y: float, width: float) -> None:
    off = row["off_even_percent"]
    tip = f"{_where(row)}: {size(row['bytes'])}, {percent(off)} off even, {count(row['uplinks'], 'uplink')}"
    at = {"leaf": row["leaf"]}
    panel.rect(x, y, width - 1, CELL - 1, "u0", tip, **at)
    if row["dead_uplinks"]:
        panel.rect(
            x, y, width - 1, CELL - 1, "dead", f"{tip}; {row['dead_uplinks']} is dead {WAY[row['direction']]}", **at
        )
    elif off is not None:
        strength = min(abs(off) / FULL, 1) ** 0.7 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "access" if off < 0 else "bad", tip, opacity=strength, **at)
    text = "" if off is None else f"{off:+.0f}" if round(off) else "0"
    if row["dead_uplinks"]:
        text = f"✕{text}" if width >= (1 + len(text)) * LETTER else "✕"
    if width >= len(text) * LETTER:
        panel.text(x + width / 2 - 0.5, y + 15, text, "m ondead" if row["dead_uplinks"] else "m", **at)


def _bytes(panel: Panel, row: Values, x: float, y: float, width: float) -> None:
    tip = f"{_where(row)}: {size(row['bytes'])}, {count(row['uplinks'], 'uplink')}"
    panel.rect(x, y, width - 1, CELL - 1, "access", tip, opacity=0.08 + 0.5 * row["of_largest"], leaf=row["leaf"])
    tera = row["bytes"] / 1e12
    text = f"{tera:.3g}" if tera >= 1 else f"{tera:.2f}"
    if width >= len(text) * LETTER:
        panel.text(x + width / 2 - 0.5, y + 15, text, "m", leaf=row["leaf"])


def _where(row: Values) -> str:
    ends = (row["leaf"], row["spine"]) if row["direction"] == "out" else (row["spine"], row["leaf"])
    return " to ".join(ends)


def _matrix(rows: Sequence[Values], way: str, cell: object) -> Panel:
    """Draw the matrix of one direction: leaves down, spines across."""
    leaves = sorted(distinct(rows, "leaf"), key=by_number)
    spines = sorted(distinct(rows, "spine"), key=by_number)
    left, top = 8 + LETTER * max(map(len, leaves)), 34
    width = (WIDTH - left) / len(spines)
    panel = Panel(top + CELL * len(leaves) + 4, f"{GOES[way]}, leaves down, spines across")
    panel.text(left, 12, GOES[way], "b")
    panel.text(left - 6, top - 5, "spine", "soft e")
    for at, spine in enumerate(spines):
        if width >= 3 * LETTER or at % 2 == 0:
            panel.text(left + (at + 0.5) * width, top - 5, short_name(spine), "soft m")
    for at, leaf in enumerate(leaves):
        panel.text(left - 6, top + at * CELL + 15, leaf, "e", leaf=leaf)
    for row in rows:
        if row["direction"] == way:
            x, y = left + spines.index(row["spine"]) * width, top + leaves.index(row["leaf"]) * CELL
            cell(panel, row, x, y, width)  # type: ignore[operator]
    return panel


def _spines_title(rows: Sequence[Values]) -> str:
    top = min(rows, key=lambda row: int(row["spine_place"]))
    off = top["spine_off_mean_percent"]
    if off is None:
        return "No bytes passed the spines"
    less = "less" if off < 0 else "more"
    way = "gets" if top["direction"] == "out" else "sends"
    return f"Over the loaded leaves, {top['spine']} {way} {number(abs(off))} % {less} than the mean of the spines"


def _spines_say(rows: Sequence[Values]) -> str:
    leaves = distinct(rows, "leaf")
    return (
        f"TB between {count(len(leaves), 'leaf')} and each spine in the hour. Leaves that are not loaded do not count."
    )


def _spines_chart(rows: Sequence[Values]) -> list[Panel]:
    largest = max(row["bytes"] for row in rows) or 1
    shaded = [{**row, "of_largest": row["bytes"] / largest} for row in rows]
    return [
        legend([Key("access", "TB: the darker, the more")]),
        *(_matrix(shaded, way, _bytes) for way in ("out", "in")),
    ]


def balance_title(rows: Sequence[Values]) -> str:
    """Return a title that names the least even leaf and the reason."""
    top = foremost(rows)
    off = percent(top["cov_percent"])
    if not any(row["uneven"] == "true" for row in rows):
        return f"ECMP is fair: no leaf deviates by more than {off} ({top['switch']}, {top['direction']})"
    even = [row for row in rows if row["judged"] == "true" and row["uneven"] != "true"]
    rest = (
        f"; {'the others' if len(even) > 1 else 'the other'} at most {percent(foremost(even)['cov_percent'])}"
        if even
        else ""
    )
    uneven = [row for row in rows if row["uneven"] == "true"]
    if len(uneven) == 1:
        dead = f", as {top['dead_uplinks']} is dead" if top["dead_uplinks"] else ""
        return f"ECMP is fair but for {top['switch']} {top['direction']}: bytes deviate by {off}{dead}{rest}"
    names = listed(
        [f"{row['switch']} {row['direction']}" for row in sorted(uneven, key=lambda row: int(row["place"]))[:3]]
    )
    more = f" and {len(uneven) - 3} more" if len(uneven) > 3 else ""
    return f"ECMP is fair but for {names}{more}: up to {off}{rest}"


def _balance_says(rows: Sequence[Values]) -> str:
    uneven = [row for row in rows if row["uneven"] == "true"]
    limit = percent(rows[0]["threshold_percent"])
    judged = [row for row in rows if row["judged"] == "true"]
    text = "Standard deviation of bytes over a leaf's uplinks, in percent of their mean. "
    of = f"{count(len(judged), 'direction')} of {count(len(distinct(judged, 'switch')), 'leaf')}"
    text += f"From {limit} on (dashed) it is uneven: {len(uneven)} of {of}."
    return text + (" Storage leaves have few flows and are not judged." if len(judged) < len(rows) else "")


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
        groups, "deviation of bytes, % of their mean", "How evenly uplinks share", keys, rows[0]["threshold_percent"]
    )


def _balance_tip(row: Values) -> str:
    dead = f", {row['dead_uplinks']} is dead" if row["dead_uplinks"] else ""
    over = count(row["uplinks"], "uplink")
    return f"{row['switch']} {row['direction']}: {percent(row['cov_percent'])} over {over}{dead}"


def suspects(cluster: Mapping[str, str], place: str) -> Figure:
    """Return the list of suspect links."""
    return Figure(
        "suspects",
        lambda rows: f"{count(len(rows), 'link')} to look at, with the reason",
        lambda rows: "Dead one way, or workbook and traffic contradict each other. The mapping is not changed by it.",
        "Suspect links",
        "No link is suspect.",
        None,
        cluster,
        ("metrics.suspect_links",),
        "sql -q suspect-links",
        place=place,
    )


def links(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the matrix of leaves and spines."""
    return Figure(
        "links",
        links_title,
        _links_say,
        "Links between leaves and spines",
        "No uplinks with traffic are loaded.",
        _links_chart,
        parameters,
        ("metrics.port_hour", "topology.hour_uplinks", "metrics.suspect_links"),
        f"sql -q hottest-uplinks --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        place=place,
    )


def balance(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the balance of each leaf's uplinks."""
    return Figure(
        "balance",
        balance_title,
        _balance_says,
        "How evenly uplinks share the traffic",
        "No uplinks with traffic are loaded.",
        _balance_chart,
        parameters,
        ("metrics.uplink_balance",),
        f"sql -q most-unbalanced --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        place=place,
    )


def spines(parameters: Mapping[str, str], place: str) -> Figure:
    """Return the bytes of each leaf and spine."""
    return Figure(
        "links",
        _spines_title,
        _spines_say,
        "Bytes between leaves and spines",
        "No uplinks with traffic are loaded.",
        _spines_chart,
        parameters,
        ("metrics.port_hour", "metrics.spine_hour"),
        f"sql -q spine-balance --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        "spines",
        place,
    )
