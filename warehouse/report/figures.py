"""Charts of the report's figures: the network in an hour, job traces, training tasks, and how far to trust them.

Minutes without a poll are hatched, never drawn as zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from warehouse.base.text import few, natural, plural, size
from warehouse.report.charts import (
    LETTER,
    WIDTH,
    Bar,
    Bars,
    Key,
    Panel,
    Values,
    bars,
    cross,
    distinct,
    distribution,
    dots,
    legend,
    linear,
    percent,
    ranges,
    shares,
    short,
    ticks,
    x_axis,
    y_axis,
)

GOES = {"out": "leaf to spine (out)", "in": "spine to leaf (in)"}
CELL, TOP = 22, 34
"""Height of a matrix cell, and of what is above the cells."""
FAINT = 0.8
"""Largest opacity of a deviation's color; text on it stays readable."""
PORT, GAP = 10.5, 7.0
"""Side of a port, and gap between roles, in SVG units."""
PANEL_TOP = 20
"""Height above the ports: name of the switch."""
STEPS = (1.0, 5.0, 10.0, 20.0, 40.0)
"""Utilization thresholds in percent for the color steps u2 to u6; u0 is idle."""
HOUR = (0.0, 15.0, 30.0, 45.0, 60.0)
SWITCH_ROW = 15
"""Height of a switch in the coverage figure."""
JOB_ROW, STRIP = 66, 26
"""Height of a job, and of its rates."""
LEFT = 8
"""Start of the hour; its end is as far from the other edge."""
VERDICTS = {"reproduced": "access", "differs": "out", "contradicted": "bad"}
SIZES = {"1": "u2", "2-7": "u3", "8-63": "u4", "64 and more": "u6"}
ENDS = {"completed": "access", "failed": "bad", "canceled": "out", "other": "none"}
TIMES = {1.0: "1 s", 60.0: "1 min", 3600.0: "1 h", 86400.0: "1 d", 864000.0: "10 d"}
"""Numbers on the axis of run times, in seconds."""


def links(rows: Sequence[Values]) -> list[Panel]:
    """Draw a matrix of leaves and spines for each direction, with the deviation from an even share in each cell."""
    keys = [
        Key("lost", "✕ an uplink carries no data"),
        Key("access", "less than even"),
        Key("bad", "more"),
        Key("u0", "even"),
    ]
    return [legend(keys), *(_matrix(rows, way) for way in ("out", "in"))]


def _deviation(panel: Panel, row: Values, x: float, y: float, width: float) -> None:
    off, is_lost, at = row["off_even_percent"], bool(row["one_way_uplinks"]), {"leaf": row["leaf"]}
    way = " to ".join((row["leaf"], row["spine"]) if row["direction"] == "out" else (row["spine"], row["leaf"]))
    tip = f"{way}: {size(row['bytes'])}, {percent(off)} off even, {plural(row['uplinks'], 'uplink')}"
    text = "" if off is None else f"{off:+.0f}" if round(off) else "0"
    panel.rect(x, y, width - 1, CELL - 1, "u0", tip, **at)
    if is_lost:
        most = short(row["fullest_over_mean"])
        tip += (
            f"; {row['leaf']} {row['one_way_ends']} carries no data {row['direction']}ward; "
            f"the fullest uplink between them carries {most} times the mean of the leaf's"
        )
        panel.rect(x, y, width - 1, CELL - 1, "lost", tip, **at)
        text = f"✕ max {row['fullest_over_mean'] or 0:.2f}x"
        text = text if width >= len(text) * LETTER else "✕"
    elif off is not None:
        # The strongest color is at 50 % off even. Below 1, the exponent makes small deviations visible.
        strength = min(abs(off) / 50, 1) ** 0.7 * FAINT
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
    leaves, across = (sorted(distinct(rows, end), key=natural) for end in ("leaf", "spine"))
    heads = [spine.removeprefix("spine-") for spine in across]
    panel, left, width = _frame(f"{GOES[way]}, leaves down, spines across", leaves, heads)
    panel.text(left, 12, GOES[way], "b")
    panel.text(left - 6, TOP - 5, "spine", "soft e")
    for row in rows:
        if row["direction"] == way:
            x, y = left + across.index(row["spine"]) * width, TOP + leaves.index(row["leaf"]) * CELL
            _deviation(panel, row, x, y, width)
    return panel


