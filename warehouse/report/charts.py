"""Charts as SVG: panels of one width, marks with tooltips, scales and axes; bars, shares of a whole, distributions.

A chart is a list of panels, which flow side by side on wide screens and stack on phones. Charts are static SVG, shown
without a script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH = 360
"""Panel width in SVG units; on a phone a unit is about a pixel."""
LETTER = 6.9
"""Average letter width at label size, in SVG units."""
Scale = Callable[[float], float]

SHARES = (0, 25, 50, 75, 100)
BAR = 13
"""Height of a bar."""
CATEGORIES = ("access", "out", "in", "uplink", "bad", "none")
"""Colors for categories without a color of their own, in this order."""

Values = Mapping[str, Any]
"""A row by column: numbers as int or float, lists as lists, other values as text, NULL as None."""


class Panel:
    """A rectangle of marks."""

    def __init__(self, height: float, label: str, *, leaf: str = "") -> None:
        self.height, self.label, self.leaf = height, label, leaf
        self._marks: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, tip: str = "", *, opacity: float = 1.0,
        **of: str,
    ) -> None:  # fmt: skip
        """Draw a rectangle with the tooltip `tip`, `of` a `leaf` and a `server`, for the filters."""
        faint = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"'
        self._add("rect", f"{place}{faint}", kind, tip, of)

    def circle(self, x: float, y: float, radius: float, kind: str, tip: str = "", **of: str) -> None:
        """Draw a point."""
        self._add("circle", f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"', kind, tip, of)

    def path(self, steps: str, kind: str, tip: str = "", **of: str) -> None:
        """Draw a line through `steps`, in SVG path syntax."""
        self._add("path", f'd="{steps}"', kind, tip, of)

    def line(self, points: Sequence[tuple[float, float] | None], kind: str, tip: str = "", **of: str) -> None:
        """Draw a line through points; None interrupts it."""
        steps, pen = [], "M"
        for point in points:
            if point is None:
                pen = "M"
                continue
            steps.append(f"{pen}{_n(point[0])} {_n(point[1])}")
            pen = "L"
        self.path("".join(steps), f"line {kind}", tip, **of)

    def text(self, x: float, y: float, text: str, kind: str = "", **of: str) -> None:
        """Write a text that begins at x; `kind` with `e` ends it there, with `m` centers it."""
        self._add("text", f'x="{_n(x)}" y="{_n(y)}"', kind, "", of, escape(text))

    def hatch(self, x: float, y: float, width: float, height: float, tip: str = "") -> None:
        """Fill a rectangle with hatching: no data."""
        steps = []
        for at in range(5, math.ceil(width + height), 5):
            right, low = min(at, width), min(at, height)  # a line turns the corner at neither end
            steps.append(f"M{_n(x + right)} {_n(y + at - right)}L{_n(x + at - low)} {_n(y + low)}")
        self.path("".join(steps), "hatch")
        if tip:
            self.rect(x, y, width, height, "", tip, opacity=0)

    def _add(self, tag: str, attributes: str, kind: str, tip: str, of: Mapping[str, str], inner: str = "") -> None:
        marked = f' class="{kind}"' if kind else ""
        # `data-l` and `data-s`, as page.js reads them.
        marked += "".join(f' data-{name[0]}="{escape(value)}"' for name, value in of.items() if value)
        inner += f"<title>{escape(tip)}</title>" if tip else ""
        self._marks.append(
            f"<{tag}{marked} {attributes}>{inner}</{tag}>" if inner else f"<{tag}{marked} {attributes}/>"
        )

    def svg(self) -> str:
        """Return the panel as an SVG element."""
        of = f' data-l="{escape(self.leaf)}"' if self.leaf else ""
        box = f"0 0 {WIDTH} {_n(self.height)}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(self.label)}"{of}>{"".join(self._marks)}</svg>'


class Key(NamedTuple):
    """A line of a legend: mark and meaning."""

    kind: str
    """Class of the mark: a box, or `line ...`, `hatch`, `cross`."""
    words: str


def legend(keys: Sequence[Key]) -> Panel:
    """Return a legend panel, wrapped into as many lines as needed."""
    made, x, y = Panel(0, "Legend: " + ", ".join(key.words for key in keys)), 0.0, 12.0
    for key in keys:
        needs = 20 + LETTER * len(key.words) + 12
        if x and x + needs > WIDTH + 12:
            x, y = 0.0, y + 18
        if key.kind.startswith("line"):
            made.path(f"M{_n(x)} {_n(y - 4)}h14", key.kind)
        elif key.kind == "hatch":
            made.hatch(x, y - 10, 14, 12)
            made.path(f"M{_n(x)} {_n(y - 10)}h14v12h-14z", "edge")
        elif key.kind == "cross":
            made.path(cross(x + 7, y - 4, 4), "cross")
        elif key.kind == "limit":
            made.path(f"M{_n(x + 7)} {_n(y - 11)}v14", "limit")
        else:
            made.rect(x, y - 10, 14, 12, key.kind)
        made.text(x + 19, y, key.words)
        x += needs
    made.height = y + 8
    return made


def cross(x: float, y: float, arm: float) -> str:
    """Return the path of a ✕."""
    return f"M{_n(x - arm)} {_n(y - arm)}l{_n(2 * arm)} {_n(2 * arm)}m0 {_n(-2 * arm)}l{_n(-2 * arm)} {_n(2 * arm)}"


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return a linear scale from [low, high] to [start, end]."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """Return a logarithmic scale; values below `low` are clamped."""
    inner = linear(math.log10(low), math.log10(high), start, end)
    return lambda value: inner(math.log10(max(value, low)))


def ticks(high: float, most: int = 5, low: float = 0.0) -> list[float]:
    """Return round axis values from `low` on, the last at `high` or just above.

    >>> ticks(34.5), ticks(7)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.0, 2.0, 4.0, 6.0, 8.0])
    """
    rough = (high - low) / max(most - 1, 1) or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    # With a tolerance, as 3 * 0.1 is more than 0.3.
    step = next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= rough * (1 - 1e-9))
    first = math.floor(low / step)
    return [round(at * step, 10) for at in range(first, math.ceil(high / step - 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return powers of ten that enclose both values, at most six.

    >>> decades(0.02, 34.5)
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    by = -(-(last - first) // 6)
    return [round(10.0**at, 12) for at in range(first, last + by, by)]


def x_axis(panel: Panel, at: Sequence[float], scale: Scale, top: float, bottom: float, title: str,
           words: Callable[[float], str] | None = None) -> None:  # fmt: skip
    """Draw vertical grid lines at `at`, their numbers below, and the axis title with its unit."""
    for value in at:
        x = scale(value)
        panel.path(f"M{_n(x)} {_n(top)}V{_n(bottom)}", "grid")
        panel.text(x, bottom + 15, (words or short)(value), "soft m")
    panel.text((scale(at[0]) + scale(at[-1])) / 2, bottom + 30, title, "soft m")


def y_axis(panel: Panel, at: Sequence[float], scale: Scale, left: float, right: float) -> None:
    """Draw horizontal grid lines at `at`, their numbers at the left."""
    for value in at:
        y = scale(value)
        panel.path(f"M{_n(left)} {_n(y)}H{_n(right)}", "grid")
        panel.text(left - 5, y + 4, short(value), "soft e")


def short(value: float | None) -> str:
    """Return a number with commas and without zeros at its end.

    >>> short(20.0), short(0.001), short(1500.0), short(2.5), short(None)
    ('20', '0.001', '1,500', '2.5', 'not known')
    """
    return "not known" if value is None else f"{value:,.12g}"


def percent(value: float | None) -> str:
    """Return a percentage with its sign."""
    return short(value) + ("" if value is None else " %")


def distinct(rows: Iterable[Values], column: str) -> list[str]:
    """Return the distinct values of a column in order of first appearance."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row[column] is not None))


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
    keys = [Key("line s-access", "10 to 90 % of jobs"), Key("access", "25 to 75 %, point: median")]
    return [legend(keys), panel]


