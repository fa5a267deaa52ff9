"""Bytes of every port in every second: models/staging/port_seconds.sql in numpy.

Windows of a port do not overlap and come in order of time, so that the pieces of all windows, laid end to
end, ascend by port and second: no hashing and no sorting, only sums of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from warehouse.kernels import Arrays, Read

VERSION = 1
REACH_MS = 1000
"""How far before the last poll that showed nothing a window reaches back: one refresh period."""
WRAP = 2**32

Ints = NDArray[np.int64]


def rows(read: Read) -> Iterator[Arrays]:
    """Second rows of all ports, a switch at a time."""
    files = read("SELECT file_key, hour_utc, switch, is_management FROM staging.port_files ORDER BY file_key")
    keys, switches = files["file_key"], files["switch"]
    starts = [0, *(np.flatnonzero(switches[1:] != switches[:-1]) + 1).tolist()] if len(keys) else []
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        own = slice(start, end)
        readings = read(
            "SELECT file_key, offset_ms, in_bytes_raw, out_bytes_raw FROM staging.port_readings "
            f"WHERE file_key BETWEEN {keys[start]} AND {keys[end - 1]} ORDER BY file_key, offset_ms"
        )
        if len(readings["file_key"]):
            file = np.searchsorted(keys[own], readings["file_key"])
            times = readings["offset_ms"].astype(np.int64)
            is_management = files["is_management"][own][file].astype(bool)
            in_bytes = corrected(readings["in_bytes_raw"], is_management)
            out_bytes = corrected(readings["out_bytes_raw"], is_management)
            found = seconds(file, times, in_bytes, out_bytes)
            yield {
                **found,
                "file_key": keys[own][found["file_key"]],
                "hour_utc": files["hour_utc"][own][found["file_key"]],
            }


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
        `file_key` (the port), `second`, `in_bytes`, `out_bytes`, `covered_ms`, `longest_ms`: a row a port and
        second that a window touches.
    """
    first = np.concatenate([[True], file[1:] != file[:-1]])
    refresh = (in_bytes != 0) | (out_bytes != 0)
    anchor = np.flatnonzero(refresh | first)
    ends = anchor[refresh[anchor]]
    before = anchor[np.searchsorted(anchor, ends) - 1]  # of a first row: not used
    start = np.where(first[ends], 0, np.maximum(times[before], times[ends - 1] - REACH_MS))
    end = np.maximum(times[ends], start + 1)
    length = end - start

    first_second = start // 1000
    count = (end - 1) // 1000 - first_second + 1
    window = np.repeat(np.arange(len(ends)), count)
    second = np.arange(len(window)) - np.repeat(np.cumsum(count) - count, count) + first_second[window]
    a = np.maximum(second * 1000, start[window]) - start[window]
    b = np.minimum(second * 1000 + 1000, end[window]) - start[window]

    port = file[ends][window]
    new = np.concatenate([[True], (port[1:] != port[:-1]) | (second[1:] != second[:-1])]) if len(port) else port == 1
    at = np.flatnonzero(new)

    def total(bytes_of_row: Ints) -> Ints:
        whole, rest = np.divmod(bytes_of_row[ends], length)
        whole, rest, over = whole[window], rest[window], length[window]
        return np.add.reduceat(whole * (b - a) + rest * b // over - rest * a // over, at)

    if not len(at):
        empty = np.zeros(0, np.int64)
        return dict.fromkeys(("file_key", "second", "in_bytes", "out_bytes", "covered_ms", "longest_ms"), empty)
    return {
        "file_key": port[at],
        "second": second[at],
        "in_bytes": total(in_bytes),
        "out_bytes": total(out_bytes),
        "covered_ms": np.add.reduceat(b - a, at),
        "longest_ms": np.maximum.reduceat(length[window], at),
    }
