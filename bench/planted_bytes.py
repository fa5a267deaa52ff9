"""Bytes of planted traffic jobs: at any moment, in each second, and as the counters of the ports show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.planted_jobs import TrafficPlan, plan_traffic
from warehouse.sample.draws import Ints, draw, draw_one
from warehouse.sample.fabric import build_fabric
from warehouse.sample.jobs import HOUR
from warehouse.sample.names import RAILS
from warehouse.sample.options import SampleOptions
from warehouse.sample.port_files import poll_times, refresh_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.planted_jobs import TrafficJob
    from warehouse.sample.fabric import Fabric

CHATTER = 116
"""Bytes per second, in and out, of an idle NIC of a busy server."""
SLOWEST = 0.95
"""Part of a second that a NIC falls behind or catches up in a second at most: bytes never flow back."""
SLOWEST_READ = 450
"""Milliseconds from a poll's time until its last port is read. On the real leaves ports are read one after another."""
EQUAL = 0.0005
"""Part by which the bytes of members differ at most."""

Floats = NDArray[np.float64]
Nic = tuple[int, int]
"""Number of the server, and rail from 0."""


class Port(NamedTuple):
    """Access port of one NIC, with its owner as the workbook tells it."""

    owner: str
    server: int
    rail: int
    switch: str


class Hour(NamedTuple):
    """Simulated hour: rows of the ports of servers with traffic, by port and time."""

    fabric: Fabric
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
    nics = sorted({(server, rail) for server, _ in busy_nics(planned) for rail in range(RAILS)})
    cables = [fabric.nics[server][rail] for server, rail in nics]
    refreshes = np.array([refresh_ms(one.switch, seed) for one in cables])
    moments = np.arange(HOUR) + refreshes[:, np.newaxis] / 1000
    counted = np.floor(moved(planned, nics, moments)).astype(np.int64)
    counted = np.concatenate([np.zeros((len(nics), 1), np.int64), counted], axis=1)
    times = {switch.name: poll_times(switch, 0, options) for switch in fabric.switches if switch.group is not None}
    rows, asked = [], [times[cable.switch] for cable in cables]
    for cable, polls, refresh, counter in zip(cables, asked, refreshes.tolist(), counted, strict=True):
        read = polls + draw_one(seed, f"read/{cable.switch}/{cable.port}", 0, SLOWEST_READ)
        rows.append(np.diff(counter[np.minimum((read - refresh) // 1000 + 1, HOUR)], prepend=0))
    ports = [Port(planned.owners[nic[0]], *nic, cable.switch) for nic, cable in zip(nics, cables, strict=True)]
    at = np.repeat(np.arange(len(ports)), [len(one) for one in rows])
    return Hour(fabric, planned, ports, at, np.concatenate(asked), np.concatenate(rows))


def busy_nics(plan: TrafficPlan) -> set[Nic]:
    """Return the NICs that carry the traffic of a job or other traffic."""
    found = {(one.server, one.rail) for one in plan.others}
    return found | {(server, rail) for job in plan.jobs for server in job.servers for rail in job.rails}


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
    lag = job.lag + np.array(job.lags)[:, np.newaxis]
    begin = np.maximum(np.array(job.begins)[:, np.newaxis], job.begin)
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
    behind: Floats = delays.T
    return behind
