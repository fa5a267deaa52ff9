"""Jobs found in the traffic of simulated hours, in hours without jobs, and in a warehouse.

    python -m bench.jobs_traffic                   200 planted hours: pairs and periods, by kind
    python -m bench.jobs_traffic --null 1000       hours without a job: false groups
    python -m bench.jobs_traffic --real DIR        a built warehouse: groups if its servers are shifted in time

Each of the 120 servers of a planted hour has four rails, whose counters are refreshed and polled as in the release.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import combinations
from math import comb
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

import warehouse
from bench.measure import machine
from bench.planted_jobs import plan_traffic
from tests.models.planted_hours import Ints, dense, phases, planted, with_seconds
from warehouse.base.settings import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import read_model

HELD = 0.95
"""Share of a job's servers in one group for the job to count as found."""
BANDS = ((0.8, 2.2), (2.2, 4.0), (4.0, 16.0), (16.0, 120.0), (120.0, 400.0))
"""Periods in seconds."""
CLOSE, WRONG = 0.003, 0.02
"""Errors of a period, as parts of it. A larger one than `WRONG` is of a multiple, an alias or nothing."""
NULLS = ("shifted", "surrogate", "unrelated")
SEEN = slice(256, 3598)
"""Seconds of the hour that all switches saw: after the opening gap, before the last poll."""
SHIFTS = 20

