"""SVG drawing: panels of one width, marks with tooltips, scales, axes.

A chart is a list of panels, which flow side by side on wide screens and stack on phones. Charts are static SVG, shown
without a script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH = 360
"""Panel width in SVG units; on a phone a unit is about a pixel."""
LETTER = 6.9
"""Average letter width at label size, in SVG units."""
Scale = Callable[[float], float]


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
        at = 5.0
        while at < width + height:
            x1, y1 = (x + at, y) if at <= width else (x + width, y + at - width)
            x2, y2 = (x, y + at) if at <= height else (x + at - height, y + height)
            steps.append(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}")
            at += 5
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

    @property
    def body(self) -> str:
        """Return the SVG of the marks."""
        return "".join(self._marks)

    def svg(self) -> str:
        """Return the panel as an SVG element."""
        of = f' data-l="{escape(self.leaf)}"' if self.leaf else ""
        box = f"0 0 {WIDTH} {_n(self.height)}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(self.label)}"{of}>{self.body}</svg>'


class Key(NamedTuple):
    """A line of a legend: mark and meaning."""

    kind: str
    """Class of the mark: a box, or `line ...`, `hatch`, `cross`."""
    words: str


def legend(keys: Sequence[Key]) -> Panel:
    """Return a legend panel, wrapped into as many lines as needed."""
    rows, x, y = [], 0.0, 12.0
    for key in keys:
        needs = 20 + LETTER * len(key.words) + 12
        if x and x + needs > WIDTH + 12:
            x, y = 0.0, y + 18
        rows.append((key, x, y))
        x += needs
    made = Panel(y + 8, "Legend: " + ", ".join(key.words for key in keys))
    for key, x, y in rows:
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


def _n(value: float) -> str:
    """Return a coordinate with at most one decimal.

    >>> _n(12.0), _n(3.14159)
    ('12', '3.1')
    """
    text = f"{value:.1f}"
    return text.removesuffix(".0")