def pairs(rows: Sequence[Values]) -> list[Panel]:
    """Draw the bytes from leaf to leaf: senders down, receivers across, the width of the bounds in each cell."""
    names = distinct(rows, "src")
    heads = [one.replace("ST-leaf-", "S").removeprefix("Leaf-").replace("outside", "out") for one in names]
    panel, left, width = _frame("Bytes from leaf to leaf, senders down, receivers across", names, heads)
    for row in rows:
        x, y = left + names.index(row["dst"]) * width, TOP + names.index(row["src"]) * CELL
        tip = (
            f"{row['src']} to {row['dst']}: {size(row['bytes_estimate'])}, by the counters at least "
            f"{size(row['bytes_low'])} and at most {size(row['bytes_high'])}; estimated from {row['evidence']}"
        )
        # Bytes of pairs differ by orders of magnitude: without the root, most cells would look empty.
        strength = ((row["of_largest_percent"] or 0) / 100) ** 0.5 * FAINT
        panel.rect(x, y, width - 1, CELL - 1, "u0", tip, leaf=row["src"])
        panel.rect(x, y, width - 1, CELL - 1, "access", tip, opacity=strength, leaf=row["src"])
        # A width of more digits than three says nothing but large.
        known = row["width_percent"] is not None and row["width_percent"] < 999.5
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


def spines(rows: Sequence[Values]) -> list[Panel]:
    """Draw the deviation of each spine from the mean of the spines."""
    ordered = sorted(rows, key=lambda row: natural(row["spine"]))
    unit = "bytes off the mean of the spines, %"
    return _points(
        ordered, "spine", "spine_off_mean_percent", unit, "How evenly spines are used", "spine_threshold_percent"
    )


def balance(rows: Sequence[Values]) -> list[Panel]:
    """Draw the spread of each switch over its uplinks."""
    unit = "standard deviation of bytes, % of their mean"
    return _points(rows, "switch", "cov_percent", unit, "How evenly uplinks share", "threshold_percent")


def _number(port: str) -> tuple[int, int]:
    """Return the slot of a port on the front panel, and its part if the cable is split.

    >>> _number("1/0/24:2"), _number("1/0/35")
    ((24, 2), (35, 0))
    """
    slot, _, part = port.rpartition("/")[2].partition(":")
    return (int(slot) if slot.isdigit() else 0), (int(part) if part.isdigit() else 0)


def ports(rows: Sequence[Values]) -> list[Panel]:
    """Draw the front panel of each switch, with each port in the color of its utilization."""
    words = [
        "idle",
        f"under {STEPS[0]:g} %",
        *(f"{low:g}-{high:g} %" for low, high in pairwise(STEPS)),
        f"{STEPS[-1]:g} % and more",
    ]
    keys = [Key(f"p u{at}", text) for at, text in enumerate(words)] + [Key("cross", "suspect")]
    return [legend(keys), *(_switch(name, list(of)) for name, of in groupby(rows, key=lambda row: str(row["switch"])))]


