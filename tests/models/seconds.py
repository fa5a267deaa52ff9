"""Bytes of ports in seconds, computed by NumPy apart from models/staging/port_seconds.sql, for planted hours.

The windows of a port are sorted by time and do not overlap. The bytes up to a full second are the sum of all windows
that ended by then, plus a share of the open window. The bytes of a second are the difference of two such sums. So no
row for each pair of window and second is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REACH_MS = 1000
"""Milliseconds that a window starts before the last poll without traffic: one refresh period."""
COLUMNS = ("file_key", "second", "in_bytes", "out_bytes", "covered_ms", "longest_ms")
FULL_SECONDS = 3601
"""Boundaries of the seconds of an hour, both ends included."""

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
