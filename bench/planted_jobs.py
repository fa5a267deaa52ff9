"""Simulated hours with planted training jobs: who trains together, by which clock, and what counters of ports show.

The jobs differ from those of the sample, whose bytes the task logs repeat: iterations vary, the rails of a server pulse
apart, members lag, join late, or show little but noise of their own. Around them is traffic that is no job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warehouse.sample.basics import HOUR, RAILS, Ints, SampleOptions, draw, draw_one
from warehouse.sample.fabric import Fabric, build_fabric, slot_owner
from warehouse.sample.port_files import poll_times, refresh_ms

KINDS = {"plain": 2, "in_step": 4, "stages": 4, "lagging": 3, "noisy": 4, "late": 3, "early": 2, "more": 2}
"""Kinds of jobs in an hour, with the servers that each needs; `more` is another plain one."""
SHORTEST, LONGEST = 0.8, 300.0
"""Seconds of an iteration."""
STEADIEST = 0.003
"""Least part by which iterations vary. Members of the steadiest jobs of the real hour correlate at 0.2 to 0.6 in what
their mean iteration does not explain, and not at all if shifted by whole iterations."""
MINUTE = 60
PEAK = 38e9
"""Bytes per second, in and out, that the mean iteration of a NIC never exceeds."""
CHATTER = 116
"""Bytes per second, in and out, of an idle NIC of a busy server."""
SLOWEST = 0.95
"""Part of a second that a NIC falls behind or catches up in a second at most: bytes never flow back."""
SLOWEST_READ = 450
"""Milliseconds from a poll's time until its last port is read. On the real leaves ports are read one after another."""
EQUAL = 0.0005
"""Part by which the bytes of members differ at most."""
SEEN = 254.4
"""Second of the hour at which the opening gap has ended on all switches: nobody sees single iterations before."""

Floats = NDArray[np.float64]
Nic = tuple[int, int]
"""Number of the server, and rail from 0."""


@dataclass(frozen=True)
class TrafficJob:
    """Job as the network sees it; a stage of a pipeline is a job whose clock is that of the first stage."""

    job_id: str
    kind: str
    servers: tuple[int, ...]
    rails: tuple[int, ...]
    """Positions (from 0) of its leaves in a group."""
    starts: Floats
    """Start of each iteration in seconds of the hour, from before the hour to after it."""
    pattern: tuple[tuple[float, ...], tuple[float, ...]]
    """Parts of an iteration, and the part of its bytes that moved by then."""
    duty: float
    """Part of an iteration during which a rail moves bytes."""
    phases: tuple[float, ...]
    """Delay of each rail, as a part of an iteration."""
    bytes_per_iteration: tuple[float, ...]
    """Bytes of a NIC, in and out, on each rail."""
    steady: float = 0.0
    """Part of the bytes that moves all the time."""
    noise: float = 0.2
    """Deviation of a NIC's rate of a second, as a part of the rate."""
    memory: float = 0.7
    """Part of a NIC's delay that is left after a second."""
    end: float = HOUR
    lag: float = 0.0
    """Seconds after that job."""
    lags: dict[int, float] = field(default_factory=dict)
    """Seconds that a server is later than the job."""
    begins: dict[int, float] = field(default_factory=dict)
    """Second of the hour at which a server joins."""


class Other(NamedTuple):
    """Traffic of one NIC that belongs to no job: its bytes up to each second of the hour."""

    server: int
    rail: int
    up_to: Floats
    noise: float = 0.4


class TrafficPlan(NamedTuple):
    """Jobs and other traffic of one hour on a fabric."""

    seed: int
    jobs: tuple[TrafficJob, ...]
    others: tuple[Other, ...]
    owners: dict[int, str]
    """Owner of the ports of each cabled server, as far as the workbook tells it: two unlisted servers have one."""


class _Dice:
    """Draws by label, which differ from job to job."""

    def __init__(self, seed: int, name: str) -> None:
        self.seed, self.name = seed, f"traffic/{name}"

    def one(self, label: str, low: float, high: float) -> float:
        return low + (high - low) * draw_one(self.seed, f"{self.name}/{label}", 0, 2**30) / 2**30

    def many(self, label: str, count: int, low: float, high: float) -> Floats:
        return low + (high - low) * draw(self.seed, f"{self.name}/{label}", count, 0, 2**30) / 2**30

    def of_scale(self, label: str, low: float, high: float) -> float:
        """Return a number between the limits, its logarithm uniform."""
        return float(low * (high / low) ** self.one(label, 0, 1))

    def order(self, label: str, count: int) -> list[int]:
        return [int(one) for one in np.argsort(self.many(label, count, 0, 1), kind="stable")]


