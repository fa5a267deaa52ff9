"""Jobs found in the traffic of simulated hours, in hours without jobs, and in a warehouse.

    python -m bench.jobs_traffic                   200 planted hours: pairs, periods, clocks, by kind
    python -m bench.jobs_traffic --null 1000       hours without a job: false groups
    python -m bench.jobs_traffic --real DIR        a built warehouse: groups if its servers are shifted in time
    python -m bench.jobs_traffic --moved DIR       likewise: each of its servers in turn on rails that no other uses

Each of the 120 servers of a planted hour has four rails, whose counters are refreshed and polled as in the release.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from bench import jobs_nulls, jobs_scores
from bench.jobs_models import find
from bench.measure import machine
from tests.models.planted_hours import phases, planted
from warehouse.signals.rails import Rails, clusters
from warehouse.signals.together import together

RAILS = "SELECT * FROM metrics.rail_seconds ORDER BY hour_utc, cluster, server, rail"
SHIFTS = 20


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=200, help="planted hours")
    parser.add_argument("--first", type=int, default=1, help="seed of the first hour")
    parser.add_argument("--null", type=int, metavar="N", help="N hours without a job, a third of each kind")
    parser.add_argument("--moved", type=Path, metavar="DIR", help="a built warehouse, each server moved to other rails")
    parser.add_argument("--real", type=Path, metavar="DIR", help="a built warehouse")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    print(machine())
    if given.real:
        _real(given.real)
        return
    if given.moved:
        _moved(given.moved)
        return
    seeds = range(given.first, given.first + (given.null or given.hours))
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with ProcessPoolExecutor(given.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        if given.null:
            jobs_nulls.show(list(pool.map(_null, seeds, chunksize=3)))
            return
        total = jobs_scores.Score()
        for one in pool.map(_planted, seeds, chunksize=2):
            total.add(one)
    cost = ", ".join(f"{name} {cpu / len(seeds):.2f} s" for name, cpu in sorted(total.cpu.items()))
    print(f"{len(seeds)} planted hours; CPU an hour: {cost}\n")
    jobs_scores.show(total)


def _planted(seed: int) -> jobs_scores.Score:
    rails, truth = planted(seed)
    return jobs_scores.score(truth, find(rails, phases(seed, rails["switch"].to_pylist())))


def _null(seed: int) -> tuple[str, int]:
    kind = jobs_nulls.KINDS[seed % len(jobs_nulls.KINDS)]
    rails = jobs_nulls.null_hour(kind, seed)
    return kind, len(find(rails, phases(seed, rails["switch"].to_pylist())).groups)


def _real(folder: Path) -> None:
    """Print how many groups are found where each server is shifted by a random time."""
    import warehouse

    with warehouse.open(folder) as connection:
        table = connection.sql(RAILS).to_arrow_table()
        phase = connection.sql("FROM metrics.sampling_quality ORDER BY ALL").to_arrow_table()
    for row in table.select(["cluster", "hour_utc"]).group_by(["cluster", "hour_utc"]).aggregate([]).to_pylist():
        is_hour = pc.field("hour_utc") == pc.scalar(row["hour_utc"])
        rails = table.filter(is_hour & (pc.field("cluster") == row["cluster"]))
        found, shifted = find(rails, phase.filter(is_hour)), partial(jobs_nulls.shifted, rails)
        counts = [
            len(find(shifted(np.random.default_rng(seed)), phase.filter(is_hour)).groups) for seed in range(SHIFTS)
        ]
        print(f"{row['cluster']} {row['hour_utc']}: {len(found.groups)} groups; CPU {sum(found.cpu.values()):.2f} s")
        print(f"{sum(counts)} groups in {SHIFTS} hours with each server shifted, in {sum(map(bool, counts))} of them")


def _moved(folder: Path) -> None:
    """Print how many members are still in the group of their job, and how many other servers are in a group."""
    import warehouse

    with warehouse.open(folder) as connection:
        table = connection.sql(RAILS).to_arrow_table()
    for hour in table["hour_utc"].unique():
        for rails in clusters(table.filter(pc.field("hour_utc") == hour)):
            group_of = {one: found.group.members for found in together(rails) for one in found.group.members}
            joined, lone, false = Counter[int](), Counter[int](), 0
            for server in range(len(rails.servers)):
                mates = set(group_of.get(server, ())) - {server}
                members = group_of_moved(rails, server)
                joined[len(mates) + 1] += bool(members & mates)
                lone[len(mates) + 1] += not members
                false += bool(members - mates)
            members_of = sorted(size for size in joined if size > 1)
            print(f"{rails.cluster} {hour}: of {len(rails.servers)} servers, each moved to rails that no other uses")
            for size in members_of:
                print(f"  members of groups of {size}: {joined[size]} joined it, {lone[size]} are in no group")
            print(f"  other servers: {lone[1]} are in no group; servers in a group with strangers: {false}")


def group_of_moved(rails: Rails, server: int) -> set[int]:
    """Return the other members of the group of a server whose bytes are moved to rails that no other server uses."""
    moved = np.concatenate([rails.moved, np.zeros_like(rails.moved)], axis=1)
    half = rails.moved.shape[1]
    moved[server, half:], moved[server, :half] = rails.moved[server], 0
    for found in together(replace(rails, moved=moved)):
        if server in found.group.members:
            return set(found.group.members) - {server}
    return set()


if __name__ == "__main__":
    main()
