"""Simulated hours in which the jobs of the published hour that are hardest to tell are planted, on 20 leaves.

A job of 24 servers on all leaves has 3.614 s, or the 1.3825 s of which that is the alias; its rails pulse apart. Two
jobs on rails 1 and 2, of 11.4 s and 2.737 s, have a member on rails 3 and 4. Beside each of these two is a near miss: a
server on the same rails with the same bytes, whose iterations are those of the job in another order. All other servers,
about 190, carry traffic of their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.jobs_models import find
from bench.planted_bytes import simulate
from bench.planted_jobs import TrafficJob, TrafficPlan, plan_traffic
from bench.planted_truth import traffic_rows
from tests.models.planted_hours import phases, rails
from warehouse.sample.jobs import HOUR

if TYPE_CHECKING:
    from warehouse.sample.fabric import Fabric

SLOW, FAST = 3.6144, 1.3825
"""Two periods that look alike once a second: 1 / SLOW + 1 / FAST = 1."""
APART = 0.45
"""Part of an iteration over which the phases of the rails of the large job lie: switches then agree in about half."""
STALLS, STALL = 10, 6.0
"""Iterations of an hour that take longer, and by how many seconds in the mean. The real jobs of such periods have a few
stalls an hour, too."""
NOISE = 0.1
SERVERS = 50
"""Servers in a group of four leaves."""


class Result(NamedTuple):
    """What an hour shows of its planted jobs."""

    period: str
    """Published for the job of 24: `alone`, `both` with the true one first, `wrong alone`, `wrong first`, or `none`."""
    coherence: float | None
    """Of the job of 24 at its true period."""
    alias_coherence: float | None
    joined: int
    """Members on other rails that are in the group of their job, of two."""
    near: int
    """Near misses in a group, of two."""
    false: int
    """Groups with servers of two jobs, or of none."""


def plan_published(fabric: Fabric, period: float) -> TrafficPlan:
    """Return the plan of an hour; `period` is that of the job of 24 servers."""
    plan = plan_traffic(fabric, jobs=False)
    random = np.random.default_rng(fabric.options.seed)
    single = [server for server, owner in plan.owners.items() if "/" not in owner]
    drawn = iter(random.permutation(single).tolist())

    def job(name: str, count: int, seconds: float, on: tuple[int, ...], apart: float, rate: float) -> TrafficJob:
        steps = int(HOUR / seconds * 1.3) + 8
        lengths = seconds * (1 + np.clip(random.normal(0, random.uniform(0.003, 0.02), steps), -0.5, 0.5))
        lengths += np.where(random.uniform(0, 1, steps) < STALLS * seconds / HOUR, random.exponential(STALL, steps), 0)
        duty = float(random.uniform(0.2, 0.5))
        return TrafficJob(
            job_id=name,
            kind="plain",
            servers=tuple(next(drawn) for _ in range(count)),
            rails=on,
            starts=np.concatenate([[0.0], np.cumsum(lengths)]) - 3 * seconds,
            pattern=((0.0, duty, 1.0), (0.0, 1.0, 1.0)),
            duty=duty,
            phases=tuple(random.uniform(0, apart, len(on)).tolist()),
            bytes_per_iteration=(round(seconds * rate),) * len(on),
            noise=NOISE,
            lags=(0.0,) * count,
            begins=(0.0,) * count,
        )

    jobs = [job("large", 24, period, (0, 1, 2, 3), APART, 2e9)]
    for name, count, seconds, rate in (("steady", 13, 11.4, 7e9), ("fast", 4, 2.737, 2e8)):
        host = job(name, count, seconds, (0, 1), 0.2, rate)
        member = replace(host, servers=(next(drawn),), rails=(2, 3), lags=(0.0,), begins=(0.0,))
        lengths = random.permutation(np.diff(host.starts))
        other = replace(
            member,
            job_id=f"{name}, near",
            servers=(next(drawn),),
            starts=np.cumsum(lengths) - seconds * random.uniform(2, 4),
        )
        jobs += [host, member, other]
    taken = {server for one in jobs for server in one.servers}
    rest = [one for one in plan.jobs if not taken.intersection(one.servers)]
    return TrafficPlan(
        plan.seed, (*jobs, *rest), tuple(one for one in plan.others if one.server not in taken), plan.owners
    )


def result(seed: int, period: float) -> Result:
    """Simulate the hour of a seed and compare what is found with what was planted."""
    hour = simulate(seed, servers=SERVERS, plan=partial(plan_published, period=period))
    series = rails(hour)
    found = find(series, phases(seed, series["switch"].to_pylist()))
    truth: dict[str, list[dict[str, Any]]] = {}
    for row in traffic_rows(hour.fabric, hour.plan):
        truth.setdefault(row["job_id"], []).append(row)
    job_of = {row["server"]: name for name, rows in truth.items() for row in rows}
    group_of = {server: group for group, servers in found.groups.items() for server in servers}
    joined = near = 0
    for name in ("steady", "fast"):
        *_, last = (row["server"] for row in truth[name])
        [host] = {group_of.get(row["server"]) for row in truth[name][:-1]} or {None}
        joined += host is not None and group_of.get(last) == host
        near += truth[f"{name}, near"][0]["server"] in group_of
    false = sum(len({job_of.get(server, server) for server in servers}) > 1 for servers in found.groups.values())
    large = found.jobs.get(group_of.get(truth["large"][0]["server"], -1), {})
    return Result(_told(large, period), *_coherences(large, period), joined, near, false)


def _told(job: dict[str, Any], period: float) -> str:
    if job.get("period_seconds") is None:
        return "none"
    is_true = abs(job["period_seconds"] / period - 1) < 0.01
    return {(True, True): "alone", (True, False): "both", (False, True): "wrong alone", (False, False): "wrong first"}[
        is_true, job["alias_seconds"] is None
    ]


def _coherences(job: dict[str, Any], period: float) -> tuple[float | None, float | None]:
    found, other = job.get("coherence"), job.get("alias_coherence")
    return (found, other) if _told(job, period) in ("alone", "both") else (other, found)


def show(found: dict[float, list[Result]]) -> None:
    """Print a line for each of the two periods of the large job."""
    print(
        f"{'true period s':<15}{'hours':>6}{'alone':>7}{'both':>6}{'wrong':>7}{'none':>6}{'coherence':>11}"
        f"{'of alias':>10}{'joined':>10}{'near misses':>13}{'false groups':>14}"
    )
    for period, results in found.items():
        told = [one.period for one in results]
        middle = [
            float(np.median([value for value in values if value is not None] or [np.nan]))
            for values in zip(*((one.coherence, one.alias_coherence) for one in results), strict=True)
        ]
        print(
            f"{period:<15}{len(results):>6}{told.count('alone'):>7}{told.count('both'):>6}"
            f"{sum(one.startswith('wrong') for one in told):>7}{told.count('none'):>6}{middle[0]:>11.2f}"
            f"{middle[1]:>10.2f}{f'{sum(one.joined for one in results)} of {2 * len(results)}':>10}"
            f"{f'{sum(one.near for one in results)} of {2 * len(results)}':>13}{sum(one.false for one in results):>14}"
        )
