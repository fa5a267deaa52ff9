"""Bytes of ports in seconds, computed by NumPy apart from models/staging/port_seconds.sql, for planted hours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REACH_MS = 1000
"""Milliseconds that a window starts before the last poll without traffic: one refresh period."""
COLUMNS = ("file_key", "second", "in_bytes", "out_bytes", "covered_ms", "longest_ms")

Ints = NDArray[np.int64]


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
    is_refresh = (in_bytes | out_bytes) != 0
    if not is_refresh.any():
        return dict.fromkeys(COLUMNS, np.zeros(0, np.int64))
    is_first = np.append(True, file[1:] != file[:-1])
    anchors = np.flatnonzero(is_refresh | is_first)
    shows = np.flatnonzero(is_refresh[anchors])
    ends = anchors[shows]
    start = np.maximum(np.maximum(times[anchors[shows - 1]], times[ends - 1] - REACH_MS), 1)
    start[is_first[ends]] = 0
    end = np.maximum(times[ends], start + 1)

    # a piece for each window and second that it overlaps
    counts = (end - 1) // 1000 - start // 1000 + 1
    window = np.repeat(np.arange(len(ends)), counts)
    second = start[window] // 1000 + np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts)
    low = np.maximum(second * 1000, start[window]) - start[window]
    high = np.minimum(second * 1000 + 1000, end[window]) - start[window]
    length = (end - start)[window]
    place = file[ends][window] * 3600 + second
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1]))

    def spread(bytes_of_row: Ints) -> Ints:
        """Return floor(bytes * high / length) - floor(bytes * low / length), without overflow."""
        whole, rest = np.divmod(bytes_of_row[ends][window], length)
        return np.add.reduceat(whole * (high - low) + rest * high // length - rest * low // length, first)

    covered, longest = np.add.reduceat(high - low, first), np.maximum.reduceat(length, first)
    found = (*np.divmod(place[first], 3600), spread(in_bytes), spread(out_bytes), covered, longest)
    return dict(zip(COLUMNS, found, strict=True))
