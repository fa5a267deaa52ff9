"""Writer of the CSV file of each switch port, in the published form, with its totals.

One to three polls in the first 1.5 s of an hour precede the opening gap. Then a poll follows about every 0.57 s (GPU
leaves) or 0.50 s (storage leaves) until just before the hour ends. The intervals follow the quantiles of the real ones.

A switch refreshes the counters of its data ports once a second, all at one time in it, which differs by switch. The
management port refreshes at each poll. A row counts the bytes since the last stored row. On a 200G port, a row whose
published utilization would exceed 100% is not stored. Its bytes are counted in the next row.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from warehouse.sample.basics import (
    HOUR,
    START_MS,
    Ints,
    Row,
    SampleOptions,
    draw,
    draw_one,
    hour_folder,
    hour_utc,
    save_time,
)
from warehouse.sample.fabric import Port, Switch
from warehouse.sample.plan import Plan

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
    # In a short hour, about 250 s become a fifth of the recorded seconds.
    return end if options.seconds >= 300 else end * options.seconds // (5 * 250)


def poll_times(switch: Switch, hour: int, options: SampleOptions) -> Ints:
    """Return the milliseconds of the hour at which the switch is polled."""
    label = f"polls/{switch.name}/{hour}"
    kind = draw_one(options.seed, f"{label}/opening", 0, 9)
    extra, latest, longest = (0, 1235, 0) if kind < 4 else (1, 1000, 590) if kind < 9 else (2, 640, 479)
    early = [draw_one(options.seed, f"{label}/first", 602, latest)]
    early += [draw_one(options.seed, f"{label}/early/{number}", 470, longest) for number in range(extra)]
    start = gap_end_ms(switch, hour, options)
    last = options.seconds * 1000 - draw_one(options.seed, f"{label}/last", 87, 500)
    table = _STORAGE if switch.group is None else _LEAF
    steps = _intervals(options.seed, label, (last - start) // 470 + 2, table)
    times = start + np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
    times = times[times <= last]
    final = [last] if last - times[-1] >= 240 else []  # no two polls are nearer
    return np.concatenate([np.cumsum(early), times, np.array(final, dtype=np.int64)])


def hours_of_polls(switch: Switch, options: SampleOptions) -> tuple[Ints, Ints]:
    """Return all polls in milliseconds of the timeline, and the hour of each poll."""
    parts = [poll_times(switch, hour, options) + hour * HOUR * 1000 for hour in range(options.hours)]
    return np.concatenate(parts), np.repeat(np.arange(options.hours), [len(part) for part in parts])


def _intervals(seed: int, label: str, count: int, table: tuple[tuple[int, int], ...]) -> Ints:
    """Return random intervals that follow a table of (share in ten thousand, milliseconds), with integers only."""
    shares, lengths = np.array(table, dtype=np.int64).T
    drawn = draw(seed, label, count, 0, 9999)
    below = np.searchsorted(shares, drawn, side="right") - 1
    span = shares[below + 1] - shares[below]
    return np.asarray(lengths[below] + (drawn - shares[below]) * (lengths[below + 1] - lengths[below]) // span)


UNIT = 10_000_000
"""Bytes are truncated to multiples of this before a ratio is computed."""

ACCESS_SCALE, OTHER_SCALE = 4000, 1250
"""UNIT in bits per millisecond, divided by the reference rate of published ratios, in hundredths of a percent. Ratios
of ports that are no access ports are relative to 640 Gb/s."""

SMALL = 10_000
"""Bytes per second that are at most one or two frames: they arrive at once, at the end of the second."""


Rows = dict[str, Ints]
"""Stored rows of one port by column, in the order of the file.

