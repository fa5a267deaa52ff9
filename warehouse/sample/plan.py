"""Plan of a sample: every decision before the first byte is written, and the physical traffic that results.

Traffic is bytes of each port in each second, over spines and links, with the faulty ones. Every byte has a sender and
a receiver. So the bytes that enter a switch leave it in the same second. The bytes that leaves send to a spine equal
those that the spine sends to leaves.

Some servers send or receive all the time: planted cases of findings, and cases that narrowly are none. No byte of
theirs leaves a leaf, so that the uplinks carry the same with and without them.

Each leaf has three links to each spine (storage leaves one). The share of a spine is drawn per pair of leaves. So the
bytes that all leaves send to a spine equal those that it sends to them. Within a bundle, the two neighbors of a link
without data carry its share; of what it would carry to one leaf, a part takes other spines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from warehouse.sample.basics import HOUR, RAILS, Ints, SampleOptions, draw, draw_one
from warehouse.sample.fabric import (
    ANSWERING,
    QUIET,
    RECEIVING,
    SENDING,
    STEADY,
    Fabric,
    Place,
    Port,
    Switch,
    build_fabric,
    storage_access,
)
from warehouse.sample.jobs import GIGABIT, Job, Task, plan_jobs, plan_tasks, recorded

BURST_SECONDS = 3


@dataclass
class Traffic:
    """Bytes per second of every port (ports x seconds, by switch), and between pairs of leaves."""

    fabric: Fabric
    into: dict[str, Ints]
    out: dict[str, Ints]
    between: dict[tuple[str, str], Ints] = field(default_factory=dict)

    def carry(self, source: tuple[str, str], target: tuple[str, str], series: Ints) -> None:
        """Add bytes from one access port (its switch and name) to another."""
        (from_switch, from_port), (to_switch, to_port) = source, target
        self.into[from_switch][self.fabric.switches[from_switch].index[from_port]] += series
        self.out[to_switch][self.fabric.switches[to_switch].index[to_port]] += series
        if from_switch != to_switch:
            pair = (from_switch, to_switch)
            self.between[pair] = self.between.get(pair, np.zeros_like(series)) + series

    def moved(self, switch: str, port: str, begin: int, end: int) -> tuple[int, int]:
        """Return the bytes of a port from one second to another, in and out."""
        seconds = self.fabric.switches[switch].index[port], slice(begin, end)
        return int(self.into[switch][seconds].sum()), int(self.out[switch][seconds].sum())


@dataclass(frozen=True)
class Burst:
    """Seconds in which a NIC is so near its line rate that the bytes between two polls, 0.5 s apart, exceed it."""

    job: str
    member: int
    rail: int
    second: int
    seconds: int = BURST_SECONDS
    rate: int = 23_400_000_000


def access_traffic(fabric: Fabric, jobs: list[Job], bursts: list[Burst]) -> Traffic:
    """Return the traffic of jobs and storage on access ports."""
    seconds = fabric.options.hours * HOUR
    into, out = (
        {switch.name: np.zeros((len(switch.ports), seconds), np.int64) for switch in fabric.switches.values()}
        for _ in range(2)
    )
    traffic = Traffic(fabric, into, out)
    for job in jobs:
        _add_job(traffic, job, bursts)
    _add_storage(traffic, jobs)
    return traffic


def _add_job(traffic: Traffic, job: Job, bursts: list[Burst]) -> None:
    """Add the traffic of each server to the next server of the ring, mostly to the same rail."""
    options, nics = traffic.fabric.options, traffic.fabric.nics
    steady = 1000 + draw(options.seed, f"pulse/{job.name}", options.hours * HOUR, -40, 40)
    pulses = job.plateau * job.activity(options) // 1000 * steady // 1000
    for member, number in enumerate(job.servers):
        next_number = job.servers[(member + 1) % len(job.servers)]
        following = nics[next_number]
        for rail in range(job.rails):
            share = 1000 + draw_one(options.seed, f"share/{job.name}/{member}/{rail}", -15, 15)
            series = pulses * share // 1000
            for burst in bursts:
                if (burst.job, burst.member, burst.rail) == (job.name, member, rail):
                    series[burst.second : burst.second + burst.seconds] = burst.rate
            # Of a NIC's bytes, 12 % are for the next rail of the next server, and leave the leaf.
            next_rail = series * (0 if job.other_rails else 12) // 100
            source = nics[number][job.rail(number, rail)].end
            # The difference, and not a share of its own, so that both add up to the byte.
            traffic.carry(source, following[job.rail(next_number, rail)].end, series - next_rail)
            if not job.other_rails:
                traffic.carry(source, following[(rail + 1) % job.rails].end, next_rail)
    if job.other_rails:  # 8 % pass a rail that the server does not use
        first, second = (nics[number][job.rails].end for number in job.servers[:2])
        for source, target in ((first, second), (second, first)):
            traffic.carry(source, target, pulses * 8 // 100)


def plan_bursts(job: Job, options: SampleOptions) -> list[Burst]:
    """Return a few bursts per hour on every rail of a job, outside the opening gap."""
    # The opening gap ends before second 255.
    begin = 260 if options.seconds >= 300 else options.seconds // 4
    each = 20 if options.full else 8

    def drawn(label: str, low: int, high: int) -> Ints:
        return draw(options.seed, f"bursts/{job.name}/{label}", each, low, high)

    return [
        Burst(job.name, member, rail, hour * HOUR + second)
        for hour, rail in product(range(options.hours), range(job.rails))
        for second, member in zip(
            drawn(f"{hour}/{rail}", begin, options.seconds - 12).tolist(),
            drawn(f"{hour}/{rail}/members", 0, len(job.servers) - 1).tolist(),
            strict=True,
        )
    ]


def _add_storage(traffic: Traffic, jobs: list[Job]) -> None:
    """Add reads from the first storage leaf, writes of an eighth of them, and copies within the leaf."""
    options, nics = traffic.fabric.options, traffic.fabric.nics
    busy, _, _ = storage_access(1, options)
    ports = [("ST-leaf-1", f"FourHundredGigE1/0/{p}") for p in range(1, busy + 1)]
    readers = [nic.end for job in jobs[:2] for number in job.servers for nic in nics[number][: job.rails]]
    at = np.arange(options.hours * HOUR)
    on = recorded(options)
    for position, port in enumerate(ports):
        copy = draw(options.seed, f"copy/{position}", len(at), GIGABIT, 2 * GIGABIT) * on
        traffic.carry(port, ports[(position + 1) % busy], copy)
        for turn in range(2 if readers else 0):
            reader = readers[(2 * position + turn) * 3 % len(readers)]
            label = f"read/{position}/{turn}"
            phase = draw_one(options.seed, label, 0, 59)
            rates = draw(options.seed, f"{label}/rates", len(at), GIGABIT, 3 * GIGABIT)
            read = rates * ((at + phase) % 60 < 24) * on
            traffic.carry(port, reader, read)
            traffic.carry(reader, port, np.roll(read, 5) * on // 8)


def add_chatter(traffic: Traffic, silent_in: tuple[str, str] | None) -> None:
    """Add link chatter on every connected port, but not into a silent port: 110 KB in and 307 KB out per hour.

    The management port carries the difference. So every switch is balanced to the byte in every second, management
    included.
    """
    options = traffic.fabric.options
    at = np.arange(options.hours * HOUR)
    on = recorded(options)
    for switch in traffic.fabric.switches.values():
        into, out = traffic.into[switch.name], traffic.out[switch.name]
        own = draw(options.seed, f"management/{switch.name}", len(at), 20_000, 70_000) * on
        data = [p for p, port in enumerate(switch.ports) if port.connected and port.kind != "management"]
        silent = [(switch.name, switch.ports[p].name) == silent_in for p in data]
        turn = at + np.array(data)[:, np.newaxis]
        chatter_in = 244 * ((turn % 8 == 0) & on & ~np.array(silent)[:, np.newaxis])
        chatter_out = 128 * ((turn % 3 != 0) & on)
        into[data] += chatter_in
        out[data] += chatter_out
        out[0] += own
        into[0] += own + (chatter_out - chatter_in).sum(axis=0)


RATE = 500_000_000
"""Bytes per second of each NIC that sends all the time: 7.2 TB an hour and server."""


def steady_servers(places: dict[int, Place]) -> dict[str, int]:
    """Return the numbers of the servers that move bytes all the time, by their role; none if none is planted."""
    return {place.role: number for number, place in places.items() if place.role in STEADY}


def add_steady(traffic: Traffic) -> None:
    """Add the bytes of the servers that send or receive all the time, each NIC to that of the same leaf."""
    options, nics = traffic.fabric.options, traffic.fabric.nics
    number_of = steady_servers(traffic.fabric.places)
    if not number_of:
        return
    on = recorded(options).astype(np.int64)
    rates = (
        (SENDING, RECEIVING, RATE),
        (SENDING, ANSWERING, RATE),
        (ANSWERING, SENDING, RATE * 8 // 100),  # a server that only receives sends less
        (SENDING, QUIET, 1_200_000_000 // RAILS // options.seconds),  # in the hour a little more than an idle one moves
    )
    for source, target, rate in rates:
        for sender, receiver in zip(nics[number_of[source]], nics[number_of[target]], strict=True):
            traffic.carry(sender.end, receiver.end, on * rate)


FAVORED, FAVORED_PERCENT = 3, 119
"""Number of the spine that gets more bytes, and its weight in percent of the others'. Of three spines it carries 12 %
above their mean, which leaves the uplinks of a leaf just within the bound of an uneven leaf."""
LESS_PERCENT = 11
"""How much less a leaf gets from the first spine, since an uplink of another leaf sends nothing to it."""
UNEVEN_LEAF, UNEVEN_SECOND, MINUTE = "ST-leaf-1", 600, 60
"""Leaf, and second of the last hour, of the uneven minute: all that the leaf sends goes to the first spine."""


@dataclass(frozen=True)
class Faults:
    """Faulty uplinks as (switch, port); None in a sample without faults."""

    no_data_out: tuple[str, str] | None = None
    no_data_in: tuple[str, str] | None = None
    silent_in: tuple[str, str] | None = None
    """No packet comes in, while control traffic passes the links of `no_data_out` and `no_data_in`."""
    hot_out: tuple[str, str] | None = None
    """Hot from the second hour on."""
    uneven_out: tuple[str, int] | None = None
    """Leaf, and first second of the minute in which it sends to the first spine alone."""
    favored_spine: int | None = None
    """Number of the spine that the hash of all leaves favors."""
    less_from_spine: tuple[str, str] | None = None
    """Leaf of `no_data_out`, and a leaf to which it leads a part of its bytes past the first spine."""


def plan_faults(options: SampleOptions) -> Faults:
    """Return the faults of a sample: on three different leaves, or none."""
    if not options.planted:
        return Faults()
    if options.full:
        return Faults(_port("Leaf-10", 35), _port("Leaf-18", 47), hot_out=_port("Leaf-4", 40), favored_spine=FAVORED)
    of_second_spine = 33 + 3 * min(1, options.spines - 1)
    has_uneven = options.seconds >= UNEVEN_SECOND + MINUTE and options.spines > 1
    return Faults(
        no_data_out=_port("Leaf-2", 35),
        silent_in=_port("Leaf-7", of_second_spine + 1),
        hot_out=_port("Leaf-4", 34),
        uneven_out=(UNEVEN_LEAF, (options.hours - 1) * HOUR + UNEVEN_SECOND) if has_uneven else None,
        favored_spine=FAVORED if options.spines >= FAVORED else None,
        less_from_spine=("Leaf-2", "Leaf-3") if options.spines > 1 else None,
    )


def _port(leaf: str, number: int) -> tuple[str, str]:
    return leaf, f"FourHundredGigE1/0/{number}"


def formula_spine_port(switch: Switch, port: Port) -> str | None:
    """Return the spine port of a GPU leaf's uplink by its number; None for a storage leaf, which has no formula."""
    if port.kind != "uplink":
        return None
    return f"FourHundredGigE1/0/{3 * (switch.number - 1) + (port.number - 33) % 3 + 1}"