Row = dict[str, Any]
Groups = dict[int, list[str]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=200, help="planted hours")
    parser.add_argument("--first", type=int, default=1, help="seed of the first hour")
    parser.add_argument("--null", type=int, metavar="N", help="N hours without a job, a third of each kind")
    parser.add_argument("--real", type=Path, metavar="DIR", help="a built warehouse")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    print(machine())
    if given.real:
        for rails, phase in _hours_of(given.real):
            _shifted_hours(rails, phase)
        return
    seeds = range(given.first, given.first + (given.null or given.hours))
    # one thread of BLAS in each process: the processes use the cores
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with ProcessPoolExecutor(given.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        if given.null:
            show_nulls(list(pool.map(_null, seeds, chunksize=3)))
            return
        scores = list(pool.map(_planted, seeds, chunksize=2))
    print(f"{len(seeds)} planted hours\n")
    show(scores)


@cache
def _model(name: str) -> Callable[..., pa.Table]:
    """Return the function of a Python model of metrics."""
    root = shipped_root()
    model = function_of(read_model(root / "models" / "metrics" / f"{name}.py", root))
    found: Callable[..., pa.Table] = sys.modules[model.__module__].model
    return found


def find(rails: pa.Table, phase: pa.Table) -> tuple[Groups, dict[int, Row]]:
    """Return the servers by group, and the row of `job_periods` of each group, of an hour with these rails."""
    first = [rows.start for rows in _servers(rails)]
    servers = rails.select(["cluster", "server", "hour_utc"]).take(pa.array(first, pa.int64()))
    periods = _model("traffic_periods")(servers, rails)
    members = _model("traffic_groups")(periods, rails)
    groups: Groups = defaultdict(list)
    for row in members.to_pylist():
        groups[row["group_id"]].append(row["server"])
    jobs = _model("job_periods")(members, periods, rails, phase).to_pylist()
    return groups, {row["group_id"]: row for row in jobs}


# planted hours ------------------------------------------------------------------------------------


class Job(NamedTuple):
    """A planted job of several servers, and what was found of it."""

    kind: str
    servers: int
    together: int
    """Pairs of its servers in one group."""
    best: int
    """Its servers in the group that has most of them, and the size of that group."""
    whole: int
    odd: int
    """Members on other rails than all others, and those of them that are in the job's group."""
    odd_found: int
    true: float | None
    """Period in seconds; then the period of its group, and the error that the group states."""
    period: float | None
    error: float | None

    @property
    def is_held(self) -> bool:
        """Return True if one group has most of the job's servers and few others."""
        return 2 * self.best > max(self.servers, self.whole)


class Score(NamedTuple):
    """An hour: its jobs, its number of groups, of those with a false pair, and false pairs by kind of job."""

    jobs: list[Job]
    groups: int
    bad: int
    false: Counter[str]


def _planted(seed: int) -> Score:
    rails, truth = planted(seed)
    return score(truth, *find(rails, phases(seed, rails["switch"].to_pylist())))


def score(truth: list[Row], groups: Groups, found: dict[int, Row]) -> Score:
    """Compare an hour with its truth, whose jobs of one server are no groups."""
    rows_of: dict[str, list[Row]] = defaultdict(list)
    for row in truth:
        rows_of[row["job_id"]].append(row)
    jobs = []
    for rows in rows_of.values():
        servers = {row["server"] for row in rows}
        if len(servers) == 1:
            continue
        inside = {group: servers.intersection(of) for group, of in groups.items()}
        best = max(inside, key=lambda group: len(inside[group]), default=-1)
        size, whole = len(inside.get(best, ())), len(groups.get(best, ()))
        odd = {
            row["server"]
            for row in rows
            if not any(set(row["rails"]) & set(other["rails"]) for other in rows if other is not row)
        }
        pairs = sum(comb(len(one), 2) for one in inside.values())
        job = Job(rows[0]["kind"], len(servers), pairs, size, whole, len(odd), 0, rows[0]["period_seconds"], None, None)
        if job.is_held:
            said = found.get(best, {})
            job = job._replace(
                odd_found=len(odd.intersection(groups[best])),
                period=said.get("period_seconds"),
                error=said.get("period_error_seconds"),
            )
        jobs.append(job)
    job_of = {row["server"]: row for row in truth}
    false, bad = Counter[str](), 0
    for of in groups.values():
        wrong = [
            pair
            for pair in combinations([job_of.get(server, {}) for server in of], 2)
            if not pair[0] or not pair[1] or pair[0]["job_id"] != pair[1]["job_id"]
        ]
        bad += bool(wrong)
        false["all"] += len(wrong)
        for pair in wrong:
            false.update({one.get("kind", "no job") for one in pair})
    return Score(jobs, len(groups), bad, false)


def show(scores: Sequence[Score]) -> None:
    """Print the tables."""
    jobs = [job for one in scores for job in one.jobs]
    false = sum((one.false for one in scores), Counter[str]())
    kinds = sorted({job.kind for job in jobs})
    print(f"{'kind':<10}{'jobs':>6}{'95% in one':>12}{'and pure':>10}{'pairs':>9}{'recall':>8}{'precision':>11}")
    for kind in [*kinds, "all"]:
        some = [job for job in jobs if kind in (job.kind, "all")]
        held = sum(job.best >= HELD * job.servers for job in some)
        pure = sum(job.best >= HELD * max(job.servers, job.whole) for job in some)
        pairs, joined = sum(comb(job.servers, 2) for job in some), sum(job.together for job in some)
        print(
            f"{kind:<10}{len(some):>6}{_share(held, len(some)):>12}{_share(pure, len(some)):>10}{pairs:>9,}"
            f"{_share(joined, pairs):>8}{_share(joined, joined + false[kind]):>11}"
        )
    print(
        f"\n{sum(one.groups for one in scores):,} groups, {sum(one.bad for one in scores):,} with a false pair; ",
        end="",
    )
    print(f"members on other rails: {sum(job.odd_found for job in jobs)} of {sum(job.odd for job in jobs)} found")
    print(
        f"\n{'true period s':<15}{'jobs':>6}{'group':>8}{'resolved':>10}{'within 0.3%':>13}{'beyond 2%':>11}"
        f"{'median error':>14}{'in stated 68%':>15}"
    )
    timed = [job for job in jobs if job.true is not None]
    rows = [(f"{low:g} to {high:g}", [job for job in timed if low <= (job.true or 0) < high]) for low, high in BANDS]
    rows += [(kind, [job for job in timed if job.kind == kind]) for kind in kinds]
    for name, some in [*rows, ("all", timed)]:
        off = [(job, abs(job.period / job.true - 1)) for job in some if job.period is not None and job.true]
        near = [(job, error) for job, error in off if error <= WRONG]
        stated = [error * job.true <= job.error for job, error in near if job.error is not None and job.true]
        middle = f"{median(error for _, error in near):.4%}" if near else "-"
        print(
            f"{name:<15}{len(some):>6}{_share(sum(job.is_held for job in some), len(some)):>8}"
            f"{_share(len(off), len(some)):>10}{_share(sum(error <= CLOSE for _, error in off), len(off)):>13}"
            f"{_share(len(off) - len(near), len(off)):>11}{middle:>14}{_share(sum(stated), len(stated)):>15}"
        )


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


# hours without a job ------------------------------------------------------------------------------


def _null(seed: int) -> tuple[str, int]:
    """Return a kind of hour without a job, and its number of groups."""
    kind = NULLS[seed % len(NULLS)]
    plan = partial(plan_traffic, jobs=False) if kind == "unrelated" else plan_traffic
    rails, _ = planted(seed, plan=plan)
    if kind != "unrelated":
        rails = (shifted if kind == "shifted" else surrogate)(rails, np.random.default_rng(seed))
    return kind, len(find(rails, phases(seed, rails["switch"].to_pylist()))[0])


def shifted(rails: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return the rails with each server's seconds in a circle, turned by a random time.

    No two times are within the lags at which a member is looked for: such servers of one job would still be together.
    """
    moved, longest = dense(rails)
    servers = _servers(rails)
    apart = (SEEN.stop - SEEN.start) // len(servers)
    for rows, step in zip(servers, (apart * rng.permutation(len(servers))).tolist(), strict=True):
        for series in (moved, longest):
            series[rows, SEEN] = np.roll(series[rows, SEEN], step, axis=1)
    return _as_input(rails, moved, longest)


def surrogate(rails: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return rails with nearly the spectra of these and the same bytes in other seconds.

    The phases of a server's waves are random, equal on its rails. The bytes take the order of the wave that results.
    """
    moved, longest = dense(rails)
    for rows in _servers(rails):
        waves = np.fft.rfft(moved[rows, SEEN], axis=1)
        waves *= np.exp(2j * np.pi * rng.uniform(0, 1, waves.shape[1]))
        ranks = np.fft.irfft(waves, SEEN.stop - SEEN.start, axis=1).argsort(axis=1, kind="stable").argsort(axis=1)
        moved[rows, SEEN] = np.take_along_axis(np.sort(moved[rows, SEEN], axis=1), ranks, axis=1)
    return _as_input(rails, moved, longest)


def _servers(rails: pa.Table) -> list[slice]:
    """Return the rows of each server."""
    names = rails["server"].to_pylist()
    edges = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    return [slice(low, high) for low, high in zip(edges, [*edges[1:], len(names)], strict=True)]


def _as_input(rails: pa.Table, moved: Ints, longest: Ints) -> pa.Table:
    return with_seconds(rails.select(["cluster", "server", "hour_utc", "rail", "switch"]), moved, longest)


def show_nulls(found: Sequence[tuple[str, int]]) -> None:
    """Print groups in null hours, given kind and number of groups of each hour."""
    print(
        f"{'hours without a job':<22}{'hours':>6}{'groups':>8}{'hours with one':>16}{'95% interval of this share':>30}"
    )
    for kind in (*NULLS, "all"):
        counts = [count for name, count in found if kind in (name, "all")]
        hit = sum(count > 0 for count in counts)
        low, high = stats.binomtest(hit, len(counts)).proportion_ci(method="exact") if counts else (0, 1)
        print(f"{kind:<22}{len(counts):>6}{sum(counts):>8}{hit:>16}{f'{low:.2%} to {high:.2%}':>30}")


# a built warehouse --------------------------------------------------------------------------------


def _hours_of(folder: Path) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rails and the phases of switches of each cluster and hour."""
    with warehouse.open(folder) as connection:
        table = connection.sql("FROM metrics.rail_seconds ORDER BY hour_utc, cluster, server, rail").to_arrow_table()
        phase = connection.sql("FROM metrics.sampling_quality ORDER BY ALL").to_arrow_table()
    for row in table.select(["cluster", "hour_utc"]).group_by(["cluster", "hour_utc"]).aggregate([]).to_pylist():
        is_hour = pc.field("hour_utc") == pc.scalar(row["hour_utc"])
        yield table.filter(is_hour & (pc.field("cluster") == row["cluster"])), phase.filter(is_hour)


def _shifted_hours(rails: pa.Table, phase: pa.Table) -> None:
    """Print how many groups are found where each server is shifted by a random time."""
    found = [len(find(shifted(rails, np.random.default_rng(seed)), phase)[0]) for seed in range(SHIFTS)]
    print(f"{rails['cluster'][0]} {rails['hour_utc'][0]}: {len(find(rails, phase)[0])} groups")
    print(f"{sum(found)} groups in {SHIFTS} hours with each server shifted, in {sum(map(bool, found))} of them")


if __name__ == "__main__":
    main()
