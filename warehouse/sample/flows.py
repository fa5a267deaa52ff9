"""Physical traffic: how many bytes each port carries in each second.

Every byte has a sender and a receiver, so that what enters a switch leaves it in the same second, and what
the leaves send to a spine the spine sends to the leaves, exactly.
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
"""Bytes that an unused but connected port shows in every eighth second, and in two seconds of three.

Together 110 KB in and 307 KB out an hour.
"""

NEXT_RAIL_PERMILLE = 120
"""Part of a NIC's bytes that goes to the next rail of the next server, and so leaves the leaf."""

BURST = 23_400_000_000
"""Bytes per second of a NIC that is driven close to its line rate."""
BURST_SECONDS = 3


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
        """Send bytes from an access port to another one."""
        (from_switch, from_port), (to_switch, to_port) = source, target
        self.into[from_switch][fabric.switch(from_switch).index[from_port]] += series
        self.out[to_switch][fabric.switch(to_switch).index[to_port]] += series
        if from_switch != to_switch:
            pair = (from_switch, to_switch)
            self.between[pair] = self.between.get(pair, np.zeros_like(series)) + series


@dataclass(frozen=True)
class Burst:
    """Seconds in which a NIC is driven so close to line rate that half a second of polling sees more."""

    job: str
    member: int
    rail: int
    second: int


def access_traffic(fabric: Fabric, jobs: list[Job], bursts: list[Burst]) -> Traffic:
    """Let servers and storage send each other what they do."""
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
    """Let each server send to the next of the ring, mostly to the same rail."""
    options = fabric.options
    seconds = options.hours * HOUR
    steady = 1000 + draw(options.seed, f"pulse/{job.name}", seconds, -40, 40)
    pulses = job.plateau * job.activity(options) // 1000 * steady // 1000
    for member, number in enumerate(job.servers):
        following = fabric.nics[job.servers[(member + 1) % len(job.servers)]]
        for rail in range(job.rails):
            share = 1000 + draw_one(options.seed, f"share/{job.name}/{member}/{rail}", -15, 15)
            series = pulses * share // 1000
            for burst in bursts:
                if (burst.job, burst.member, burst.rail) == (job.name, member, rail):
                    series[burst.second : burst.second + BURST_SECONDS] = BURST
            aside = series * NEXT_RAIL_PERMILLE // 1000
            source = fabric.nics[number][rail]
            yield Edge(job.name, source, following[rail], series - aside)
            yield Edge(job.name, source, following[(rail + 1) % job.rails], aside)


def plan_bursts(job: Job, options: SampleOptions) -> list[Burst]:
    """Plan a few bursts an hour on every rail of a job, outside the opening gap."""
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


def _storage(fabric: Fabric, jobs: list[Job], traffic: Traffic) -> None:
    """Let servers read from the first storage leaf and write an eighth back, and let it copy to itself."""
    options = fabric.options
    busy, _, _ = storage_access(1, options)
    ports = [("ST-leaf-1", f"FourHundredGigE1/0/{p}") for p in range(1, busy + 1)]
    readers = [nic for job in jobs[:2] for number in job.servers for nic in fabric.nics[number][: job.rails]]
    at = np.arange(options.hours * HOUR)
    on = recorded(options)
    for position, port in enumerate(ports):
        copy = draw(options.seed, f"copy/{position}", len(at), GIGABIT, 2 * GIGABIT) * on
        traffic.carry(fabric, port, ports[(position + 1) % busy], copy)
        for turn in range(2):
            nic = readers[(2 * position + turn) * 3 % len(readers)]
            label = f"read/{position}/{turn}"
            phase = draw_one(options.seed, label, 0, 59)
            rates = draw(options.seed, f"{label}/rates", len(at), GIGABIT, 3 * GIGABIT)
            read = rates * ((at + phase) % 60 < 24) * on
            traffic.carry(fabric, port, (nic.switch, nic.port), read)
            traffic.carry(fabric, (nic.switch, nic.port), port, np.roll(read, 5) * on // 8)


def add_chatter(fabric: Fabric, traffic: Traffic) -> None:
    """Put link chatter on every connected port; the management port takes up the difference.

    So the whole switch stays balanced to the byte in every second, management included.
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
                heard = CHATTER_IN * (((at + position) % 8 == 0) & on)
                said = CHATTER_OUT * (((at + position) % 3 != 0) & on)
                into[position] += heard
                out[position] += said
                extra += said - heard
        out[0] += own
        into[0] += own + extra
