"""Physical traffic: bytes of each port in each second.

Every byte has a sender and a receiver. So the bytes that enter a switch leave it in the same second. The bytes that
leaves send to a spine equal those that the spine sends to leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.draws import Ints, draw, draw_one
from warehouse.sample.fabric import Fabric, Nic, storage_access
from warehouse.sample.jobs import GIGABIT, HOUR, Job, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.sample.options import SampleOptions

CHATTER_IN, CHATTER_OUT = 244, 128
"""Bytes of an idle but connected port: the first in every eighth second, the second in two of three seconds.

Together these are 110 KB in and 307 KB out per hour.
"""

NEXT_RAIL_PERMILLE = 120
"""Share of a NIC's bytes, in thousandths, for the next rail of the next server; these bytes leave the leaf."""

LITTLE_PERMILLE = 80
"""Share of the bytes of a NIC, in thousandths, that passes a rail which the server does not use."""

BURST = 23_400_000_000
"""Bytes per second of a NIC near its line rate."""
BURST_SECONDS = 3
FULL_RATE, FULL_SECOND, FULL_SECONDS = 24_000_000_000, 700, 30
"""Bytes per second of a NIC at its line rate, and the seconds of an hour in which it is."""


@dataclass(frozen=True)
class Edge:
    """Bytes per second from one NIC to another."""

    job: str
    source: Nic
    target: Nic
    series: Ints


@dataclass
class Traffic:
    """Bytes per second of every port (ports x seconds, by switch), and between pairs of leaves."""

    into: dict[str, Ints]
    out: dict[str, Ints]
    between: dict[tuple[str, str], Ints] = field(default_factory=dict)

    def carry(self, fabric: Fabric, source: tuple[str, str], target: tuple[str, str], series: Ints) -> None:
        """Add bytes from one access port to another."""
        (from_switch, from_port), (to_switch, to_port) = source, target
        self.into[from_switch][fabric.switch(from_switch).index[from_port]] += series
        self.out[to_switch][fabric.switch(to_switch).index[to_port]] += series
        if from_switch != to_switch:
            pair = (from_switch, to_switch)
            self.between[pair] = self.between.get(pair, np.zeros_like(series)) + series


@dataclass(frozen=True)
class Burst:
    """Seconds in which a NIC is so near its line rate that the bytes between two polls, 0.5 s apart, exceed it."""

    job: str
    member: int
    rail: int
    second: int
    seconds: int = BURST_SECONDS
    rate: int = BURST


def access_traffic(fabric: Fabric, jobs: list[Job], bursts: list[Burst]) -> Traffic:
    """Return the traffic of jobs and storage on access ports."""
    seconds = fabric.options.hours * HOUR
    shapes = {switch.name: (len(switch.ports), seconds) for switch in fabric.switches}
    traffic = Traffic(
        {name: np.zeros(shape, np.int64) for name, shape in shapes.items()},
        {name: np.zeros(shape, np.int64) for name, shape in shapes.items()},
    )
    for job in jobs:
        for edge in job_edges(fabric, job, bursts):
            source, target = edge.source, edge.target
            traffic.carry(fabric, (source.switch, source.port), (target.switch, target.port), edge.series)
    _storage(fabric, jobs, traffic)
    return traffic


