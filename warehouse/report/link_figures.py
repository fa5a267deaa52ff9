"""Links between leaves and spines: links without data one way, and balance of the others."""

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


def _one_way(rows: Sequence[Values]) -> list[str]:
    return [f"{row['leaf']} {row['one_way_ends']} {WAY[row['direction']]}" for row in rows if row["one_way_uplinks"]]


def links_title(rows: Sequence[Values]) -> str:
    """Return a title that names the links without data one way."""
    one_way = _one_way(rows)
    if not one_way:
        return "Every link carries data both ways"
    return f"Look at {listed(one_way)}: no data that way"


def _links_say(rows: Sequence[Values]) -> str:
    top = foremost(rows)
    leaves, spines = len(distinct(rows, "leaf")), len(distinct(rows, "spine"))
    text = (
        f"Bytes between {count(leaves, 'leaf')} and {count(spines, 'spine')}. A cell is the sum of all uplinks to a "
        "spine: how many percent it is above or below an even share of the leaf's uplinks. "
    )
    if _one_way(rows):
        text += (
            "A ✕ marks an uplink without data that way; max is the fullest other uplink between the same switches, as a multiple of the "
            "mean of the leaf's uplinks. "
        )
    off = percent(top["off_even_percent"])
    return f"{text}Farthest off is {top['leaf']} with {top['spine']}, {top['direction']}: {off}."


def _links_chart(rows: Sequence[Values]) -> list[Panel]:
    keys = [
        Key("lost", "✕ an uplink carries no data"),
        Key("access", "less than even"),
        Key("bad", "more"),
        Key("u0", "even"),
    ]
    return [legend(keys), *(_matrix(rows, way) for way in ("out", "in"))]


def _deviation(panel: Panel, row: Values, x: float, y: float, width: float) -> None:
    off = row["off_even_percent"]
    tip = f"{_where(row)}: {size(row['bytes'])}, {percent(off)} off even, {count(row['uplinks'], 'uplink')}"
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
    return f"the fullest uplink between them carries {number(row['fullest_over_mean'])} times the mean of the leaf's"


def _where(row: Values) -> str:
    ends = (row["leaf"], row["spine"]) if row["direction"] == "out" else (row["spine"], row["leaf"])
    return " to ".join(ends)


def _matrix(rows: Sequence[Values], way: str) -> Panel:
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
            _deviation(panel, row, x, y, width)
    return panel


def _off_mean(direction: str, off: float) -> str:
    """Return how far a spine is off the mean.

    >>> _off_mean("out", -11.2), _off_mean("in", 3.0)
    ('gets 11.2 % less', 'sends 3 % more')
    """
    return f"{'gets' if direction == 'out' else 'sends'} {percent(abs(off))} {'less' if off < 0 else 'more'}"


def _spines_title(rows: Sequence[Values]) -> str:
    top = min(rows, key=lambda row: int(row["spine_place"]))
    off = top["spine_off_mean_percent"]
    if off is None:
        return "No bytes passed the spines"
    less = f"{top['spine']} {_off_mean(top['direction'], off)}"
    if abs(off) < top["spine_threshold_percent"]:
        return f"Spines are even: {less} than their mean, the largest difference"
    return f"Spines are uneven: {less} than their mean"


def _spines_say(rows: Sequence[Values]) -> str:
    leaves = distinct(rows, "leaf")
    limit = percent(rows[0]["spine_threshold_percent"])
    return (
        f"Bytes between each spine and the {count(len(leaves), 'leaf')} that are loaded, in percent off the mean of "
        f"the spines. A spine is uneven from {limit} on (dashed). An uplink without data takes bytes from its spine."
    )


def _spines_chart(rows: Sequence[Values]) -> list[Panel]:
    groups = []
    for spine in sorted(distinct(rows, "spine"), key=by_number):
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


def balance_title(rows: Sequence[Values]) -> str:
    """Return a title that says if ECMP is fair: the least even leaves with the reason, and the least even spine."""
    top = foremost(rows)
    off, spine = percent(top["cov_percent"]), top["spine"] if top["spine_off_percent"] is not None else None
    uneven = sorted((row for row in rows if row["uneven"] == "true"), key=lambda row: int(row["place"]))
    even = [row for row in rows if row["judged"] == "true" and row["uneven"] != "true"]
    exceptions = [f"{row['switch']} {row['direction']}" for row in uneven[:3]]
    if len(uneven) == 1:
        lost = f", {top['one_way_uplinks']} carries no data" if top["one_way_uplinks"] else ""
        exceptions = [f"{exceptions[0]} (standard deviation {off}{lost})"]
    elif uneven:
        exceptions[-1] += (
            f"{f' and {len(uneven) - 3} more' if len(uneven) > 3 else ''} (standard deviation up to {off})"
        )
    rest = [f"standard deviation on other leaves at most {percent(foremost(even)['cov_percent'])}"] if even else []
    if not uneven:
        rest = [f"standard deviation on a leaf at most {off} ({top['switch']}, {top['direction']})"]
    if spine and top["spine_uneven"] == "true":
        exceptions.append(f"{spine} ({_off_mean(top['spine_direction'], top['spine_off_percent'])})")
    elif spine:
        rest.append(f"spines within {percent(abs(top['spine_off_percent']))}")
    fair = f"ECMP is fair but for {listed(exceptions)}" if exceptions else "ECMP is fair"
    return "; ".join(filter(None, [fair, ", ".join(rest)]))


def _balance_says(rows: Sequence[Values]) -> str:
    uneven = [row for row in rows if row["uneven"] == "true"]
    limit = percent(rows[0]["threshold_percent"])
    judged = [row for row in rows if row["judged"] == "true"]
    text = "Standard deviation of bytes over the uplinks of a leaf, in percent of their mean. "
    of = f"{count(len(judged), 'direction')} of {count(len(distinct(judged, 'switch')), 'leaf')}"
    text += f"A leaf is uneven from {limit} on (dashed): here {len(uneven)} of {of}."
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
        groups,
        "standard deviation of bytes, % of their mean",
        "How evenly uplinks share",
        keys,
        rows[0]["threshold_percent"],
    )


def _balance_tip(row: Values) -> str:
    lost = f", {row['one_way_uplinks']} carries no data" if row["one_way_uplinks"] else ""
    over = count(row["uplinks"], "uplink")
    return f"{row['switch']} {row['direction']}: {percent(row['cov_percent'])} over {over}{lost}"


def suspects(cluster: Mapping[str, str], place: str) -> Figure:
    """Return the list of suspect links."""
    return Figure(
        "suspects",
        lambda rows: f"{count(len(rows), 'suspect link')}, each with its evidence",
        lambda rows: (
            "A suspect link carries no data one way, or the workbook and the traffic contradict each other. "
            "No table corrects the workbook."
        ),
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
        "How evenly spines are used",
        "No uplinks with traffic are loaded.",
        _spines_chart,
        parameters,
        ("metrics.port_hour", "metrics.spine_hour"),
        f"sql -q spine-balance --hour {parameters['hour'][:13].replace(' ', 'T')}:00",
        "spines",
        place,
    )
