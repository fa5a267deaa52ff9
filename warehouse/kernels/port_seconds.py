"""Bytes of every port in every second: models/staging/port_seconds.sql in numpy.

Windows of a port do not overlap and come in order of time, so that the pieces of all windows, laid end to
end, ascend by port and second: no hashing and no sorting, only sums of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from warehouse.kernels import Arrays, Reader

VERSION = 2
REACH_MS = 1000
"""How far before the last poll that showed nothing a window reaches back: one refresh period."""
WRAP = 2**32
COLUMNS = ("file_key", "second", "in_bytes", "out_bytes", "covered_ms", "longest_ms")
FILES_AT_ONCE = 16
"""Arrays of so few ports stay in the processor's cache, which makes this four times faster than a switch at once."""

Ints = NDArray[np.int64]


def rows(reader: Reader) -> Iterator[Arrays]:
    """Second rows of all ports, a switch at a time."""
    files = reader.arrays("SELECT file_key, hour_utc, switch, is_management FROM staging.port_files ORDER BY file_key")
    keys, switches = files["file_key"], files["switch"]
    if not len(keys):
        return
    starts = [0, *(np.flatnonzero(switches[1:] != switches[:-1]) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        readings = _in_order(
            reader.arrays(
                "SELECT file_key, offset_ms, in_bytes_raw, out_bytes_raw FROM staging.port_readings "
                f"WHERE file_key BETWEEN {keys[start]} AND {keys[end - 1]}"
            )
        )
        rows_of = np.searchsorted(readings["file_key"], keys[start : end + 1], side="left").tolist()
        edges = [*range(start, end, FILES_AT_ONCE), end]
        for low, high in pairwise(edges):
            chunk = slice(rows_of[low - start], rows_of[high - start] if high < end else None)
            if len(readings["file_key"][chunk]):
                yield _chunk(readings, chunk, keys, files)


def _in_order(readings: Arrays) -> Arrays:
    """Rows by port and time; a part lies in that order, so that there is nothing to do while it does."""
    file, times = readings["file_key"], readings["offset_ms"]
    if np.all((file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (times[1:] > times[:-1]))):
        return readings
    order = np.lexsort((times, file))
    return {name: values[order] for name, values in readings.items()}


def _chunk(readings: Arrays, chunk: slice, keys: Ints, files: Arrays) -> Arrays:
    file = np.searchsorted(keys, readings["file_key"][chunk])
    is_management = files["is_management"][file].astype(bool)
    found = seconds(
        file,
        readings["offset_ms"][chunk].astype(np.int64),
        corrected(readings["in_bytes_raw"][chunk], is_management),
        corrected(readings["out_bytes_raw"][chunk], is_management),
    )
    port = found["file_key"]
    narrow = {name: found[name].astype(np.int32) for name in ("second", "covered_ms", "longest_ms")}
    return {**found, **narrow, "file_key": keys[port], "hour_utc": files["hour_utc"][port]}


def corrected(raw: Ints, is_management: NDArray[np.bool_]) -> Ints:
    """Stored deltas with wraps of management ports undone, and resets of others counted as 0."""
    return np.where(raw >= 0, raw, np.where(is_management, raw + WRAP, 0))


def seconds(file: Ints, times: Ints, in_bytes: Ints, out_bytes: Ints) -> dict[str, Ints]:
    """Spread the bytes of each row over its window, second by second.

    Parameters
    ----------
    file
        The port of each row, ascending.
    times
        Milliseconds since the start of the hour, ascending within a port.
    in_bytes, out_bytes
        Since the port's previous row, never negative.

    Returns
    -------
    dict
        `COLUMNS`, `file_key` being the port: a row a port and second that a window touches.
    """
    first = np.concatenate([[True], file[1:] != file[:-1]])
    refresh = (in_bytes != 0) | (out_bytes != 0)
    anchor = np.flatnonzero(refresh | first)
    ends = anchor[refresh[anchor]]
    before = anchor[np.searchsorted(anchor, ends) - 1]  # of a first row: not used
    start = np.where(first[ends], 0, np.maximum(np.maximum(times[before], times[ends - 1] - REACH_MS), 1))
    end = np.maximum(times[ends], start + 1)
    length = end - start

    # a window is cut at the full seconds inside it; `inner` are the pieces that end at such a cut
    first_second = start // 1000
    count = (end - 1) // 1000 - first_second + 1
    if not len(count):
        return dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    window = np.repeat(np.arange(len(ends)), count)
    last = np.cumsum(count) - 1
    second = np.arange(len(window)) - np.repeat(last + 1 - count, count) + first_second[window]
    is_inner = np.ones(len(window), bool)
    is_inner[last] = False
    inner = np.flatnonzero(is_inner)
    cut = window[inner]
    until = length[window]
    until[inner] = (second[inner] + 1) * 1000 - start[cut]

    def pieces(up_to_end: Ints) -> Ints:
        """Of each piece alone, from what its window has moved up to the piece's end."""
        alone = up_to_end.copy()
        alone[inner + 1] -= up_to_end[inner]
        return alone

    def spread(bytes_of_row: Ints) -> Ints:
        """floor(bytes x until / length), which is all of them at a window's end; without overflow."""
        moved = bytes_of_row[ends]
        up_to_end = moved[window]
        whole, rest = np.divmod(moved[cut], length[cut])
        up_to_end[inner] = whole * until[inner] + rest * until[inner] // length[cut]
        return pieces(up_to_end)

    port = file[ends][window]
    at = np.flatnonzero(np.concatenate([[True], (port[1:] != port[:-1]) | (second[1:] != second[:-1])]))
    sums = (spread(in_bytes), spread(out_bytes), pieces(until))
    in_sum, out_sum, covered = (np.add.reduceat(values, at) for values in sums)
    longest = np.maximum.reduceat(length[window], at)
    return dict(zip(COLUMNS, (port[at], second[at], in_sum, out_sum, covered, longest), strict=True))
