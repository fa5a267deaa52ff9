"""Kernel of models/staging/port_seconds.sql: bytes of every port in every second.

The windows of a port are sorted by time and do not overlap. The bytes up to a full second are the sum of all windows
that ended by then, plus a share of the open window. The bytes of a second are the difference of two such sums. So no
row for each pair of window and second is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warehouse.formats.zhejiang.port_counters import WRAP
from warehouse.kernels import Arrays, Reader

if TYPE_CHECKING:
    from warehouse.kernels.port_readings import PortFile

PARTS = ("staging.port_readings",)
REACH_MS = 1000
"""Milliseconds that a window starts before the last poll without traffic: one refresh period."""
BYTES_PER_MS = 125_000
"""Bytes per millisecond of a management port at its line rate of 1 Gbit/s."""
COLUMNS = ("file_key", "second", "in_bytes", "out_bytes", "covered_ms", "longest_ms")
FULL_SECONDS = 3601
"""Boundaries of the seconds of an hour, both ends included."""
FILES_AT_ONCE = 8
"""Ports per chunk, so that arrays fit in the CPU cache."""

Ints = NDArray[np.int64]


class Switch(NamedTuple):
    """Files of a switch: a block of the kernel."""

    keys: Ints
    hours: NDArray[np.datetime64]
    is_management: NDArray[np.bool_]


def blocks(reader: Reader) -> Iterator[Switch]:
    """Yield the switches, in the order of their files."""
    files = reader.arrays("SELECT file_key, hour_utc, switch, is_management FROM staging.port_files ORDER BY file_key")
    keys, switches = files["file_key"], files["switch"]
    edges = np.flatnonzero(switches[1:] != switches[:-1]) + 1
    for low, high in pairwise([0, *edges.tolist(), len(keys)]):
        if high > low:
            yield Switch(keys[low:high], files["hour_utc"][low:high], files["is_management"][low:high].astype(bool))


def rows(block: Switch, reader: Reader) -> Iterator[Arrays]:
    """Yield the seconds of the ports of a switch."""
    keys = block.keys
    readings = _in_order(
        reader.arrays(
            "SELECT file_key, offset_ms, in_bytes_raw, out_bytes_raw FROM staging.port_readings "
            f"WHERE file_key BETWEEN {keys[0]} AND {keys[-1]}"
        )
    )
    starts = np.searchsorted(readings["file_key"], keys[::FILES_AT_ONCE], side="left").tolist()
    for low, high in pairwise([*starts, len(readings["file_key"])]):
        if high > low:
            yield _chunk({name: values[low:high] for name, values in readings.items()}, block)


def following(block: Sequence[PortFile], chunks: Sequence[Arrays]) -> Iterator[Arrays]:
    """Yield the seconds of a block of `port_readings`, which has a chunk for each file."""
    for low in range(0, len(block), FILES_AT_ONCE):
        files = block[low : low + FILES_AT_ONCE]
        some = chunks[low : low + FILES_AT_ONCE]
        names = ("file_key", "offset_ms", "in_bytes_raw", "out_bytes_raw")
        yield _chunk(
            {name: np.concatenate([one[name] for one in some]) for name in names},
            Switch(
                np.array([one.key for one in files], np.int64),
                np.array([one.of.hour for one in files], "datetime64[us]"),
                np.array([one.of.is_management for one in files]),
            ),
        )


def _in_order(readings: Arrays) -> Arrays:
    """Return the rows sorted by port and time. Rows of one part are already sorted."""
    file, times = readings["file_key"], readings["offset_ms"]
    if np.all((file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (times[1:] > times[:-1]))):
        return readings
    order = np.lexsort((times, file))
    return {name: values[order] for name, values in readings.items()}


def _chunk(readings: Arrays, block: Switch) -> Arrays:
    file = np.searchsorted(block.keys, readings["file_key"])
    times = readings["offset_ms"].astype(np.int64)
    is_management = block.is_management[file]
    in_bytes, out_bytes = (
        corrected(readings[name], file, times, is_management) for name in ("in_bytes_raw", "out_bytes_raw")
    )
    found = seconds(file, times, in_bytes, out_bytes)
    port = found["file_key"]
    narrow = {name: found[name].astype(np.int32) for name in ("second", "covered_ms", "longest_ms")}
    return {**found, **narrow, "file_key": block.keys[port], "hour_utc": block.hours[port]}


def corrected(raw: Ints, file: Ints, times: Ints, is_management: NDArray[np.bool_]) -> Ints:
    """Correct the wraps of management ports that are possible at line rate; a counter reset counts as 0."""
    if raw.min(initial=0) >= 0:
        return raw
    interval = np.diff(times, prepend=times[:1])
    is_possible = raw + WRAP <= interval * BYTES_PER_MS
    is_possible[1:] &= file[1:] == file[:-1]
    is_possible[0] = False
    return np.where(raw >= 0, raw, np.where(is_management & is_possible, raw + WRAP, 0))


def seconds(file: Ints, times: Ints, in_bytes: Ints, out_bytes: Ints) -> dict[str, Ints]:
    """Spread the bytes of each row over its window, second by second.

    Parameters
    ----------
    file
        The port of each row, ascending.
    times
        Milliseconds since the start of the hour, ascending within a port.
    in_bytes, out_bytes
        Bytes since the port's previous row, never negative.

    Returns
    -------
    dict
        `COLUMNS`, with the port as `file_key`: one row for each port and second that overlaps a window.
    """
    if not len(file):
        return dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    is_first = np.concatenate([[True], file[1:] != file[:-1]])
    ports = file[is_first]
    edges = len(ports) * FULL_SECONDS  # boundaries of all ports, concatenated

    is_refresh = (in_bytes | out_bytes) != 0
    anchors = np.flatnonzero(is_refresh | is_first)
    shows = np.flatnonzero(is_refresh[anchors])
    ends = anchors[shows]
    start = np.maximum(np.maximum(times[anchors[shows - 1]], times[ends - 1] - REACH_MS), 1)
    start[is_first[ends]] = 0
    end = np.maximum(times[ends], start + 1)
    length = end - start
    first_edge = (np.cumsum(is_first) - 1)[ends] * FULL_SECONDS

    # at each full second: the number of ended windows, and the open one
    ended_at = first_edge + (end + 999) // 1000
    ended = np.cumsum(np.bincount(ended_at, minlength=edges))
    opens = np.append(first_edge * 1000 + start, edges * 1000)
    open_ms = np.arange(0, edges * 1000, 1000) - opens[ended]
    is_open = np.flatnonzero(open_ms > 0)
    window, open_ms = ended[is_open], open_ms[is_open]
    open_length = length[window]

    def spread(bytes_of_row: Ints) -> Ints:
        """Return the bytes of each second: of ended windows, and floor(bytes * open / length) of the open one."""
        moved = bytes_of_row[ends]
        up_to = np.append(0, np.cumsum(moved))[ended]
        up_to[is_open] += share(moved[window], open_ms, open_length)
        return np.diff(up_to)[touched]

    covered = np.append(0, np.cumsum(length))[ended]
    covered[is_open] += open_ms
    covered = np.diff(covered)
    covered[FULL_SECONDS - 1 :: FULL_SECONDS] = 0  # the step from one port to the next is not a second
    touched = np.flatnonzero(covered)
    longest = np.zeros(edges, np.int64)
    if len(ends):
        group = np.flatnonzero(np.append(True, ended_at[1:] != ended_at[:-1]))
        longest[ended_at[group]] = np.maximum.reduceat(length, group)
    longest[is_open] = np.maximum(longest[is_open], open_length)
    port, second = np.divmod(touched, FULL_SECONDS)
    return dict(
        zip(
            COLUMNS,
            (ports[port], second, spread(in_bytes), spread(out_bytes), covered[touched], longest[touched + 1]),
            strict=True,
        )
    )


def share(moved: Ints, part: Ints, whole: Ints) -> Ints:
    """Return floor(moved * part / whole) without overflow."""
    if int(moved.max(initial=0)) * int(part.max(initial=0)) < 2**63:
        return moved * part // whole
    quotient, rest = np.divmod(moved, whole)
    return quotient * part + rest * part // whole