def _switch(name: str, rows: Sequence[Values]) -> Panel:
    """Draw a switch: odd slots above, even ones below, a split port as two halves; ports of a role stand together."""
    # In reverse, so that the first port of a column decides its role.
    of_column = {(_number(row["port"])[0] + 1) // 2: str(row["role"]) for row in reversed(rows)}
    blocks = [(role, list(of)) for role, of in groupby(sorted(of_column), key=of_column.__getitem__)]
    side = min(PORT, (WIDTH - GAP * (len(blocks) - 1)) / len(of_column))
    high = PORT * (2 if any(_number(row["port"])[1] for row in rows) else 1)
    widths = [max(side * len(columns), LETTER * len(role)) for role, columns in blocks]
    is_tight = sum(widths) + GAP * (len(blocks) - 1) > WIDTH
    panel = Panel(PANEL_TOP + 2 * high + (37 if is_tight else 24), f"Ports of {name}", leaf=name)
    fullest = max(rows, key=lambda row: row["fuller_percent"] or 0)
    panel.text(0, 11, name, "b")
    panel.text(WIDTH, 11, f"fullest {fullest['port']}: {percent(fullest['fuller_percent'])}", "soft e")
    places, x = dict[int, float](), 0.0
    for rank, ((role, columns), width) in enumerate(zip(blocks, widths, strict=True)):
        line = rank % 2 if is_tight else 0  # names of narrow blocks stand on two lines in turn
        panel.text(min(x, WIDTH - LETTER * len(role)), PANEL_TOP + 2 * high + 16 + 13 * line, role, "soft")
        places |= {column: x + side * at for at, column in enumerate(columns)}
        x += (side * len(columns) if is_tight else width) + GAP
    for row in rows:
        slot, part = _number(row["port"])
        y = PANEL_TOP + (0 if slot % 2 else high + 3) + (PORT if part == 2 else 0)
        _port(panel, row, places[(slot + 1) // 2], y, side - 1, (PORT if part else high) - 1)
    return panel


def _port(panel: Panel, row: Values, x: float, y: float, width: float, height: float) -> None:
    other = " ".join(filter(None, [row["server"], row["nic"]])) or row["peer_switch"] or "nothing known at its end"
    suspect = f"; suspect: {row['suspect']}" if row["suspect"] else ""
    tip = (
        f"{row['switch']} {row['port']} {row['role']}, {other}: "
        f"in {percent(row['in_percent'])}, out {percent(row['out_percent'])}{suspect}"
    )
    at = {"leaf": row["switch"], "server": row["server"] or ""}
    panel.rect(x, y, width, height, f"p {step(row['fuller_percent'])}", tip, **at)
    if row["suspect"]:
        panel.path(cross(x + width / 2, y + height / 2, 4.5), "cross", tip, **at)


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


def coverage(rows: Sequence[Values]) -> list[Panel]:
    """Draw the minutes of each switch that were observed."""
    left = 8 + LETTER * max(len(str(row["switch"])) for row in rows)
    scale = linear(0, 60, left, WIDTH - 8)
    bottom = 4 + SWITCH_ROW * len(rows)
    panel = Panel(bottom + 36, "Minutes that were observed, by switch")
    for at, row in enumerate(rows):
        leaf, y = str(row["switch"]), 4 + SWITCH_ROW * at
        is_loaded = row["loaded"] == "true"
        panel.text(left - 6, y + 11, leaf, "e" if is_loaded else "e soft", leaf=leaf)
        for state, start, end in _spans(row):
            box, tip = (scale(start), y, scale(end) - scale(start), SWITCH_ROW - 3), f"{leaf}, {_between(start, end)}: "
            if not is_loaded:
                panel.hatch(*box, f"{leaf}: no port counters are loaded")
                panel.path(f"M{box[0]:.1f} {y}h{box[2]:.1f}v{SWITCH_ROW - 3}h{-box[2]:.1f}z", "edge")
            elif state == ".":
                panel.rect(*box, "access", f"{tip}seen, a poll every {short(row['median_poll_ms'])} ms", leaf=leaf)
            else:
                known = f"no poll; the sum is known, {percent(row['gap_bytes_percent'])} of the bytes in"
                panel.rect(*box, "out", f"{tip}no poll", opacity=0.45, leaf=leaf)
                panel.hatch(*box, f"{tip}{known}")
    x_axis(panel, HOUR, scale, 2, bottom, "minute of the hour")
    return [legend([Key("access", "polled"), Key("hatch", "not polled (orange: sum known)")]), panel]


def minutes(rows: Sequence[Values]) -> list[Panel]:
    """Draw the rates of each leaf by the minute."""
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


def jobs_in_hour(rows: Sequence[Values]) -> list[Panel]:
    """Draw the rates of each job by the minute, and those of servers in no job."""
    jobs, others = ([row for row in rows if (row["job_id"] is None) == other] for other in (False, True))
    # Twelve jobs are drawn, the table has all. More than five rows are split into two panels.
    shown = [*jobs[:12], *others]
    half = len(shown) if len(shown) <= 5 else -(-len(shown) // 2)
    keys = [Key("access", "a job"), Key("none", "no job"), Key("hatch", "no poll: mean of the gap")]
    return [legend(keys), *(_panel(shown[at : at + half]) for at in range(0, len(shown), half))]


def _panel(rows: Sequence[Values]) -> Panel:
    bottom = JOB_ROW * len(rows) + 2
    panel = Panel(bottom + 36, f"Jobs in this hour, rates by the minute: {', '.join(map(_job, rows))}")
    scale = linear(0, 60, LEFT, WIDTH - LEFT)
    second = LEFT + 7.6 * max(len(_job(row)) for row in rows) + 8  # bold letters are wider
    for at, row in enumerate(rows):
        top, who = JOB_ROW * at, str(row["which"])
        unknown = plural(row["servers"], "server") if row["job_id"] is None else "period not resolved"
        share = percent(row["bytes_percent"]) if row["bytes_percent"] else "< 0.1 %"
        panel.text(LEFT, top + 12, _job(row), "b", server=who)
        panel.text(second, top + 12, f"every {row['period']}" if row["period"] else unknown, server=who)
        panel.text(WIDTH - LEFT, top + 12, share, "b e", server=who)
        panel.text(LEFT, top + 27, few(str(row["on_leaves"] or "").split(), 4), "soft", server=who)
        panel.text(WIDTH - LEFT, top + 27, size(row["bytes"]), "soft e", server=who)
        _profile(panel, row, top + 33)
    x_axis(panel, HOUR, scale, bottom - 5, bottom, "minute of the hour")
    return panel


def _job(row: Values) -> str:
    return str(row["job"]) if row["job_id"] is not None else "in no job"


def _profile(panel: Panel, row: Values, top: float) -> None:
    """Draw the rate of each minute as steps, filled to the base line."""
    x, base, who = linear(0, 60, LEFT, WIDTH - LEFT), top + STRIP, str(row["which"])
    for at in HOUR:
        panel.path(f"M{x(at):.1f} {top}V{base}", "grid")
    if not row["gbps"]:
        panel.hatch(LEFT, top, x(60) - LEFT, STRIP, f"{_job(row)}: the minutes of this hour were dropped")
        return
    y = linear(0, max(row["highest_gbps"], 1e-9), base, top)
    gap = (row["opening_gap_seconds"] or 0) / 60
    kind, busiest = "none" if row["job_id"] is None else "access", row["gbps"].index(max(row["gbps"]))
    tip = (
        f"{_job(row)}: {plural(row['servers'], 'server')}, {size(row['bytes'])}; "
        f"highest in minute {busiest}, {short(row['highest_gbps'])} Gb/s"
    )
    steps = [f"V{y(value):.1f}H{x(minute + 1):.1f}" for minute, value in enumerate(row["gbps"])]
    panel.path("".join([f"M{x(0):.1f} {base}", *steps, f"V{base}z"]), kind, tip, server=who)
    if gap:
        panel.rect(LEFT, top, x(gap) - LEFT, STRIP, "u0", opacity=0.7)
        panel.hatch(LEFT, top, x(gap) - LEFT, STRIP, f"{_job(row)}: no poll in the first {gap * 60:.0f} s")
    panel.path(f"M{LEFT} {base}H{x(60):.1f}", "axis")


def servers(rows: Sequence[Values]) -> list[Panel]:
    """Draw what the busiest servers received and sent."""
    shown = [
        Bars(
            str(row["server"]),
            [
                Bar(row["rx_gbps"], "in", f"{row['server']} received {short(row['rx_gbps'])} Gb/s"),
                Bar(row["tx_gbps"], "out", f"{row['server']} sent {short(row['tx_gbps'])} Gb/s"),
            ],
            server=str(row["server"]),
        )
        for row in rows[:10]
    ]
    keys = [Key("in", "received"), Key("out", "sent")]
    return bars(shown, "Gb/s, mean of the hour", "The busiest servers", keys)


def step(percent: float | None) -> str:
    """Return the class of a utilization.

    >>> step(0.0), step(0.3), step(34.5), step(None)
    ('u0', 'u1', 'u5', 'u0')
    """
    if not percent:
        return "u0"
    return f"u{1 + sum(percent >= one for one in STEPS)}"


def _name(row: Values) -> str:
    return f"{row['trace']} {row['cluster']}"


def durations(rows: Sequence[Values]) -> list[Panel]:
    """Draw the quantiles of the run times of each cluster's jobs."""
    columns = ("p10_seconds", "p25_seconds", "median_seconds", "p75_seconds", "p90_seconds")
    shown = [
        (
            _name(row),
            [row[name] for name in columns],
            f"{_name(row)}: median {short(row['median_seconds'])} s of {plural(row['jobs'], 'job')}",
        )
        for row in sorted(rows, key=lambda row: int(row["place"]))
    ]
    return ranges(shown, "Run times of GPU jobs", "run time", TIMES.__getitem__, list(TIMES))


def _parts(rows: Sequence[Values], column: str, kinds: Mapping[str, str], label: str, words: str) -> list[Panel]:
    """Draw the GPU time of each cluster by category."""
    groups: dict[str, dict[str, Bar]] = {_name(row): {} for row in rows}
    for row in rows:
        share, kind = row["gpu_time_percent"], kinds.get(row[column], "none")
        tip = f"{_name(row)}, {row[column]}: {percent(share)} of GPU time, {percent(row['jobs_percent'])} of jobs"
        groups[_name(row)][row[column]] = Bar(share or 0, kind, tip)
    drawn = [Bars(name, [parts[one] for one in kinds if one in parts]) for name, parts in groups.items()]
    keys = [Key(kind, f"{one}{words}".replace("1 GPUs", "1 GPU")) for one, kind in kinds.items()]
    return shares(drawn, label, keys, "% of GPU time")


def sizes(rows: Sequence[Values]) -> list[Panel]:
    """Draw the GPU time of each cluster by the size of its jobs."""
    return _parts(rows, "gpus", SIZES, "GPU time by size of jobs", " GPUs")


def states(rows: Sequence[Values]) -> list[Panel]:
    """Draw the GPU time of each cluster by how its jobs end."""
    return _parts(rows, "outcome", ENDS, "GPU time by how jobs end", "")


def iterations(rows: Sequence[Values]) -> list[Panel]:
    """Draw the distribution of each task's times of iterations."""
    curves = [(f"{row['task']} ({row['iterations']:,})", row["seconds_by_percent"]) for row in rows]
    return distribution(curves, "Times of iterations", "seconds of an iteration", "% of the iterations")


def allocation(rows: Sequence[Values]) -> list[Panel]:
    """Draw the distribution of each cluster's GPUs in use."""
    curves = [(_name(row), row["percents"]) for row in rows]
    return distribution(curves, "GPUs in use", "% of the cluster's GPUs in use", "% of the time")


def traffic(rows: Sequence[Values]) -> list[Panel]:
    """Draw the bytes that each task sent, beside those that are expected."""
    groups = []
    for row in (one for one in rows if one["tx_bytes"] is not None):
        expected, is_shared = row["expected_implemented_bytes"], (row["tasks_on_nic"] or 0) > 1
        tip = f"{row['task']}: {size(row['tx_bytes'])} over {row['nics_seen']} of {plural(row['nics'], 'NIC')}"
        tip += f", NICs shared by {row['tasks_on_nic']} tasks" if is_shared else ""
        drawn = [Bar(_in_tb(row["tx_bytes"]), "out", tip, (row["expected_nominal_bytes"] or 0) / 1e12 or None)]
        if expected:
            drawn += [Bar(_in_tb(expected), "none", f"{row['task']}, expected as implemented: {size(expected)}")]
        groups.append(Bars(f"{row['task']} *" if is_shared else str(row["task"]), drawn))
    keys = [Key("out", "sent"), Key("none", "expected, as implemented"), Key("line s-bad", "expected, nominal")]
    return bars(groups, "TB sent by the NICs of a task", "Traffic of tasks", keys=keys) if groups else []


def _in_tb(count: float) -> float:
    # Three digits, since the label beside a bar shows all that it gets.
    return float(f"{count / 1e12:.3g}")


def claims(rows: Sequence[Values]) -> list[Panel]:
    """Draw the verdicts on the published figures of each source."""
    groups = []
    for source in distinct(rows, "source"):
        of = Counter(row["verdict"] for row in rows if row["source"] == source)
        parts = [
            Bar(100 * of[one] / of.total(), kind, f"{source}: {of[one]:,} of {of.total():,} {one}")
            for one, kind in VERDICTS.items()
            if of[one]
        ]
        groups.append(Bars(f"{source.removeprefix('figure/').removesuffix('.pdf')} ({of.total()})", parts))
    keys = [Key(kind, verdict) for verdict, kind in VERDICTS.items()]
    return shares(sorted(groups), "Published figures by source", keys, "% of its figures")


def conservation(rows: Sequence[Values]) -> list[Panel]:
    """Draw the difference of bytes in and out of each switch."""
    shown = []
    for row in rows:
        tip = f"{row['switch']}: {size(row['in_bytes'])} in, {size(row['out_bytes'])} out"
        shown.append(Bars(str(row["switch"]), [Bar(row["apart_ppm"], "access", tip)], leaf=str(row["switch"])))
    return bars(shown, "bytes in and out apart, parts per million", "Bytes in against bytes out")