def spine_port(switch: Switch, port: Port, options: SampleOptions) -> str:
    """Return the spine port where an uplink's cable really ends."""
    if (switch.name, port.name) == other_cable(options):
        return f"FourHundredGigE1/0/{3 * options.leaves + options.storage_leaves + 1}"
    return formula_spine_port(switch, port) or f"FourHundredGigE1/0/{3 * options.leaves + switch.number}"


def other_cable(options: SampleOptions) -> tuple[str, str]:
    """Return the one uplink whose spine port does not follow the formula."""
    return "Leaf-3", f"FourHundredGigE1/0/{33 + 3 * min(1, options.spines - 1)}"


def spread(traffic: Traffic, faults: Faults) -> None:
    """Add the traffic between leaves to their uplinks, exact to the byte."""
    options = traffic.fabric.options
    shape = (options.spines, options.hours * HOUR)
    sent, received = (
        {switch.name: np.zeros(shape, np.int64) for switch in traffic.fabric.switches.values()} for _ in range(2)
    )
    for (source, target), series in traffic.between.items():
        parts = _by_spine(options, f"{source}/{target}", series, faults.favored_spine)
        if faults.uneven_out and faults.uneven_out[0] == source:
            minute = slice(faults.uneven_out[1], faults.uneven_out[1] + MINUTE)
            parts[:, minute] = 0
            parts[0, minute] = series[minute]
        sent[source] += parts
        received[target] += parts
    pair = faults.less_from_spine
    if pair and pair in traffic.between:
        parts = _by_spine(options, "/".join(pair), traffic.between[pair], faults.favored_spine)
        _avoid_spine(parts[0], sent[pair[0]], received[pair[1]])
    for switch in traffic.fabric.switches.values():
        for way, moved, ports in (("out", sent, traffic.out), ("in", received, traffic.into)):
            for spine, series in enumerate(moved[switch.name], start=1):
                _bundle(switch, spine, way, series, ports[switch.name], options, faults)


