"""Spines, minutes of uplinks, and their other ends, recomputed from raw files for bench.acceptance."""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from bench.acceptance_files import Flow, Release
from bench.acceptance_rules import (
    QUALITIES,
    Load,
    Port,
    Suspect,
    balance_of_minute,
    cage,
    kind,
    number,
)

DATA = Path(__file__).parents[1] / "data"
LINKS_OF_A_LEAF = 3
"""Uplinks of a leaf to each spine; a storage leaf has one."""


def spine_of(port: Port) -> tuple[str, str | None]:
    """Return the spine at the other end of an uplink and its port, by the numbers alone."""
    if port.switch.startswith("ST-"):
        return f"spine-{cage(port.port) - 54}", None
    bundle, place = divmod(cage(port.port) - 33, LINKS_OF_A_LEAF)
    return f"spine-{bundle + 1}", f"FourHundredGigE1/0/{LINKS_OF_A_LEAF * (number(port.switch) - 1) + place + 1}"


def uplinks(release: Release) -> Iterator[tuple[Port, str, str, Load]]:
    """Yield port, hour, spine and load of each uplink; the link table of the hour precedes the numbers."""
    for port, loads in release.hours.items():
        for hour, load in loads.items():
            stated = release.ends.get((port, hour), set())
            if len(stated) == 1:
                yield port, hour, next(iter(stated))[0], load
            elif kind(port.switch, port.port).endswith("uplink"):
                yield port, hour, spine_of(port)[0], load


def peers(release: Release) -> dict[tuple[str, ...], Suspect]:
    """Return the uplinks whose ends in link tables differ from those by number, or from each other."""
    ends: dict[Port, list[tuple[bool, tuple[str, str]]]] = defaultdict(list)
    for (port, hour), stated in release.ends.items():
        if len(stated) == 1:
            ends[port].append((hour in release.hours.get(port, {}), next(iter(stated))))
    found: dict[tuple[str, ...], Suspect] = {}
    for port, seen in ends.items():
        spine, spine_port = spine_of(port)
        as_inferred = all(
            end[0] == spine and spine_port in (None, end[1])
            for has_counters, end in seen
            if has_counters and kind(port.switch, port.port).endswith("uplink")
        )
        if len({end for _, end in seen}) > 1 or not as_inferred:
            hours = {
                hour
                for other, loads in release.hours.items()
                if (other.cluster, other.switch) == (port.cluster, port.switch)
                for hour in loads
            }
            found[*port, "peer_differs"] = (None, None, None, len(hours))
    return found


class Expected(NamedTuple):
    """Size of a cluster, from data/clusters.csv."""

    leaves: int
    storage_leaves: int
    spines: int
    queue_pairs: int
    """Flows of each NIC, where no flow table says more."""

    @property
    def uplinks(self) -> int:
        """Uplinks to each spine."""
        return LINKS_OF_A_LEAF * self.leaves + self.storage_leaves


def expected() -> dict[str, Expected]:
    """Return the sizes of the clusters that are listed."""
    with (DATA / "clusters.csv").open(encoding="utf-8", newline="") as stream:
        return {
            row["cluster"]: Expected(
                *(int(row[name]) for name in ("leaves", "storage_leaves", "spines", "qps_per_nic"))
            )
            for row in csv.DictReader(stream)
        }


Spine = tuple[int, int, float | None, float | None, int, int, bool]
"""Bytes to and from the leaves, their difference, bytes over the mean of the spines, leaves, uplinks, is checkable."""


def spine_hours(release: Release) -> dict[tuple[str, str, str], Spine]:
    """Return the bytes of each spine and hour, and its share where all leaves are loaded."""
    links: dict[tuple[str, str], dict[str, list[tuple[str, Load]]]] = defaultdict(lambda: defaultdict(list))
    for port, hour, spine, load in uplinks(release):
        links[port.cluster, hour][spine].append((port.switch, load))
    sizes, found = expected(), {}
    for (cluster, hour), spines in links.items():
        size = sizes.get(cluster)
        of_all = sum(map(len, spines.values()))
        checkable = {
            spine
            for spine, seen in spines.items()
            if size
            and len({switch for switch, _ in seen}) == size.leaves + size.storage_leaves
            and (len(seen) == size.uplinks or of_all == size.spines * size.uplinks)
        }
        moved = {
            spine: (sum(load.in_bytes for _, load in seen), sum(load.out_bytes for _, load in seen))
            for spine, seen in spines.items()
        }
        total = sum(sum(moved[spine]) for spine in checkable)
        for spine, (to_leaves, from_leaves) in moved.items():
            is_judged = spine in checkable
            found[cluster, spine, hour] = (
                to_leaves,
                from_leaves,
                float(Fraction(to_leaves, from_leaves) - 1) if is_judged and from_leaves else None,
                float(Fraction((to_leaves + from_leaves) * len(checkable), total)) if is_judged and total else None,
                len({switch for switch, _ in spines[spine]}),
                len(spines[spine]),
                is_judged,
            )
    return found