def plan_traffic(fabric: Fabric, *, jobs: bool = True) -> TrafficPlan:
    """Return the hour that the seed of the fabric draws. Without jobs, each server has a job of its own or noise."""
    seed = fabric.options.seed
    dice = _Dice(seed, "hour")
    place_of = fabric.places
    owners = {number: slot_owner(place_of[number], place_of) for number in fabric.nics}
    pair = [number for number, owner in owners.items() if "/" in owner]
    free = sorted(set(owners) - set(pair))
    free = [free[one] for one in dice.order("free", len(free))]
    idle, rest = free[: len(free) // 16], free[len(free) // 16 :]
    count = len(rest) // 4 if jobs else len(rest)
    background, left = rest[:count], sorted(rest[count:])
    planted: list[TrafficJob] = []
    names = list(KINDS)
    kinds = [names[one] for one in dice.order("kinds", len(names))] if jobs else []
    for place, kind in enumerate(kinds):
        needed = sum(KINDS[later] for later in kinds[place + 1 :])
        if len(left) >= KINDS[kind]:
            made = _jobs_of(kind, left, max(len(left) - needed, KINDS[kind]), fabric, len(planted))
            planted += made
            taken = {number for job in made for number in job.servers}
            left = [number for number in left if number not in taken]
    others, single = _background(background, seed, len(planted))
    single += _on_other_rails(planted, idle, _Dice(seed, "other rails"), len(planted) + len(single))
    return TrafficPlan(seed, (*_with_pair(planted, pair, dice), *single), tuple(others), owners)


def _jobs_of(kind: str, left: list[int], most: int, fabric: Fabric, planted: int) -> list[TrafficJob]:
    """Return the job of a kind, or the jobs of one clock, on free servers."""
    dice = _Dice(fabric.options.seed, f"jobs/{planted}")
    size = max(min(round(dice.of_scale("size", 2, 64)), most), KINDS[kind])
    if kind == "in_step":
        return _in_step(dice, left, size, fabric, planted)
    members = _some(dice, left, size)
    if kind == "stages":
        count = min(2 + int(dice.one("stages", 0, 2.999)), size // 2)
        edges = [size * one // count for one in range(count + 1)]
        parts = [tuple(members[low:high]) for low, high in pairwise(edges)]
        first = _job(dice, kind, parts[0], planted)
        return [first, *(_same_clock(dice, first, part, planted + 1 + one) for one, part in enumerate(parts[1:]))]
    job = _job(dice, "plain" if kind == "more" else kind, tuple(members), planted)
    some = members[: max(size // 8, 1)]
    if kind == "lagging":
        lags = dice.many("lags", len(some), 5, 15).round(3).tolist()
        return [replace(job, lags=dict(zip(some, lags, strict=True)))]
    return [replace(job, begins=dict.fromkeys(some, HOUR / 3))] if kind == "late" else [job]


def _some(dice: _Dice, left: Sequence[int], size: int) -> list[int]:
    """Return neighbors, or servers from all groups."""
    if dice.one("neighbors", 0, 1) < 0.5:
        start = int(dice.one("first", 0, len(left) - size + 0.999))
        return list(left[start : start + size])
    return sorted(left[one] for one in dice.order("members", len(left))[:size])


def _in_step(dice: _Dice, left: list[int], size: int, fabric: Fabric, planted: int) -> list[TrafficJob]:
    """Return two jobs of one clock, on leaves of different groups."""
    group_of = {number: place.group for number, place in fabric.places.items()}
    groups = sorted({group for number in left if (group := group_of[number]) is not None})
    groups = [groups[one] for one in dice.order("groups", len(groups))]
    sides = groups[: (len(groups) + 1) // 2], groups[(len(groups) + 1) // 2 :]
    here, there = ([number for number in left if group_of[number] in side] for side in sides)
    if min(len(here), len(there)) < 2:
        return []
    first = _job(dice, "in_step", tuple(here[: max(size // 2, 2)]), planted)
    second = _same_clock(dice, first, tuple(there[: max(size - size // 2, 2)]), planted + 1)
    pattern = second.phases if dice.one("pattern", 0, 1) < 0.5 else first.phases
    return [first, replace(second, lag=0.0, phases=pattern)]


def _job(dice: _Dice, kind: str, servers: tuple[int, ...], planted: int) -> TrafficJob:
    end = float(round(dice.one("end", 1200, 1800))) if kind == "early" else HOUR
    period = round(dice.of_scale("period", SHORTEST, 90.0 if kind == "early" else LONGEST), 3)
    jitter = STEADIEST + (0.05 - STEADIEST) * dice.one("jitter", 0, 1) ** 2
    count = int(HOUR / period * 1.3) + 8
    lengths = period * np.maximum(1 + dice.many("lengths", count, -1, 1) * 3**0.5 * jitter, 0.2)
    starts = _up_to(lengths) - period * (2 + dice.one("phase", 0, 1))
    two = dice.one("rails", 0, 1)
    rails = (0, 1) if two < 0.2 else (2, 3) if two < 0.3 else tuple(range(RAILS))
    duty = round(dice.one("duty", 0.05, 0.7), 3)
    phases = tuple((dice.one("shift", 0, 1) + dice.many("phases", len(rails), 0, 1) * _spread(duty)).tolist())
    steady = (dice.one("steady", 0.6, 0.8) if kind == "noisy" else dice.one("steady", 0, 0.3)) * dice.one("?", 0, 1.5)
    steady = round(min(max(steady, 0.6 if kind == "noisy" else 0.0), 0.8), 3)
    rate = min(dice.of_scale("rate", 1e8, 1e10), PEAK * duty / 2)
    uneven = dice.one("uneven", 0, 0.3) if dice.one("even", 0, 1) < 0.5 else 0
    by_rail = 1 + dice.many("rail rates", len(rails), -1, 1) * uneven
    return TrafficJob(
        job_id=f"job-{planted + 1}",
        kind=kind,
        servers=servers,
        rails=rails,
        starts=starts,
        pattern=_pattern(dice, duty),
        duty=duty,
        phases=phases,
        bytes_per_iteration=tuple((period * rate * by_rail).round().tolist()),
        steady=steady,
        noise=0.7 if kind == "noisy" else round(dice.one("noise", 0.1, 0.3), 3),
        memory=0.95 if kind == "noisy" else 0.7,
        end=end,
    )


def _spread(duty: float) -> float:
    """Return the part of an iteration over which the rails' phases lie: their rates then correlate at about 0.2.

    Two pulses of this duty, delayed by uniform parts of the spread s, overlap by duty * (u - u^2/3) with u = duty/s.
    """
    overlap = min(0.2 + 0.8 * duty, 0.75)
    return 2 * duty / (3 - float(np.sqrt(9 - 12 * overlap)))


def _pattern(dice: _Dice, duty: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return one pulse an iteration, or a long one and a short one."""
    if dice.one("pulses", 0, 1) < 0.6:
        return (0.0, duty, 1.0), (0.0, 1.0, 1.0)
    long = 0.75 * duty
    gap = (1 - duty) * dice.one("gap", 0.25, 0.5)
    return (0.0, long, long + gap, duty + gap, 1.0), (0.0, 0.75, 0.75, 1.0, 1.0)


def _same_clock(dice: _Dice, first: TrafficJob, servers: tuple[int, ...], planted: int) -> TrafficJob:
    """Return a job that repeats the iterations of another one, with a lag and other bytes."""
    own = _Dice(dice.seed, f"jobs/{planted}")
    period = float(np.diff(first.starts).mean())
    factor = own.one("factor", 1.25, 2)
    if own.one("more", 0, 1) < 0.5 or max(first.bytes_per_iteration) > PEAK * first.duty / 4 * period:
        factor = 1 / factor
    return replace(
        first,
        job_id=f"job-{planted + 1}",
        servers=servers,
        phases=tuple(own.many("phases", len(first.rails), 0, 1) * _spread(first.duty)),
        bytes_per_iteration=tuple(round(one * factor) for one in first.bytes_per_iteration),
        lag=round(own.one("lag", 0.15, 0.85) * min(period, 15), 3),
    )


def _with_pair(planted: list[TrafficJob], pair: list[int], dice: _Dice) -> list[TrafficJob]:
    """Return the jobs; a plain one also has one or both of the two servers with one owner."""
    plain = [place for place, job in enumerate(planted) if job.kind == "plain"]
    if not plain or not pair:
        return planted
    job = planted[plain[0]]
    more = pair if dice.one("pair", 0, 1) < 0.5 else pair[:1]
    grown = replace(job, servers=(*job.servers, *more))
    return [grown if one is job else one for one in planted]


def _on_other_rails(planted: list[TrafficJob], idle: list[int], dice: _Dice, count: int) -> list[TrafficJob]:
    """Return a member of a job on two rails that uses the other two, and one like it with iterations of its own."""
    hosts = [job for job in planted if job.kind == "plain" and len(job.rails) == 2 and len(job.servers) > 2]
    if not hosts or len(idle) < 2:
        return []
    rails = tuple(sorted(set(range(RAILS)) - set(hosts[0].rails)))
    member = replace(hosts[0], servers=(idle[0],), rails=rails)
    lengths = np.diff(member.starts)[dice.order("lengths", len(member.starts) - 1)]
    starts = member.starts[0] - lengths[0] * dice.one("phase", 0.2, 0.8) + _up_to(lengths)
    return [member, replace(member, job_id=f"job-{count + 1}", kind="single", servers=(idle[1],), starts=starts)]


def _background(servers: list[int], seed: int, planted: int) -> tuple[list[Other], list[TrafficJob]]:
    """Return traffic of a third each: two storages of slow drift, noise, and jobs of one server."""
    dice = _Dice(seed, "background")
    found: list[Other] = []
    third = -(-len(servers) // 3)
    drifts = [_drift(dice, f"storage/{one}") for one in range(2)]
    for place, number in enumerate(servers[:third]):
        rate = drifts[place % 2] * dice.of_scale(f"rate/{number}", 1e8, 3e9)
        found += [Other(number, rail, _up_to(rate)) for rail in range(1 + int(dice.one(f"rails/{number}", 0, 1.999)))]
    for number in servers[third : 2 * third]:
        rate = _bursts(dice, str(number)) * dice.of_scale(f"rate/{number}", 1e8, 8e9)
        mixed = [rate + _bursts(dice, f"{number}/{rail}") * float(rate.max()) for rail in range(RAILS)]
        found += [Other(number, rail, _up_to(one)) for rail, one in enumerate(mixed)]
    return found, [
        _job(_Dice(seed, f"single/{number}"), "single", (number,), place)
        for place, number in enumerate(servers[2 * third :], planted)
    ]


def _up_to(steps: Floats) -> Floats:
    """Return the sum of the steps before each."""
    return np.concatenate([[0.0], np.cumsum(steps)])


def _drift(dice: _Dice, label: str) -> Floats:
    """Return a rate that wanders around 1 within minutes, smoothly: nothing in it is faster than a minute."""
    slow = [0.0]
    for step in dice.many(label, HOUR // MINUTE + 3, -0.75, 0.75).tolist():
        slow.append(0.85 * slow[-1] + step)
    wave = np.interp(np.arange(HOUR + MINUTE - 1) / MINUTE, np.arange(len(slow)), slow)
    rate: Floats = np.maximum(1 + np.convolve(wave, np.full(MINUTE, 1 / MINUTE), "valid"), 0.05)
    return rate


def _bursts(dice: _Dice, label: str) -> Floats:
    """Return a rate of bursts of all lengths and heights, at random times."""
    lengths = 2 / np.maximum(dice.many(f"lengths/{label}", HOUR, 0, 1), 0.02)
    heights = dice.many(f"heights/{label}", HOUR, -0.6, 1)
    edges = np.cumsum(lengths)
    return np.maximum(heights, 0.0)[np.searchsorted(edges, np.arange(HOUR), side="right")]


class Port(NamedTuple):
    """Access port of one NIC, with its owner as the workbook tells it."""

    owner: str
    server: int
    rail: int
    switch: str


class Hour(NamedTuple):
    """Simulated hour: rows of the ports of servers with traffic, by port and time."""

    plan: TrafficPlan
    ports: list[Port]
    port: Ints
    """Index into `ports`."""
    offset_ms: Ints
    moved: Ints
    """Bytes in and out since the port's row before."""


def simulate(
    seed: int, *, groups: int = 5, servers: int = 24, plan: Callable[[Fabric], TrafficPlan] = plan_traffic
) -> Hour:
    """Return an hour of the counters of `servers` in each group of four leaves, with the jobs of a plan."""
    options = SampleOptions(
        seed=seed, hours=1, leaves=RAILS * groups, servers_per_group=servers, spines=5, planted=False
    )
    fabric = build_fabric(options)
    planned = plan(fabric)
    busy = {one.server for one in planned.others}.union(*(job.servers for job in planned.jobs))
    nics = [(server, rail) for server in sorted(busy) for rail in range(RAILS)]
    cables = [fabric.nics[server][rail] for server, rail in nics]
    refreshes = np.array([refresh_ms(one.switch, seed) for one in cables])
    moments = np.arange(HOUR) + refreshes[:, np.newaxis] / 1000
    # a counter is whole bytes; the zero before its first refresh is the state at the start of the hour
    counted = np.floor(moved(planned, nics, moments)).astype(np.int64)
    counted = np.concatenate([np.zeros((len(nics), 1), np.int64), counted], axis=1)
    times = {
        switch.name: poll_times(switch, 0, options) for switch in fabric.switches.values() if switch.group is not None
    }
    rows, asked = [], [times[cable.switch] for cable in cables]
    for cable, polls, refresh, counter in zip(cables, asked, refreshes.tolist(), counted, strict=True):
        read = polls + draw_one(seed, f"read/{cable.switch}/{cable.port}", 0, SLOWEST_READ)
        # a poll shows the last refresh before its port is read, which is some time after the time of the poll
        rows.append(np.diff(counter[np.minimum((read - refresh) // 1000 + 1, HOUR)], prepend=0))
    ports = [Port(planned.owners[nic[0]], *nic, cable.switch) for nic, cable in zip(nics, cables, strict=True)]
    at = np.repeat(np.arange(len(ports)), [len(one) for one in rows])
    return Hour(planned, ports, at, np.concatenate(asked), np.concatenate(rows))


def moved(plan: TrafficPlan, nics: list[Nic], moments: Floats) -> Floats:
    """Return the bytes, in and out, of each NIC from the start of the hour to its moments, which are a second apart."""
    place = {nic: number for number, nic in enumerate(nics)}
    noise, memory = np.zeros(len(nics)), np.full(len(nics), 0.7)
    for other in plan.others:
        noise[place[other.server, other.rail]] = other.noise
    for job in plan.jobs:
        for server in job.servers:
            for rail in job.rails:
                noise[place[server, rail]], memory[place[server, rail]] = job.noise, job.memory
    # noise moves bytes in time: it makes none, so the sums of the truth hold
    late = moments - _delays(plan.seed, nics, noise, memory)[:, : moments.shape[1]]
    found: Floats = CHATTER * moments
    for other in plan.others:
        at = place[other.server, other.rail]
        found[at] += np.interp(late[at], np.arange(HOUR + 1), other.up_to)
    for job in plan.jobs:
        for number, rail in enumerate(job.rails):
            members = [place[server, rail] for server in job.servers]
            equal = np.array([draw_one(plan.seed, f"equal/{server}/{rail}", -1000, 1000) for server in job.servers])
            found[members] += _of_job(job, number, late[members]) * (1 + EQUAL / 1000 * equal[:, np.newaxis])
    return found


def _of_job(job: TrafficJob, rail: int, moments: Floats) -> Floats:
    """Return the bytes of each member (a row) on one rail from the start of the hour to these moments."""
    lag = job.lag + np.array([[job.lags.get(server, 0.0)] for server in job.servers])
    begin = np.array([[job.begins.get(server, 0.0)] for server in job.servers])
    first = np.minimum(begin - lag, job.end)
    clock = np.clip(moments - lag, first, job.end)
    per_second = 1 / np.diff(job.starts).mean()

    def up_to(second: Floats) -> Floats:
        """Return the number of iterations, counted by their bytes."""
        whole = np.interp(second, job.starts, np.arange(len(job.starts))) - job.phases[rail]
        part = np.floor(whole)
        pulses = part + np.interp(whole - part, *job.pattern)
        counted: Floats = (1 - job.steady) * pulses + job.steady * per_second * second
        return counted

    return job.bytes_per_iteration[rail] * (up_to(clock) - up_to(first))


def _delays(seed: int, nics: list[Nic], noise: Floats, memory: Floats) -> Floats:
    """Return the seconds that each NIC is behind in each second: noise that moves bytes in time and makes none."""
    steps = np.stack([draw(seed, f"noise/{server}/{rail}", HOUR + 1, -1000, 1000) for server, rail in nics])
    steps = np.ascontiguousarray((steps * (noise[:, np.newaxis] * 3**0.5 / 1000)).T)
    delays = np.empty(steps.shape)
    now = np.zeros(len(nics))
    for second, step in enumerate(steps):
        now = np.clip(memory * now + step, now - SLOWEST, now + SLOWEST)
        delays[second] = now
    return delays.T


def truth_of(plan: TrafficPlan) -> list[dict[str, Any]]:
    """Return a row for each job and owner of ports: its kind, its rails from 1, and the mean length of iterations.

    The mean is over iterations that began and ended between `SEEN` and the job's end.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for job in plan.jobs:
        seen = job.starts[(job.starts >= SEEN) & (job.starts <= job.end)]
        period = round(float(np.diff(seen).mean()), 6) if len(seen) > 1 else None
        for owner in (plan.owners[server] for server in job.servers):
            row = {"job_id": job.job_id, "kind": job.kind, "server": owner, "period_seconds": period}
            rows.setdefault((job.job_id, owner), row | {"rails": [rail + 1 for rail in job.rails]})
    return list(rows.values())
