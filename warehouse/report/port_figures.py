"""Port utilization, on the front panel of each switch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, cross, legend, percent
from warehouse.report.theme import STEPS, step

PORT, GAP = 10.5, 7.0
"""Side of a port, and gap between roles, in SVG units."""
TOP = 20
"""Height above the ports: name of the switch."""


def _number(port: str) -> tuple[int, int]:
    """Return the slot of a port on the front panel, and its part if the cable is split.

    >>> _number("1/0/24:2"), _number("1/0/35")
    ((24, 2), (35, 0))
    """
    slot, _, part = port.rpartition("/")[2].partition(":")
    return (int(slot) if slot.isdigit() else 0), (int(part) if part.isdigit() else 0)


def _chart(rows: Sequence[Values]) -> list[Panel]:
    words = [
        "idle",
        f"under {STEPS[0]:g} %",
        *(f"{low:g}-{high:g} %" for low, high in pairwise(STEPS)),
    ]
    words.append(f"{STEPS[-1]:g} % and more")
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
    panel = Panel(TOP + 2 * high + (37 if is_tight else 24), f"Ports of {name}", leaf=name)
    fullest = max(rows, key=lambda row: row["fuller_percent"] or 0)
    panel.text(0, 11, name, "b")
    panel.text(WIDTH, 11, f"fullest {fullest['port']}: {percent(fullest['fuller_percent'])}", "soft e")
    places, x = dict[int, float](), 0.0
    for rank, ((role, columns), width) in enumerate(zip(blocks, widths, strict=True)):
        line = rank % 2 if is_tight else 0  # names of narrow blocks stand on two lines in turn
        panel.text(min(x, WIDTH - LETTER * len(role)), TOP + 2 * high + 16 + 13 * line, role, "soft")
        places |= {column: x + side * at for at, column in enumerate(columns)}
        x += (side * len(columns) if is_tight else width) + GAP
    for row in rows:
        slot, part = _number(row["port"])
        y = TOP + (0 if slot % 2 else high + 3) + (PORT if part == 2 else 0)
        _port(panel, row, places[(slot + 1) // 2], y, side - 1, (PORT if part else high) - 1)
    return panel


def _port(panel: Panel, row: Values, x: float, y: float, width: float, height: float) -> None:
    other = " ".join(filter(None, [row["server"], row["nic"]])) or row["peer_switch"] or "nothing known at its end"
    tip = f"{row['switch']} {row['port']} {row['role']}, {other}: "
    tip += f"in {percent(row['in_percent'])}, out {percent(row['out_percent'])}"
    tip += f"; suspect: {row['suspect']}" if row["suspect"] else ""
    at = {"leaf": row["switch"], "server": row["server"] or ""}
    panel.rect(x, y, width, height, f"p {step(row['fuller_percent'])}", tip, **at)
    if row["suspect"]:
        panel.path(cross(x + width / 2, y + height / 2, 4.5), "cross", tip, **at)


PORTS = Figure("ports", "Ports by utilization", "No port counters are loaded.", _chart, "sql -q busiest-ports")
