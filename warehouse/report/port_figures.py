"""Port utilization, on the front panel of each switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from warehouse.report.figure import Figure, Values
from warehouse.report.svg import LETTER, WIDTH, Key, Panel, cross, legend, percent
from warehouse.report.theme import STEPS, step

PORT, GAP = 10.5, 7.0
"""Side of a port, and gap between roles, in SVG units."""
TOP = 32
"""Height above the ports: name of the switch, names of suspect ports."""


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
    """Draw a switch: odd slots above, even ones below, a split port as two halves."""
    split = any(_number(row["port"])[1] for row in rows)
    high = PORT * (2 if split else 1)
    panel = Panel(TOP + 2 * high + 24, f"Ports of {name}", leaf=name)
    fullest = max(rows, key=lambda row: row["fuller_percent"] or 0)
    panel.text(0, 11, name, "b")
    panel.text(WIDTH, 11, f"fullest {fullest['port']}: {percent(fullest['fuller_percent'])}", "soft e")
    columns = sorted({(_number(row["port"])[0] + 1) // 2 for row in rows})
    roles = {at: next(str(row["role"]) for row in rows if (_number(row["port"])[0] + 1) // 2 == at) for at in columns}
    places, starts, side = _columns(roles)
    suspects = []
    for row in rows:
        slot, part = _number(row["port"])
        x, y = places[(slot + 1) // 2], TOP + (0 if slot % 2 else high + 3) + (PORT if part == 2 else 0)
        _port(panel, row, x, y, side - 1, (PORT if part else high) - 1)
        if row["suspect"]:
            suspects.append((x + side / 2 - 0.5, y, str(row["port"])))
    _name_suspects(panel, sorted(suspects))
    _name_blocks(panel, starts, TOP + 2 * high + 16)
    return panel


def _name_blocks(panel: Panel, starts: Sequence[tuple[float, str]], y: float) -> None:
    """Write the role of each block below its start; a label without room goes to a second line."""
    ends = [0.0, 0.0]
    for start, role in starts:
        x = min(start, WIDTH - LETTER * len(role))
        line = next((line for line, end in enumerate(ends) if x >= end), None)
        if line is not None:
            panel.text(x, y + 13 * line, role, "soft")
            ends[line] = x + LETTER * len(role) + 6
    panel.height += 13 if ends[1] else 0


def _columns(roles: Mapping[int, str]) -> tuple[dict[int, float], list[tuple[float, str]], float]:
    """Return the x of each column, the start of each block of one role with the role, and the width of a column.

    A block is as wide as its label where all blocks fit so.
    """
    blocks = [(role, list(of)) for role, of in groupby(roles, key=lambda at: roles[at])]
    gaps = GAP * (len(blocks) - 1)
    side = min(PORT, (WIDTH - gaps) / len(roles))
    widths = [max(side * len(of), LETTER * len(role)) for role, of in blocks]
    if sum(widths) + gaps > WIDTH:
        widths = [side * len(of) for _, of in blocks]
    places, starts, x = {}, [], 0.0
    for (role, of), width in zip(blocks, widths, strict=True):
        starts.append((x, role))
        places.update({at: x + side * rank for rank, at in enumerate(of)})
        x += width + GAP
    return places, starts, side


def _name_suspects(panel: Panel, suspects: Sequence[tuple[float, float, str]]) -> None:
    """Write the names of suspect ports above the ports, each with a line to its ✕."""
    end = 0.0
    for x, y, port in suspects:
        width = LETTER * len(port)
        start = max(end, min(x - width / 2, WIDTH - width))
        if start + width > WIDTH + LETTER:
            continue  # its tooltip has the name
        panel.text(start, TOP - 5, port, "soft")
        panel.path(f"M{min(max(x, start), start + width):.1f} {TOP - 3}L{x:.1f} {y:.1f}", "axis")
        end = start + width + 6


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