def distribution(curves: Iterable[tuple[str, Sequence[float]]], label: str, unit: str, what: str) -> list[Panel]:
    """Return the cumulative shares of up to 12 names with values.

    The axis is logarithmic if values span over a decade, with zeros at the left.
    """
    kinds = [f"line {kind}{dash}" for dash in ("", " dash") for kind in CATEGORIES]
    drawn = [(Key(kind, name), sorted(values)) for (name, values), kind in zip(curves, kinds, strict=False)]
    left, top, bottom, right = 46, 22, 190, WIDTH - 16
    found = [value for _, values in drawn for value in values if value > 0]
    low, high = (min(found), max(found)) if found else (1.0, 10.0)
    log = high / low > 10
    at = decades(low, high) if log else ticks(high, low=low if high - low < low else 0.0)
    scale = logarithmic(at[0], at[-1], left, right) if log else linear(at[0], at[-1], left, right)
    share = linear(0, 100, bottom, top)
    panel = Panel(bottom + 36, label)
    panel.text(2, 10, what, "soft")
    x_axis(panel, at, scale, top, bottom, unit)
    y_axis(panel, SHARES, share, left, right)
    for key, values in drawn:
        steps, before = [f"M{left} {bottom}"], None
        for rank, value in enumerate(values, 1):
            # Of equal values, only the last one has the share of all of them.
            if rank < len(values) and values[rank] == value:
                continue
            here = (f"{scale(max(value, at[0])):.1f}", f"{share(100 * rank / len(values)):.1f}")
            # Values at one place of the picture would only make the page larger.
            if here != before:
                steps.append(f"H{here[0]}V{here[1]}")
                before = here
        panel.path("".join([*steps, f"H{right}"]), key.kind, key.words)
    return [legend([key for key, _ in drawn]), panel]


def _n(value: float) -> str:
    """Return a coordinate with at most one decimal.

    >>> _n(12.0), _n(3.14159)
    ('12', '3.1')
    """
    return f"{value:.1f}".removesuffix(".0")


def _cut(text: str, room: float) -> str:
    """Return a label that fits, cut in its middle: names often differ at their end."""
    most = int((room - 8) / LETTER) + 1
    return text if len(text) <= most else f"{text[: most // 2]}…{text[most // 2 + 1 - most :]}"