def _by_spine(options: SampleOptions, label: str, series: Ints, favored: int | None) -> Ints:
    """Return one pair's bytes by spine: nearly equal shares, less equal for storage; one spine takes the remainder."""
    uneven = 150 if "ST-" in label else 15
    weights = 1000 + draw(options.seed, f"spines/{label}", options.spines, -uneven, uneven)
    if favored:
        weights[favored - 1] = weights[favored - 1] * FAVORED_PERCENT // 100
    parts = series[np.newaxis, :] * weights[:, np.newaxis] // int(weights.sum())
    parts[draw_one(options.seed, f"rest/{label}", 0, options.spines - 1)] += series - parts.sum(axis=0)
    return parts


def _avoid_spine(series: Ints, sent: Ints, received: Ints) -> None:
    """Lead a part of a series, which one leaf sends to another, past the first spine.

    The other leaf then gets `LESS_PERCENT` less from that spine than from the others, in the mean.
    """
    first, *others = (int(one.sum()) for one in received)
    want, whole = 100 - LESS_PERCENT, int(series.sum())
    # Solves: the first spine without the moved bytes has `want` % of the mean of the others, which get them.
    moved = (first * 100 * len(others) - want * sum(others)) // (100 * len(others) + want)
    if 0 < moved < whole:
        # In millionths, as the product of a second's bytes and all bytes may exceed 64 bits.
        part = series * (moved * 1_000_000 // whole) // 1_000_000
        for of in (sent, received):
            of[0] -= part
            of[1] += part


def _bundle(
    switch: Switch,
    spine: int,
    direction: str,
    series: Ints,
    ports: Ints,
    options: SampleOptions,
    faults: Faults,
) -> None:
    """Distribute the bytes between one leaf and one spine over their links, in one direction."""
    lost = (faults.no_data_out,) if direction == "out" else (faults.no_data_in, faults.silent_in)
    links = [
        position
        for position, port in enumerate(switch.ports)
        if port.spine == spine and (switch.name, port.name) not in lost
    ]
    weights = np.stack([_weights(switch, position, direction, options, faults) for position in links])
    parts = series * weights // weights.sum(axis=0)
    # One link takes what rounding leaves, so that no byte is lost.
    parts[0] += series - parts.sum(axis=0)
    ports[links] += parts


def _weights(switch: Switch, position: int, direction: str, options: SampleOptions, faults: Faults) -> Ints:
    """Return the weight of a link in each second: near 1000, slightly uneven between links and between seconds."""
    label = f"link/{switch.name}/{position}/{direction}"
    steady = 1000 + draw_one(options.seed, label, -25, 25)
    weights = steady + draw(options.seed, f"{label}/seconds", options.hours * HOUR, -80, 80)
    if direction == "out" and (switch.name, switch.ports[position].name) == faults.hot_out:
        weights[HOUR:] *= 2  # its neighbors in the bundle keep theirs
    return weights


@dataclass(frozen=True)
class Plan:
    """Wiring, jobs, tasks, faults, and the resulting bytes of every second."""

    options: SampleOptions
    fabric: Fabric
    jobs: list[Job]
    tasks: list[Task]
    bursts: list[Burst]
    faults: Faults
    traffic: Traffic


def make_plan(options: SampleOptions) -> Plan:
    """Return the plan for resolved options."""
    fabric = build_fabric(options)
    jobs = plan_jobs([*fabric.places.values()], options)
    bursts = plan_bursts(jobs[0], options)
    # A burst of 30 s per hour at the line rate, from the first to the second server of the job that pauses.
    bursts += [
        Burst(job.name, 0, 0, hour * HOUR + 700, seconds=30, rate=24_000_000_000)
        for job in jobs
        if job.pauses
        for hour in range(options.hours)
    ]
    faults = plan_faults(options)
    traffic = access_traffic(fabric, jobs, bursts)
    add_steady(traffic)
    # After all traffic between access ports, as uplinks carry what goes from leaf to leaf.
    spread(traffic, faults)
    # Last, as the management port carries what is left to balance.
    add_chatter(traffic, faults.silent_in)
    return Plan(options, fabric, jobs, plan_tasks(jobs, options), bursts, faults, traffic)
