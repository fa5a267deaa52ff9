"""Shared charts: bars, shares of a whole, distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from warehouse.report.svg import (
    LETTER,
    WIDTH,
    Key,
    Panel,
    Scale,
    decades,
    legend,
    linear,
    logarithmic,
    short,
    ticks,
    x_axis,
    y_axis,
)

SHARES = (0, 25, 50, 75, 100)
BAR = 13
"""Height of a bar."""


class Bar(NamedTuple):
    """A bar; several bars can share a label."""

    value: float
    kind: str
    tip: str
    mark: float | None = None
    """Position of a second value, drawn as a line across the bar."""
    note: str = ""
    """Words after the value, where `dots` shows it."""


class Bars(NamedTuple):
    """A label and its bars."""

    label: str
    bars: Sequence[Bar]
    leaf: str = ""
    server: str = ""


class Curve(NamedTuple):
    """A distribution: sorted values."""

    name: str
    kind: str
    values: Sequence[float]


def _rows(
    label: str, names: Sequence[str], bottom: float, at: Sequence[float], right: float, unit: str, *,
    room: float = 150, words: Callable[[float], str] | None = None,
    of: Callable[[float, float, float, float], Scale] = linear,
) -> tuple[Panel, Scale, float]:  # fmt: skip
    """Return a panel with names at the left and an axis below, its scale, and where the rows begin."""
    left = min(room, 10 + LETTER * max(map(len, names)))
    panel, scale = Panel(bottom + 36, label), of(at[0], at[-1], left, right)
    x_axis(panel, at, scale, 2, bottom, unit, words)
    return panel, scale, left


def bars(groups: Sequence[Bars], unit: str, label: str, keys: Sequence[Key] = ()) -> list[Panel]:
    """Return horizontal bars from zero with their values at the end, and a legend."""
    values = [value for group in groups for bar in group.bars for value in (bar.value, bar.mark or 0)]
    # Zeros alone need an axis, too.
    at = ticks(max(values) or 1.0)
    widest = max(len(short(bar.value)) for group in groups for bar in group.bars)
    rows = [BAR * len(group.bars) + 6 for group in groups]
    bottom = 6 + sum(rows)
    names = [group.label for group in groups]
    panel, scale, left = _rows(label, names, bottom, at, WIDTH - LETTER * widest - 8, unit)
    y = 6.0
    for group, height in zip(groups, rows, strict=True):
        middle = y + BAR * len(group.bars) / 2
        panel.text(left - 6, middle + 4, _cut(group.label, left), "e", leaf=group.leaf, server=group.server)
        for row, bar in enumerate(group.bars):
            top = y + row * BAR
            end = scale(bar.value)
            panel.rect(left, top + 1, end - left, BAR - 2, bar.kind, bar.tip, leaf=group.leaf, server=group.server)
            panel.text(
                max(end, scale(bar.mark or 0)) + 4,
                top + BAR - 3,
                short(bar.value),
                "v",
                leaf=group.leaf,
                server=group.server,
            )
            if bar.mark is not None:
                panel.path(f"M{scale(bar.mark):.1f} {top - 1:.1f}v{BAR + 2}", "line s-bad")
        y += height
    panel.path(f"M{left:.1f} 2V{bottom:.1f}", "axis")
    return [legend(keys), panel] if keys else [panel]


def dots(groups: Sequence[Bars], unit: str, label: str, keys: Sequence[Key], limit: float) -> list[Panel]:
    """Return a row per label with a point per value; the farthest is labeled from `limit` on, or below its negative."""
    values = [bar.value for group in groups for bar in group.bars]
    is_signed = min(values, default=0) < 0
    at = ticks(max(abs(value) for value in [*values, limit]), 3 if is_signed else 5)
    at = [-value for value in at[:0:-1]] + at if is_signed else at
    bottom = 4 + 16 * len(groups)
    panel, scale, left = _rows(label, [group.label for group in groups], bottom, at, WIDTH - 40, unit)
    for one in (-limit, limit) if is_signed else (limit,):
        panel.path(f"M{scale(one):.1f} 2V{bottom:.1f}", "limit")
    for row, group in enumerate(groups):
        y = 12 + 16 * row
        panel.text(left - 6, y + 4, _cut(group.label, left), "e", leaf=group.leaf)
        panel.path(f"M{left:.1f} {y}H{scale(at[-1]):.1f}", "grid")
        for bar in group.bars:
            panel.circle(scale(bar.value), y, 4.5, f"p {bar.kind}", bar.tip, leaf=group.leaf)
        most = max(group.bars, key=lambda one: abs(one.value), default=None)
        if most and abs(most.value) >= limit:
            text = " ".join(filter(None, [short(most.value), most.note]))
            fits = most.value >= 0 and scale(most.value) + 8 + LETTER * len(text) <= WIDTH
            kind = ("v soft" if most.note else "v b") + ("" if fits else " e")
            panel.text(scale(most.value) + (8 if fits else -8), y + 4, text, kind, leaf=group.leaf)
    return [legend(keys), panel]


def shares(groups: Sequence[Bars], label: str, keys: Sequence[Key], unit: str) -> list[Panel]:
    """Return stacked bars of 100 %, with the parts in one order everywhere."""
    names = [group.label for group in groups]
    panel, scale, left = _rows(label, names, 4 + 20 * len(groups), SHARES, WIDTH - 14, unit, room=200)
    for row, group in enumerate(groups):
        y, x = 4 + 20 * row, left
        panel.text(left - 6, y + 12, _cut(group.label, left), "e")
        for bar in group.bars:
            end = x + scale(bar.value) - left
            panel.rect(x, y, end - x, 16, f"p {bar.kind}", bar.tip)
            x = end
    return [legend(keys), panel]


def ranges(groups: Sequence[tuple[str, Sequence[float], str]], label: str, unit: str,
           words: Callable[[float], str], at: Sequence[float]) -> list[Panel]:  # fmt: skip
    """Return five-number rows: thin line for the range, thick line for the inner three, point for the median."""
    names = [name for name, _, _ in groups]
    panel, scale, left = _rows(label, names, 4 + 20 * len(groups), at, WIDTH - 18, unit, words=words, of=logarithmic)
    for row, (name, five, tip) in enumerate(groups):
        y = 14 + 20 * row
        low, lower, middle, upper, high = (scale(value) for value in five)
        panel.text(left - 6, y + 4, _cut(name, left), "e")
        panel.path(f"M{low:.1f} {y}H{high:.1f}", "line s-access", tip)
        panel.rect(lower, y - 5, max(upper - lower, 1), 10, "access", tip, opacity=0.45)
        panel.circle(middle, y, 4, "access", tip)
    panel_legend = legend([Key("line s-access", "10 to 90 % of jobs"), Key("access", "25 to 75 %, point: median")])
    return [panel_legend, panel]


def distribution(curves: Sequence[Curve], label: str, unit: str, what: str) -> list[Panel]:
    """Return cumulative shares; the axis is logarithmic if values span over a decade, with zeros at the left."""
    left, top, bottom, right = 46, 22, 190, WIDTH - 16
    found = [value for curve in curves for value in curve.values if value > 0]
    low, high = (min(found), max(found)) if found else (1.0, 10.0)
    log = high / low > 10
    at = decades(low, high) if log else ticks(high, low=low if high - low < low else 0.0)
    scale = logarithmic(at[0], at[-1], left, right) if log else linear(at[0], at[-1], left, right)
    share = linear(0, 100, bottom, top)
    panel = Panel(bottom + 36, label)
    panel.text(2, 10, what, "soft")
    x_axis(panel, at, scale, top, bottom, unit)
    y_axis(panel, SHARES, share, left, right)
    for curve in curves:
        values, many = sorted(curve.values), len(curve.values)
        steps, before = [f"M{left} {bottom}"], None
        for rank, value in enumerate(values, 1):
            # Of equal values, only the last one has the share of all of them.
            if rank < many and values[rank] == value:
                continue
            here = (f"{scale(max(value, at[0])):.1f}", f"{share(100 * rank / many):.1f}")
            # Values at one place of the picture would only make the page larger.
            if here != before:
                steps.append(f"H{here[0]}V{here[1]}")
                before = here
        panel.path("".join([*steps, f"H{right}"]), f"line {curve.kind}", curve.name)
    return [legend([Key(f"line {curve.kind}", curve.name) for curve in curves]), panel]


def _cut(text: str, room: float) -> str:
    """Return a label that fits, cut in its middle: names often differ at their end."""
    most = int((room - 8) / LETTER) + 1
    return text if len(text) <= most else f"{text[: most // 2]}…{text[most // 2 + 1 - most :]}"
