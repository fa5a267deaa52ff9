"""Bytes of a port in seconds, by the rule of docs/metrics/rates.md in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

WRAP = 2**32
MANAGEMENT_BYTES_PER_MS = 125_000
Cells = tuple[int, int, int, str]
"""Bytes in, bytes out, covered ms and quality of a second of a port."""


class Poll(NamedTuple):
    """Stored row: milliseconds of the hour, bytes with wraps corrected."""

    time: int
    in_bytes: int
    out_bytes: int


def corrected(raw: int, interval_ms: int | None, *, is_management: bool) -> tuple[int, str | None]:
    """Return the bytes of a stored delta, and `wrap` or `reset` if the delta is negative."""
    if raw >= 0:
        return raw, None
    if is_management and interval_ms is not None and raw + WRAP <= interval_ms * MANAGEMENT_BYTES_PER_MS:
        return raw + WRAP, "wrap"
    return 0, "reset"


def seconds(polls: Sequence[Poll]) -> dict[int, Cells]:
    """Return bytes in, bytes out, covered ms and quality of each second that a poll's interval touches."""
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    anchor = previous = None
    for poll in polls:
        moves = poll.in_bytes > 0 or poll.out_bytes > 0
        if moves:
            start = 0 if previous is None or anchor is None else max(anchor, previous - 1000, 1)
            end = max(poll.time, start + 1)
            length = end - start
            for second in range(start // 1000, (end - 1) // 1000 + 1):
                a, b = max(second * 1000, start) - start, min(second * 1000 + 1000, end) - start
                row = found[second]
                row[0] += poll.in_bytes * b // length - poll.in_bytes * a // length
                row[1] += poll.out_bytes * b // length - poll.out_bytes * a // length
                row[2] += b - a
                row[3] = max(row[3], length)
        if moves or anchor is None:
            anchor = poll.time
        previous = poll.time
    return {
        second: (row[0], row[1], row[2], "fine" if row[3] <= 2000 else "coarse" if row[3] <= 10_000 else "gap")
        for second, row in found.items()
    }
