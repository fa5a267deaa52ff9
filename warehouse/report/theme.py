"""Colors of the report: the color-blind safe palette of Okabe and Ito, for light mode, dark mode and paper.

Each mark has a class and each class a color. The page sets the colors for light and dark mode. A chart file carries
the paper colors.
"""

from __future__ import annotations

import re
from typing import Final

LIGHT: Final = {
    "ground": "#ffffff", "ink": "#1b1b1b", "soft": "#595959", "line": "#c9c9c9", "box": "#f4f4f4", "link": "#00538a",
    "in": "#009E73", "out": "#E69F00", "access": "#0072B2", "uplink": "#CC79A7", "bad": "#D55E00", "none": "#8a8a8a",
    "u0": "#f2f2f2",
    "u1": "#d7e6f4", "u2": "#a6cce5", "u3": "#63a7d3", "u4": "#2d7fb9", "u5": "#0d5296", "u6": "#06264d",
}  # fmt: skip
DARK: Final = LIGHT | {
    "ground": "#16181b", "ink": "#e6e6e6", "soft": "#adadad", "line": "#43484e", "box": "#202327", "link": "#7cc4f0",
    "in": "#1fb98c", "out": "#E69F00", "access": "#4aa3dd", "uplink": "#d98fba", "bad": "#f0803a",
    "u0": "#24272b",
    "u1": "#15324f", "u2": "#1b4f7d", "u3": "#2877b0", "u4": "#5aa5d8", "u5": "#9fcdec", "u6": "#eaf5fd",
}  # fmt: skip
"""Dark mode; here larger values are lighter."""

CATEGORIES: Final = ("access", "out", "in", "uplink", "bad", "none")
"""Colors for categories without a color of their own, in this order."""
STEPS: Final = (1.0, 5.0, 10.0, 20.0, 40.0)
"""Utilization thresholds in percent for the color steps u2 to u6; u0 is idle."""

MARKS: Final = (
    "svg{font:11.5px system-ui,'DejaVu Sans',sans-serif;fill:var(--ink);overflow:visible}"
    "svg .soft{fill:var(--soft)}svg .b{font-weight:600}svg .e{text-anchor:end}svg .m{text-anchor:middle}"
    "svg .grid{stroke:var(--line);stroke-width:1;fill:none}svg .axis{stroke:var(--soft);stroke-width:1;fill:none}"
    "svg .hatch{stroke:var(--soft);stroke-width:1;fill:none;opacity:.6}"
    "svg .line{fill:none;stroke-width:2;stroke-linejoin:round}svg .dash{stroke-dasharray:5 3}"
    "svg .edge{fill:none;stroke:var(--soft);stroke-width:.75}svg .cross{stroke:var(--bad);stroke-width:2.5;fill:none}"
    "svg .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:4 3;fill:none}"
    "svg .lost{fill:var(--ink)}svg .onlost{fill:var(--ground)}"
    "svg .v{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}"
    "svg .p{stroke:var(--soft);stroke-width:.5}"
    + "".join(
        f"svg .{name}{{fill:var(--{name})}}svg .line.{name},svg .line.s-{name}{{fill:none;stroke:var(--{name})}}"
        for name in ("in", "out", "access", "uplink", "bad", "none")
    )
    + "".join(f"svg .u{at}{{fill:var(--u{at})}}" for at in range(7))
)
"""CSS of the marks of all charts."""


def variables(colors: dict[str, str]) -> str:
    """Return CSS variables for the colors."""
    return "".join(f"--{name}:{color};" for name, color in colors.items())


def for_paper() -> str:
    """Return the CSS of the marks with the light colors inlined, since converters ignore variables."""
    return re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], MARKS)


def step(percent: float | None) -> str:
    """Return the class of a utilization.

    >>> step(0.0), step(0.3), step(34.5), step(None)
    ('u0', 'u1', 'u5', 'u0')
    """
    if not percent:
        return "u0"
    return f"u{1 + sum(percent >= one for one in STEPS)}"