def job_edges(fabric: Fabric, job: Job, bursts: list[Burst]) -> Iterator[Edge]:
    """Yield the traffic of each server to the next server of the ring, mostly to the same rail."""
    options = fabric.options
    seconds = options.hours * HOUR
    steady = 1000 + draw(options.seed, f"pulse/{job.name}", seconds, -40, 40)
    pulses = job.plateau * job.activity(options) // 1000 * steady // 1000
    for member, number in enumerate(job.servers):
        next_number = job.servers[(member + 1) % len(job.servers)]
        following = fabric.nics[next_number]
        for rail in range(job.rails):
            share = 1000 + draw_one(options.seed, f"share/{job.name}/{member}/{rail}", -15, 15)
            series = pulses * share // 1000
            for burst in bursts:
                if (burst.job, burst.member, burst.rail) == (job.name, member, rail):
                    series[burst.second : burst.second + burst.seconds] = burst.rate
            next_rail = series * (0 if job.is_local else NEXT_RAIL_PERMILLE) // 1000
            source = fabric.nics[number][job.rail(number, rail)]
            yield Edge(job.name, source, following[job.rail(next_number, rail)], series - next_rail)
            if not job.is_local:
                yield Edge(job.name, source, following[(rail + 1) % job.rails], next_rail)
    if job.other_rails:
        first, second = (fabric.nics[number][job.rails] for number in job.servers[:2])
        for source, target in ((first, second), (second, first)):
            yield Edge(job.name, source, target, pulses * LITTLE_PERMILLE // 1000)


def plan_bursts(job: Job, options: SampleOptions) -> list[Burst]:
    """Return a few bursts per hour on every rail of a job, outside the opening gap."""
    begin = 260 if options.seconds >= 300 else options.seconds // 4
    each = 20 if options.full else 8
    bursts = []
    for hour in range(options.hours):
        for rail in range(job.rails):
            label = f"bursts/{job.name}/{hour}/{rail}"
            offsets = draw(options.seed, label, each, begin, options.seconds - 12)
            members = draw(options.seed, f"{label}/members", each, 0, len(job.servers) - 1)
            for offset, member in zip(offsets.tolist(), members.tolist(), strict=True):
                bursts.append(Burst(job.name, member, rail, hour * HOUR + offset))
    return bursts


def full_nics(job: Job, options: SampleOptions) -> list[Burst]:
    """Return a long burst per hour at nearly the line rate, from the first to the second server of a job."""
    return [Burst(job.name, 0, 0, hour * HOUR + FULL_SECOND, FULL_SECONDS, FULL_RATE) for hour in range(options.hours)]


def _storage(fabric: Fabric, jobs: list[Job], traffic: Traffic) -> None:
    """Add reads from the first storage leaf, writes of an eighth of them, and copies within the leaf."""
    options = fabric.options
    busy, _, _ = storage_access(1, options)
    ports = [("ST-leaf-1", f"FourHundredGigE1/0/{p}") for p in range(1, busy + 1)]
    readers = [nic for job in jobs[:2] for number in job.servers for nic in fabric.nics[number][: job.rails]]
    at = np.arange(options.hours * HOUR)
    on = recorded(options)
    for position, port in enumerate(ports):
        copy = draw(options.seed, f"copy/{position}", len(at), GIGABIT, 2 * GIGABIT) * on
        traffic.carry(fabric, port, ports[(position + 1) % busy], copy)
        for turn in range(2 if readers else 0):
            nic = readers[(2 * position + turn) * 3 % len(readers)]
            label = f"read/{position}/{turn}"
            phase = draw_one(options.seed, label, 0, 59)
            rates = draw(options.seed, f"{label}/rates", len(at), GIGABIT, 3 * GIGABIT)
            read = rates * ((at + phase) % 60 < 24) * on
            traffic.carry(fabric, port, (nic.switch, nic.port), read)
            traffic.carry(fabric, (nic.switch, nic.port), port, np.roll(read, 5) * on // 8)


def add_chatter(fabric: Fabric, traffic: Traffic, silent_in: tuple[str, str] | None) -> None:
    """Add link chatter on every connected port, but not into a silent port.

    The management port carries the difference. So every switch is balanced to the byte in every second, management
    included.
    """
    options = fabric.options
    at = np.arange(options.hours * HOUR)
    on = recorded(options)
    for switch in fabric.switches:
        into, out = traffic.into[switch.name], traffic.out[switch.name]
        own = draw(options.seed, f"management/{switch.name}", len(at), 20_000, 70_000) * on
        extra = np.zeros_like(own)
        for position, port in enumerate(switch.ports):
            if port.connected and port.kind != "management":
                is_silent = (switch.name, port.name) == silent_in
                chatter_in = (0 if is_silent else CHATTER_IN) * (((at + position) % 8 == 0) & on)
                chatter_out = CHATTER_OUT * (((at + position) % 3 != 0) & on)
                into[position] += chatter_in
                out[position] += chatter_out
                extra += chatter_out - chatter_in
        out[0] += own
        into[0] += own + extra