`poll` is an index into the switch's polls; ratios are hundredths of a percent.
"""


def refresh_ms(switch: str, seed: int) -> int:
    """Return the millisecond of each second at which a switch refreshes its counters."""
    return draw_one(seed, f"counter refresh/{switch}", 0, 999)


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
    phase = packet_phase = None
    size = 900
    if port.kind != "management":
        phase = refresh_ms(switch.name, options.seed)
        later = (-4, -3, 3, 4)[draw_one(options.seed, f"later/{label}", 0, 3)]
        packet_phase = min(max(phase + later, 0), 999)
        size = draw_one(options.seed, f"packet/{label}", 3900, 4150)
    counted = np.stack([_reading(moved, polls, phase) for moved in (into, out)])
    # Rounded up: a second with bytes has a packet.
    packets = np.stack([_reading(-(-moved // size), polls, packet_phase, SMALL // size) for moved in (into, out)])
    is_access = port.kind == "access"
    scale = ACCESS_SCALE if is_access else OTHER_SCALE
    kept = _kept(counted, polls) if is_access else np.arange(len(polls))
    steps = np.diff(polls[kept], prepend=0)
    (d_in, d_out), (p_in, p_out) = (np.diff(one[:, kept], prepend=0) for one in (counted, packets))
    if wrap_at is not None:
        # As a 32-bit counter shows a wrap that nobody has corrected.
        d_out[wrap_at] -= 2**32
    return {
        "poll": kept,
        "in_packets": p_in,
        "in_bytes": d_in,
        "out_packets": p_out,
        "out_bytes": d_out,
        "in_ratio": ratios(d_in, steps, scale),
        "out_ratio": ratios(d_out, steps, scale),
    }


def ratios(delta: Ints, steps: Ints, scale: int) -> Ints:
    """Return published ratios in hundredths of a percent: bytes truncated to UNIT, ratios capped at 100%."""
    units = np.sign(delta) * (np.abs(delta) // UNIT)
    rounded = (2 * np.abs(units) * scale + steps) // (2 * steps)
    return np.asarray(np.minimum(np.sign(units) * rounded, 10_000))


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


def _kept(counted: Ints, polls: Ints) -> Ints:
    """Return the indices of polls whose row is stored: it is at most 100% in both directions, since the row before.

    Only polls after a busy interval are checked one by one.
    """
    kept = np.ones(len(polls), dtype=bool)
    # With the start of the timeline, which is stored, too.
    seen = np.pad(np.stack([*counted, polls]), [(0, 0), (1, 0)])

    def exceeds(since: Ints) -> Ints:
        """Return True where bytes and milliseconds since a row exceed 100%."""
        return np.asarray(np.maximum(since[0], since[1]) // UNIT * ACCESS_SCALE > 10_000 * since[2])

    checked = -1
    for suspect in np.flatnonzero(exceeds(np.diff(seen))).tolist():
        if suspect <= checked:
            continue
        checked = suspect
        while checked < len(polls) and exceeds(seen[:, checked + 1] - seen[:, suspect]):
            kept[checked] = False
            checked += 1
    return np.flatnonzero(kept)


HEADER = "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"


@cache  # the same few values stand in millions of rows
def ratio_text(hundredths: int) -> str:
    """Return a ratio as text with at most two decimals.

    >>> [ratio_text(value) for value in (0, 154, 290, 10000, -868)]
    ['0', '1.54', '2.9', '100', '-8.68']
    """
    return f"{hundredths / 100:g}"


def write_port_file(path: Path, port: Port, rows: Rows, starts: list[str]) -> None:
    """Write the rows of one port in one hour."""
    name, zero = port.name, f"{port.name},0,0,0,0,0,0\n"  # as most rows of most ports
    text = [
        f"{starts[poll]}{name},{in_p},{in_b},{out_p},{out_b},{ratio_text(in_r)},{ratio_text(out_r)}\n"
        if in_b or out_b or in_p or out_p
        else starts[poll] + zero
        for poll, in_p, in_b, out_p, out_b, in_r, out_r in zip(*map(np.ndarray.tolist, rows.values()), strict=True)
    ]
    # As bytes, so that lines end in LF on every system.
    path.write_bytes("".join([HEADER, *text]).encode())


def write_switch(root: Path, switch: Switch, plan: Plan) -> list[Row]:
    """Write all files of one switch into the folders of the hours; return the totals of each file."""
    options = plan.options
    times, hour_of = hours_of_polls(switch, options)
    starts = [f"{save_time(poll)},{START_MS + poll},{switch.device}," for poll in times.tolist()]
    asked = np.bincount(hour_of, minlength=options.hours).tolist()
    into, out = plan.traffic.into[switch.name], plan.traffic.out[switch.name]
    totals = []
    for position, port in enumerate(switch.ports):
        # One management port counts past 2^32, midway in the first hour.
        wraps = port.kind == "management" and switch.name == "Leaf-5"
        rows = stored_rows(
            switch, port, into[position], out[position], times, options, asked[0] // 2 if wraps else None
        )
        edges = np.searchsorted(hour_of[rows["poll"]], np.arange(options.hours + 1)).tolist()
        for hour, (low, high) in enumerate(pairwise(edges)):
            folder = root / hour_folder(hour) / switch.folder
            folder.mkdir(parents=True, exist_ok=True)
            part = {name: column[low:high] for name, column in rows.items()}
            write_port_file(folder / f"{switch.prefix}_{port.stem}.csv", port, part, starts)
            totals.append(_total(switch, port, hour, asked[hour], part))
    return totals


def _total(switch: Switch, port: Port, hour: int, polls_asked: int, rows: Rows) -> Row:
    into, out = rows["in_bytes"], rows["out_bytes"]
    wraps = int((out < 0).sum())
    return {
        "switch": switch.name,
        "port": port.name,
        "hour_utc": hour_utc(hour),
        "rows": len(into),
        "polls": polls_asked,
        "missing_polls": polls_asked - len(into),
        "in_bytes": int(into.sum()),
        "out_bytes": int(out.sum()) + wraps * 2**32,
        "in_bytes_raw": int(into.sum()),
        "out_bytes_raw": int(out.sum()),
        "in_packets": int(rows["in_packets"].sum()),
        "out_packets": int(rows["out_packets"].sum()),
        "zero_rows": int(((into == 0) & (out == 0)).sum()),
        "wraps": wraps,
    }