Minute = tuple[int, float | None, float | None, float | None, float | None, int | None, str, int]
"""Total, coefficient of variation, largest over mean, Jain's index, limit of a fair hash, flows, quality, ms."""


def balances_by_minute(release: Release) -> dict[tuple[str, str, str, int, str], Minute]:
    """Return the balance of uplinks by cluster, switch, hour, minute and direction."""
    moved: dict[tuple[str, str, str, int, str], list[int]] = defaultdict(list)
    from_access: dict[tuple[str, str, str, int, str], list[int]] = defaultdict(list)
    observed: dict[tuple[str, str, str, int], list[tuple[str, int]]] = defaultdict(list)
    for (port, hour), found in release.minutes.items():
        is_uplink = kind(port.switch, port.port).endswith("uplink")
        for minute, (into, out, covered, quality) in found.items():
            place = (port.cluster, port.switch, hour, minute)
            of, ways = (moved, ("in", "out")) if is_uplink else (from_access, ("out", "in"))
            of[*place, ways[0]].append(into)
            of[*place, ways[1]].append(out)
            if is_uplink:
                observed[place].append((quality, covered))
    count: dict[tuple[str, str, str], int] = defaultdict(int)
    for port, hours in release.hours.items():
        for hour in hours if kind(port.switch, port.port).endswith("uplink") else ():
            count[port.cluster, port.switch, hour] += 1
    flows, fair, sizes = Flows(release), FairHash(), expected()
    rows: dict[tuple[str, str, str, int, str], Minute] = {}
    for key, values in moved.items():
        cluster, switch, hour, minute, direction = key
        all_uplinks = values + [0] * (count[cluster, switch, hour] - len(values))
        worst = max((quality for quality, _ in observed[key[:4]]), key=QUALITIES.index)
        assumed = flows.of(cluster, switch, hour, minute, direction)
        if assumed is None and any(from_access[key]):
            queue_pairs = sizes[cluster].queue_pairs if cluster in sizes else 2
            assumed = queue_pairs * as_equal(from_access[key])
        spread = None if assumed is None else max(1, math.floor(assumed))
        limit = None if spread is None or worst == "gap" else fair.limit(len(all_uplinks), spread)
        rows[key] = (
            *balance_of_minute(all_uplinks, worst),
            limit,
            spread,
            worst,
            max(covered for _, covered in observed[key[:4]]),
        )
    return rows


def as_equal(weights: Sequence[int]) -> float:
    """Return the number of equal flows that a hash spreads as unevenly as flows of these weights."""
    return sum(weights) ** 2 / sum(weight * weight for weight in weights)


class Flows:
    """Flows of the flow tables that cross the uplinks of a leaf, by direction."""

    def __init__(self, release: Release) -> None:
        self._of: dict[tuple[str, str, str, str], list[Flow]] = defaultdict(list)
        for (cluster, hour), flows in release.flows.items():
            for flow in flows:
                self._of[cluster, flow.source_switch, hour, "out"].append(flow)
                self._of[cluster, flow.dest_switch, hour, "in"].append(flow)

    def of(self, cluster: str, switch: str, hour: str, minute: int, direction: str) -> float | None:
        """Return the number of equal flows: of those active in a minute of the hour, else of those of the hour."""
        known = self._of.get((cluster, switch, hour, direction), [])
        now = _minute_of(hour) + minute
        active = [flow for flow in known if flow.first_minute <= now <= flow.last_minute]
        for flows in (active, known):
            packets = [flow.packets for flow in flows]
            if any(packets):
                return as_equal(packets)
        return None


def _minute_of(hour: str) -> int:
    return int(datetime.strptime(hour, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()) // 60


class FairHash:
    """Limits of data/hash_null.csv, which a fair hash exceeds in 1 of 100 minutes."""

    def __init__(self) -> None:
        self._of: dict[int, list[tuple[int, float]]] = defaultdict(list)
        with (DATA / "hash_null.csv").open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                self._of[int(row["uplinks"])].append((int(row["flows"]), float(row["chi_square_p99"])))
        for rows in self._of.values():
            rows.sort()

    def limit(self, count: int, flows: int) -> float | None:
        """Return the coefficient of variation for a number of uplinks and of equal flows; None if it is not listed."""
        rows = self._of.get(count, [])
        place = bisect_right(rows, (flows, math.inf))
        return math.sqrt(rows[place - 1][1] / flows) if place else None
