"""Times at which each switch is polled for its counters.

One to three polls in the first 1.5 s precede the opening gap. Then a poll follows about every 0.57 s (GPU leaves) or
0.50 s (storage leaves) until just before the hour ends. The intervals follow the quantiles of the real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.draws import Ints, draw, draw_one
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from warehouse.sample.fabric import Switch
    from warehouse.sample.options import SampleOptions

SHORTEST = 240
"""Minimum interval between two polls, in milliseconds."""

_LEAF = (
    (0, 480), (100, 499), (1000, 501), (2500, 511), (4000, 553), (5000, 572), (6000, 602), (7500, 676),
    (8500, 752), (9000, 815), (9500, 1030), (9800, 1500), (9900, 1900), (9950, 2280), (9990, 3900),
    (10000, 5200),
)  # fmt: skip
_STORAGE = (
    (0, 471), (10, 477), (100, 497), (1000, 499), (2500, 500), (5000, 502), (7500, 504), (8500, 510),
    (9000, 516), (9500, 712), (9800, 998), (9900, 1081), (9950, 1955), (9990, 3009), (10000, 4782),
)  # fmt: skip


def gap_end_ms(switch: Switch, hour: int, options: SampleOptions) -> int:
    """Return the millisecond of the hour at which the opening gap ends; switches fall into two cohorts."""
    label = f"gap/{switch.name}/{hour}"
    late = draw_one(options.seed, f"cohort/{switch.name}", 0, 9) < 4
    end = draw_one(options.seed, label, 254_339, 254_378) if late else draw_one(options.seed, label, 248_592, 248_613)
    return end if options.seconds >= 300 else end * options.seconds // (5 * 250)


def poll_times(switch: Switch, hour: int, options: SampleOptions) -> Ints:
    """Return the milliseconds of the hour at which the switch is polled."""
    label = f"polls/{switch.name}/{hour}"
    kind = draw_one(options.seed, f"{label}/opening", 0, 9)
    extra, latest, longest = (0, 1235, 0) if kind < 4 else (1, 1000, 590) if kind < 9 else (2, 640, 479)
    early = [draw_one(options.seed, f"{label}/first", 602, latest)]
    for number in range(extra):
        early.append(early[-1] + draw_one(options.seed, f"{label}/early/{number}", 470, longest))
    start = gap_end_ms(switch, hour, options)
    last = options.seconds * 1000 - draw_one(options.seed, f"{label}/last", 87, 500)
    table = _STORAGE if switch.group is None else _LEAF
    steps = _intervals(options.seed, label, (last - start) // 470 + 2, table)
    times = start + np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
    times = times[times <= last]
    final = [last] if last - times[-1] >= SHORTEST else []
    return np.concatenate([np.array(early, dtype=np.int64), times, np.array(final, dtype=np.int64)])


def hours_of_polls(switch: Switch, options: SampleOptions) -> tuple[Ints, Ints]:
    """Return all polls in milliseconds of the timeline, and the hour of each poll."""
    parts = [poll_times(switch, hour, options) + hour * HOUR * 1000 for hour in range(options.hours)]
    return np.concatenate(parts), np.repeat(np.arange(options.hours), [len(part) for part in parts])


def _intervals(seed: int, label: str, count: int, table: tuple[tuple[int, int], ...]) -> Ints:
    """Return random intervals that follow a table of (share in ten thousand, milliseconds), with integers only."""
    shares = np.array([share for share, _ in table], dtype=np.int64)
    lengths = np.array([length for _, length in table], dtype=np.int64)
    drawn = draw(seed, label, count, 0, 9999)
    below = np.searchsorted(shares, drawn, side="right") - 1
    span = shares[below + 1] - shares[below]
    steps: Ints = lengths[below] + (drawn - shares[below]) * (lengths[below + 1] - lengths[below]) // span
    return steps
