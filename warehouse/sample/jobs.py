"""Training jobs: rings of servers whose NICs pulse together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from warehouse.sample.draws import Ints, draw, draw_one
from warehouse.sample.names import RAILS, home_group
from warehouse.sample.roster import OTHER_RAILS, PAUSING

if TYPE_CHECKING:
    from warehouse.sample.options import SampleOptions
    from warehouse.sample.roster import Place

HOUR = 3600
GIGABIT = 125_000_000
"""1 Gb/s in bytes per second."""

QUIET = 4
"""Divisor of a job's activity in the last two seconds of an hour.

The bytes left for the first row of the next hour then fit the time before that row.
"""

VARY = 200
"""Thousandths by which a pulse is higher or lower than usual, on all servers of the job alike."""

PAUSES = ((500, 515), (620, 626))
"""Seconds of an hour in which a planted job pauses, and in which it is late by less than its period."""

ODD_JOB_SERVERS = 4
"""Maximum number of job servers that only the NIC sheet lists."""


@dataclass(frozen=True)
class Job:
    """Ring of servers. Seconds count from the start of the first hour."""

    name: str
    servers: tuple[int, ...]
    rails: int
    period_ms: int
    on_ms: int
    phase_ms: int
    plateau: int
    """Bytes per second that each NIC sends during a pulse."""
    start: int
    end: int
    pauses: tuple[tuple[int, int], ...] = ()
    """First second, and the second after the last, of each pause."""
    is_local: bool = False
    """True if each rail sends to one rail of the next server, so that only bytes of `other_rails` leave a leaf."""
    other_rails: tuple[int, ...] = ()
    """Servers that use the rails after those of the others. Of those, the first two move little on one of these."""

    def rail(self, server: int, rail: int) -> int:
        """Return the place, among the NICs of a server, of one of the job's rails."""
        return rail + self.rails if server in self.other_rails else rail

    def activity(self, options: SampleOptions) -> Ints:
        """Return the milliseconds of each second during which the job communicates, times the height of the pulse."""
        edges = np.arange(options.hours * HOUR + 1, dtype=np.int64) * 1000 - self.phase_ms
        whole, rest = np.divmod(edges, self.period_ms)
        first = int(whole[0])
        heights = 1000 + draw(options.seed, f"height/{self.name}", int(whole[-1]) - first + 1, -VARY, VARY)
        before = np.concatenate([[0], np.cumsum(self.on_ms * heights)])
        active: Ints = np.diff(before[whole - first] + np.minimum(rest, self.on_ms) * heights[whole - first]) // 1000
        active[: self.start] = 0
        active[self.end :] = 0
        for begin, end in self.pauses:
            active[begin:end] = 0
        active[~recorded(options)] = 0
        active[closing(options)] //= QUIET
        return active


def recorded(options: SampleOptions) -> np.typing.NDArray[np.bool_]:
    """Return a mask of the recorded seconds of the timeline."""
    return np.arange(options.hours * HOUR) % HOUR < options.seconds


def closing(options: SampleOptions) -> np.typing.NDArray[np.bool_]:
    """Return a mask of the last two recorded seconds of each hour."""
    second = np.arange(options.hours * HOUR) % HOUR
    return (second >= options.seconds - 2) & (second < options.seconds)


def plan_jobs(places: tuple[Place, ...], options: SampleOptions) -> list[Job]:
    """Return the jobs: five across the groups, the rest within one group each. About a third of the servers is idle.

    A planted sample has one more, which pauses, and one of whose servers is on other rails.
    """
    listed = [p for p in places if p.in_topology and not p.is_visitor and not p.role]
    hidden = [p for p in places if not p.in_topology and p.group is not None][:ODD_JOB_SERVERS]
    whole = options.hours * HOUR
    first_end = options.seconds * 7 // 10
    pairs, thirds, fourths = ([p for p in listed if p.slot in slots] for slots in ((1, 2), (3,), (4,)))
    jobs = [
        _job(options, "job-1", pairs, RAILS, 8_000, 3_600, 76, 0, whole),
        _job(options, "job-2", fourths, 2, 13_500, 5_400, 64, 0, whole),
        _job(options, "job-3", hidden, RAILS, 6_400, 2_600, 104, 0, whole),
        _job(options, "job-4", thirds, RAILS, 11_000, 5_000, 82, 0, first_end),
    ]
    if options.hours > 1:
        start = HOUR + options.seconds // 10
        jobs.append(_job(options, "job-5", thirds, RAILS, 9_250, 3_700, 94, start, whole))
    jobs += _local_jobs([p for p in listed if p.slot > 4], options)
    pausing = [p for p in places if p.role in (PAUSING, OTHER_RAILS)]
    if pausing:
        job = _job(options, "job-6", pausing, 2, 10_000, 4_000, 90, 0, whole)
        pauses = tuple((hour * HOUR + a, hour * HOUR + b) for hour in range(options.hours) for a, b in PAUSES)
        other = tuple(p.number for p in pausing if p.role == OTHER_RAILS)
        jobs.append(replace(job, pauses=pauses, is_local=True, other_rails=other))
    return jobs


def _local_jobs(servers: list[Place], options: SampleOptions) -> list[Job]:
    """Return jobs of four neighbors each; every third four servers stay idle, every fifth four use only two rails."""
    chunks: dict[tuple[int, int], list[Place]] = {}
    for place in servers:
        chunks.setdefault((home_group(place.number), (place.slot - 5) // 4), []).append(place)
    jobs = []
    for (group, chunk), members in sorted(chunks.items()):
        if chunk % 3 == 2 or len(members) < 2:
            continue
        name = f"job-{group + 1}-{chunk + 1}"
        period = 250 * draw_one(options.seed, f"period/{name}", 20, 64)
        on = period * draw_one(options.seed, f"duty/{name}", 30, 50) // 100
        rate = draw_one(options.seed, f"rate/{name}", 60, 108)
        rails = 2 if chunk % 5 == 3 else RAILS
        jobs.append(_job(options, name, members, rails, period, on, rate, 0, options.hours * HOUR))
    return jobs


def _job(
    options: SampleOptions,
    name: str,
    members: list[Place],
    rails: int,
    period_ms: int,
    on_ms: int,
    gigabits: int,
    start: int,
    end: int,
) -> Job:
    ordered = sorted(members, key=lambda place: (home_group(place.number), place.slot))
    phase = draw_one(options.seed, f"phase/{name}", 0, period_ms - 1)
    servers = tuple(place.number for place in ordered)
    return Job(name, servers, rails, period_ms, on_ms, phase, gigabits * GIGABIT, start, end)
