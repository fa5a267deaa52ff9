"""Stored rows of the release's poller, computed from physical bytes.

A switch refreshes the counters of its data ports once a second, all at one time in it, which differs by switch. The
management port refreshes at each poll. A row counts the bytes since the last stored row. On a 200G port, a row whose
published utilization would exceed 100% is not stored. Its bytes are counted in the next row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.draws import Ints, draw_one

if TYPE_CHECKING:
    from warehouse.sample.fabric import Port, Switch
    from warehouse.sample.options import SampleOptions

UNIT = 10_000_000
"""Bytes are truncated to multiples of this before a ratio is computed."""

RATIO_SCALE = {"access": 4000}
"""UNIT in bits per millisecond, divided by the reference rate of published ratios, in hundredths of a percent."""

OTHER_SCALE = 1250
"""Scale of every other kind of port, whose ratios are relative to 640 Gb/s."""

SMALL = 10_000
"""Bytes per second that are at most one or two frames: they arrive at once, at the end of the second."""


@dataclass(frozen=True)
class Rows:
    """Stored rows of one port. `poll` is an index into the switch's polls; ratios are hundredths of a percent."""

    poll: Ints
    in_bytes: Ints
    out_bytes: Ints
    in_packets: Ints
    out_packets: Ints
    in_ratio: Ints
    out_ratio: Ints


def refresh_ms(switch: str, seed: int) -> int:
    """Return the millisecond of each second at which a switch refreshes its counters."""
    return draw_one(seed, f"refreshed/{switch}", 0, 999)


def stored_rows(
    switch: Switch,
    port: Port,
    into: Ints,
    out: Ints,
    polls: Ints,
    options: SampleOptions,
    wrap_at: int | None,
) -> Rows:
    """Return the rows of one port over the whole timeline. At poll `wrap_at` its out counter wraps at 2^32."""
    label = f"{switch.name}/{port.name}"
    phase = None if port.kind == "management" else refresh_ms(switch.name, options.seed)
    size = draw_one(options.seed, f"packet/{label}", 3900, 4150) if port.kind != "management" else 900
    later = (-4, -3, 3, 4)[draw_one(options.seed, f"later/{label}", 0, 3)]
    packet_phase = None if phase is None else min(max(phase + later, 0), 999)
    counted_in, counted_out = _reading(into, polls, phase), _reading(out, polls, phase)
    packets_in = _reading(-(-into // size), polls, packet_phase, SMALL // size)
    packets_out = _reading(-(-out // size), polls, packet_phase, SMALL // size)
    scale = RATIO_SCALE.get(port.kind, OTHER_SCALE)
    kept = np.arange(len(polls))
    if port.kind == "access":
        kept = _kept(counted_in, counted_out, polls, scale)
    steps = np.diff(polls[kept], prepend=0)
    d_in, d_out = np.diff(counted_in[kept], prepend=0), np.diff(counted_out[kept], prepend=0)
    if wrap_at is not None:
        d_out[wrap_at] -= 2**32
    return Rows(
        poll=kept,
        in_bytes=d_in,
        out_bytes=d_out,
        in_packets=np.diff(packets_in[kept], prepend=0),
        out_packets=np.diff(packets_out[kept], prepend=0),
        in_ratio=ratios(d_in, steps, scale),
        out_ratio=ratios(d_out, steps, scale),
    )


def ratios(delta: Ints, steps: Ints, scale: int) -> Ints:
    """Return published ratios in hundredths of a percent: bytes truncated to UNIT, ratios capped at 100%."""
    units = np.sign(delta) * (np.abs(delta) // UNIT)
    rounded = (2 * np.abs(units) * scale + steps) // (2 * steps)
    cut: Ints = np.minimum(np.sign(units) * rounded, 10_000)
    return cut


def _reading(per_second: Ints, polls: Ints, phase: int | None, small: int = SMALL) -> Ints:
    """Return the counter at each poll: the value of its last refresh, or of the poll itself if `phase` is None."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_second)])
    if phase is None:
        second, rest = np.divmod(polls, 1000)
        return before[second] + per_second[second] * rest // 1000
    second = (polls - phase) // 1000
    seen = np.maximum(second, 0)
    steady = np.where(per_second > small, per_second, 0)
    return np.where(second < 0, 0, before[seen] + steady[seen] * phase // 1000)


def _kept(counted_in: Ints, counted_out: Ints, polls: Ints, scale: int) -> Ints:
    """Return the indices of polls whose row is stored. Only polls after a busy interval are checked one by one."""
    kept = np.ones(len(polls), dtype=bool)
    peak = np.maximum(np.diff(counted_in, prepend=0), np.diff(counted_out, prepend=0))
    suspects = np.flatnonzero(peak // UNIT * scale > 10_000 * np.diff(polls, prepend=0))
    checked = -1
    for suspect in suspects.tolist():
        if suspect <= checked:
            continue
        stored, checked = suspect - 1, suspect
        while checked < len(polls) and _exceeds_line_rate(counted_in, counted_out, polls, stored, checked, scale):
            kept[checked] = False
            checked += 1
    return np.flatnonzero(kept)


def _exceeds_line_rate(counted_in: Ints, counted_out: Ints, polls: Ints, stored: int, poll: int, scale: int) -> bool:
    """Return True if the row of a poll would exceed 100% in either direction, counted since the stored row."""
    begin_in, begin_out, begin = (
        (int(counted_in[stored]), int(counted_out[stored]), int(polls[stored])) if stored >= 0 else (0, 0, 0)
    )
    delta = max(int(counted_in[poll]) - begin_in, int(counted_out[poll]) - begin_out)
    return delta // UNIT * scale > 10_000 * (int(polls[poll]) - begin)
