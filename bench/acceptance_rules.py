"""Rules of docs/metrics in plain Python, for bench.acceptance, independent of the models."""

from __future__ import annotations

import cmath
import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

WRAP = 2**32
MANAGEMENT_BYTES_PER_MS = 125_000
QUALITIES = ("fine", "coarse", "gap")
BUSY = 10**9
"""Bytes per hour below which a link or a server is idle."""
USED_PARTS = 10
"""A rail is used if it moved one of so many parts of the bytes of the server's busiest rail."""


Cells = tuple[int, int, int, str]
"""Bytes in, bytes out, covered ms and quality of a second or minute of a port."""


class Port(NamedTuple):
    """Port of a switch in a cluster."""

    cluster: str
    switch: str
    port: str


class Poll(NamedTuple):
    """Stored row: milliseconds of the hour, bytes with wraps corrected."""

    time: int
    in_bytes: int
    out_bytes: int


class Load(NamedTuple):
    """Traffic of a port in an hour."""

    polls: int
    in_bytes: int
    out_bytes: int
    in_packets: int
    out_packets: int
    wraps: int
    resets: int
    full_seconds: int
    """Seconds above 90 % of the line rate."""


class Plug(NamedTuple):
    """Row of the topology sheet."""

    switch: str
    port: str
    server: int
    nic: str | None
    slot: int | None
    """Last octet of the NIC's address."""


class Sheets(NamedTuple):
    """Content of a cluster's workbook."""

    plugs: Sequence[Plug] = ()
    in_nic_sheet: frozenset[int] = frozenset()


def number(name: str) -> int:
    """Return n of Leaf-n."""
    return int(name.rpartition("-")[2])


def cage(port: str) -> int:
    """Return p of 1/0/p or 1/0/p:h."""
    return int(port.rpartition("/")[2].partition(":")[0])


def kind(switch: str, port: str) -> str:
    """Return the class of a port, by its name."""
    if port.startswith("M-GigabitEthernet"):
        return "management"
    if switch.startswith("ST-"):
        return "storage_uplink" if 55 <= cage(port) <= 64 else "storage_access"
    if port.startswith("TwoHundredGigE"):
        return "access"
    return "uplink" if 33 <= cage(port) <= 62 else "spare"


def line_rate(port: str) -> int:
    """Return the line rate of a port in bit/s, by its name."""
    return {"M": 10**9, "T": 2 * 10**11, "F": 4 * 10**11}[port[0]]


def rail(switch: str) -> int:
    """Return the place of a leaf in its group of four, from 1."""
    return (number(switch) - 1) % 4 + 1


def phase(refreshed: Mapping[int, int]) -> tuple[int, int, int] | None:
    """Return the ms at which a switch refreshes, its spread and readings, from the ports with bytes at each poll."""
    sums: dict[int | None, complex] = defaultdict(complex)
    readings = 0
    for before, after in pairwise(sorted(refreshed)):
        if after - before < 1000 and refreshed[after]:
            readings += refreshed[after]
            for part in (None, after // 600_000):
                sums[part] += refreshed[after] * cmath.rect(1, math.pi * (before + after) / 1000)
    if not readings:
        return None
    times = {part: round(500 * cmath.phase(total) / math.pi) % 1000 for part, total in sums.items()}
    of_hour = times.pop(None)
    return of_hour, max(500 - abs(500 - abs(one - of_hour)) for one in times.values()), readings


def rails_used(moved: Sequence[int]) -> int:
    """Return how many rails of a server are used, from the bytes of each."""
    return sum(USED_PARTS * one >= max(moved) for one in moved) if sum(moved) >= BUSY else 0


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


class Series(NamedTuple):
    """Bytes of a port in each second of an hour."""

    bytes: array[int]
    """In and out together."""
    larger: array[int]
    """Of the direction with more."""
    gaps: frozenset[int]
    """Seconds that an interval of more than 10 s between two polls touches."""

    @classmethod
    def of(cls, found: Mapping[int, Cells]) -> Series:
        """Return the series of a port's seconds."""
        series = cls(array("q", bytes(8 * 3600)), array("q", bytes(8 * 3600)), frozenset())
        for second, (into, out, _, _) in found.items():
            series.bytes[second] = into + out
            series.larger[second] = max(into, out)
        return series._replace(gaps=frozenset(second for second, cells in found.items() if cells[3] == "gap"))

    def above(self, amount: int) -> int:
        """Return the number of seconds with more bytes than an amount in one direction."""
        return sum(one > amount for one in self.larger)


def balance(moved: Sequence[int]) -> tuple[int, float, float | None, float | None, float | None]:
    """Return uplinks, mean, coefficient of variation, largest over mean, and Jain's index; None if idle."""
    count, total, squares = len(moved), sum(moved), sum(value * value for value in moved)
    mean = float(Fraction(total, count))
    if total < BUSY * count:
        return count, mean, None, None, None
    spread = math.sqrt(count * squares - total * total) / total
    return count, mean, spread, float(Fraction(max(moved) * count, total)), float(
        Fraction(total * total, count * squares)
    )  # fmt: skip


def minutes(of_seconds: Mapping[int, Cells]) -> dict[int, Cells]:
    """Return bytes in, bytes out, covered ms and quality of the worst second of each minute."""
    found: dict[int, list[Cells]] = defaultdict(list)
    for second, cells in of_seconds.items():
        found[second // 60].append(cells)
    return {
        minute: (
            sum(moved_in for moved_in, *_ in cells),
            sum(out for _, out, *_ in cells),
            sum(covered for _, _, covered, _ in cells),
            max((quality for *_, quality in cells), key=QUALITIES.index),
        )
        for minute, cells in found.items()
    }


def balance_of_minute(moved: Sequence[int], quality: str) -> tuple[int, float | None, float | None, float | None]:
    """Return total, coefficient of variation, largest over mean, and Jain's index; None if idle or not observed."""
    count, total = len(moved), sum(moved)
    if quality == "gap" or total * 60 < BUSY * count:
        return total, None, None, None
    squares = sum(value * value for value in moved)
    spread = math.sqrt(count * squares - total * total) / total
    return total, spread, float(Fraction(max(moved) * count, total)), float(Fraction(total * total, count * squares))


def group(switch: str) -> tuple[str, int]:
    """Return the group of a leaf: four neighboring leaves share their servers."""
    return switch.rpartition("-")[0], (number(switch) - 1) // 4


def bases(plugs: Iterable[Plug]) -> dict[tuple[str, int], int]:
    """Return the most frequent server number minus slot of each group of leaves; the smallest if tied."""
    counted: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for plug in plugs:
        if plug.slot is not None:
            counted[group(plug.switch)][plug.server - plug.slot] += 1
    return {leaves: min(found, key=lambda base: (-found[base], base)) for leaves, found in counted.items()}


class Owners:
    """Owner (server) of each access port of a cluster.

    Parameters
    ----------
    sheets
        Sheets of the cluster's workbook.
    reviewed
        (switch, port) -> server, from data/port_owners.csv.
    """

    def __init__(self, sheets: Sheets, reviewed: Mapping[tuple[str, str], str]) -> None:
        self._plugged = {(plug.switch, plug.port): plug.server for plug in sheets.plugs}
        found = bases(sheets.plugs)
        self._bases = {name: base for name, base in found.items() if list(found.values()).count(base) == 1}
        self._in_topology = {plug.server for plug in sheets.plugs}
        self._in_nic_sheet = sheets.in_nic_sheet
        named = {f"GPU-{number}" for number in {*self._in_topology, *self._in_nic_sheet}}
        self._reviewed = {place: server for place, server in reviewed.items() if server in named}

    def of(self, switch: str, port: str, moved: int) -> str | None:
        """Return the owner of an access port that moved `moved` bytes in the hour, or None if it needs none."""
        if (switch, port) in self._plugged:
            return f"GPU-{self._plugged[switch, port]}"
        owner = self._reviewed.get((switch, port)) or self._by_slot(switch, port)
        if owner is None and moved > 0:
            return f"unlisted:{switch}:{port.removeprefix('TwoHundredGigE')}"
        return owner

    def _by_slot(self, switch: str, port: str) -> str | None:
        base = self._bases.get(group(switch))
        if base is None or ":" not in port:
            return None
        pair = (base + 2 * cage(port) - 1, base + 2 * cage(port))
        absent = [server for server in pair if server not in self._in_topology]
        known = [server for server in absent if server in self._in_nic_sheet]
        if len(absent) == 2 and known:
            return f"GPU-{pair[0]}/{pair[1]}"
        if len(absent) == 1 and known:
            (mate,) = set(pair) - set(absent)
            other = port[:-1] + ("2" if port.endswith("1") else "1")
            return f"GPU-{absent[0]}" if self._plugged.get((switch, other)) == mate else None
        return None


Suspect = tuple[str | None, str | None, str | None, int]
"""Server, NIC, candidate port, hours."""
Hours = Mapping[Port, Mapping[str, Load]]
"""Loads of the loaded hours of each port."""


def suspects(cluster: str, sheets: Sheets, hours: Hours) -> dict[tuple[str, ...], Suspect]:
    """Return the rows of suspect_links of a cluster, by cluster, switch, port and kind."""
    loaded: dict[str, set[str]] = defaultdict(set)
    for port, found in hours.items():
        loaded[port.switch] |= found.keys()
    rows = {(*port, name): (None, None, None, len(found)) for port, found, name in _one_way(hours, loaded)}  # type: dict[tuple[str, ...], Suspect]
    known = bases(sheets.plugs)
    for plug in sheets.plugs:
        place, seen = (cluster, plug.switch, plug.port), len(loaded[plug.switch])
        server = f"GPU-{plug.server}"
        if _is_elsewhere(plug, known, {group(one.switch) for one in sheets.plugs}):
            rows[(*place, "server_in_other_group")] = (server, plug.nic, None, seen)
        load = hours.get(Port(*place), {})
        is_idle = bool(load) and not any(one.in_bytes or one.out_bytes for one in load.values())
        if is_idle and kind(plug.switch, plug.port) != "access":
            candidate = _candidate(cluster, plug, known, sheets, hours)
            rows[(*place, "access_on_idle_400g")] = (server, plug.nic, candidate, seen)
    return rows


def _one_way(hours: Hours, loaded: Mapping[str, set[str]]) -> Iterator[tuple[Port, Mapping[str, Load], str]]:
    for port, found in hours.items():
        if not kind(port.switch, port.port).endswith("uplink") or found.keys() != loaded[port.switch]:
            continue
        if all(one.in_bytes >= BUSY and one.out_bytes * 10**6 < one.in_bytes for one in found.values()):
            yield port, found, _kind_of(sum(one.out_packets for one in found.values())) + "_out"
        elif all(one.out_bytes >= BUSY and one.in_bytes * 10**6 < one.out_bytes for one in found.values()):
            yield port, found, _kind_of(sum(one.in_packets for one in found.values())) + "_in"


def _kind_of(packets: int) -> str:
    return "uplink_no_data" if packets else "uplink_silent"


def _is_elsewhere(plug: Plug, known: Mapping[tuple[str, int], int], groups: set[tuple[str, int]]) -> bool:
    """Return True if the server's number belongs to another group; False if two groups share a base."""
    if len(set(known.values())) != len(groups):
        return False
    homes = {base: leaves for leaves, base in known.items() if base < plug.server}
    return bool(homes) and homes[max(homes)] != group(plug.switch)


def _candidate(
    cluster: str, plug: Plug, known: Mapping[tuple[str, int], int], sheets: Sheets, hours: Hours
) -> str | None:
    """Return the only unlisted busy access port at the physical port of the server's slot."""
    base = known.get(group(plug.switch))
    if base is None:
        return None
    plugged = {(one.switch, one.port) for one in sheets.plugs}
    fits = [
        port.port
        for port, found in hours.items()
        if (port.cluster, port.switch) == (cluster, plug.switch)
        and kind(port.switch, port.port) == "access"
        and (port.switch, port.port) not in plugged
        and cage(port.port) == (plug.server - base + 1) // 2
        and sum(one.in_bytes + one.out_bytes for one in found.values()) >= BUSY
    ]
    return fits[0] if len(fits) == 1 else None


def server_number(name: str) -> int | None:
    """Return n of a name that ends in GPU-n."""
    found = re.search(r"GPU-([1-9]\d{0,5})$", name)
    return int(found[1]) if found else None
