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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import warehouse
from bench.measure import machine
from bench.planted_jobs import plan_traffic
from tests.models.planted_hours import Ints, dense, phases, planted, with_seconds
from warehouse.base.settings import shipped_root
from warehouse.engine.python_model import function_of
from warehouse.project.model import read_model

HELD = 0.95
"""Share of a job's servers in one group for the job to count as found."""
CLOSE, WRONG = 0.003, 0.02
"""Errors of a period, as parts of it. A larger one than `WRONG` is of a multiple, an alias or nothing."""
NULLS = ("shifted", "surrogate", "unrelated")
SEEN = slice(256, 3598)
"""Seconds of the hour that all switches saw: after the opening gap, before the last poll."""
SHIFTS = 20

Hour = list[pa.Table]
"""Rows of an hour's truth, of `traffic_groups` and of `job_periods`, with a column for the hour."""


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
        hours = list(pool.map(_planted, seeds, chunksize=2))
    print(f"{len(seeds)} planted hours")
    connection = score(hours)
    for select in (BY_KIND, TOTALS, BY_PERIOD):
        connection.sql(select).show(max_width=200)


@cache
def _model(name: str) -> Callable[..., pa.Table]:
    """Return the function of a Python model of metrics."""
    root = shipped_root()
    model = function_of(read_model(root / "models" / "metrics" / f"{name}.py", root))
    found: Callable[..., pa.Table] = sys.modules[model.__module__].model
    return found


def find(rails: pa.Table, phase: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of `traffic_groups` and of `job_periods` of an hour with these rails."""
    first = [rows.start for rows in _servers(rails)]
    servers = rails.select(["cluster", "server", "hour_utc"]).take(pa.array(first, pa.int64()))
    periods = _model("traffic_periods")(servers, rails)
    members = _model("traffic_groups")(periods, rails)
    return members, _model("job_periods")(members, periods, rails, phase)


def count_of(rails: pa.Table, phase: pa.Table) -> int:
    """Return the number of groups of an hour with these rails."""
    return len(find(rails, phase)[1])


# planted hours ------------------------------------------------------------------------------------

SCORES = """
CREATE MACRO pairs(n) AS n * (n - 1) // 2;
CREATE MACRO share(part, whole) AS coalesce(printf('%.1f%%', 100 * part / nullif(whole, 0)), '-');
CREATE TABLE jobs AS  -- jobs of several servers, the group that has most of each, and the period that it has
WITH sized AS (
    SELECT hour, job_id, any_value(kind) AS kind, count(*) AS servers, any_value(period_seconds) AS seconds
    FROM truth GROUP BY ALL HAVING servers > 1
), odd AS (  -- members on other rails than all others
    SELECT hour, job_id, server FROM truth AS t WHERE NOT EXISTS (
        FROM truth AS o WHERE (o.hour, o.job_id) = (t.hour, t.job_id) AND o.server <> t.server
            AND list_has_any(o.rails, t.rails))
), shared AS (
    SELECT t.hour, t.job_id, group_id, count(*) AS best, count(odd.server) AS odd_in_it
    FROM truth AS t JOIN members USING (hour, server) LEFT JOIN odd USING (hour, job_id, server) GROUP BY ALL
), largest AS (
    SELECT *, sum(pairs(best)) OVER (PARTITION BY hour, job_id) AS together
    FROM shared JOIN (SELECT hour, group_id, count(*) AS whole FROM members GROUP BY ALL) USING (hour, group_id)
    QUALIFY row_number() OVER (PARTITION BY hour, job_id ORDER BY best DESC, group_id) = 1
)
SELECT s.*, coalesce(together, 0) AS together, best, whole,
    coalesce(2 * best > greatest(s.servers, whole), false) AS is_held,
    (SELECT count(*) FROM odd WHERE (odd.hour, odd.job_id) = (s.hour, s.job_id)) AS odd,
    if(is_held, odd_in_it, 0) AS odd_found, if(is_held, p.period_seconds, NULL) AS period,
    abs(period / seconds - 1) AS off, off * seconds <= p.period_error_seconds AS is_stated
FROM sized AS s LEFT JOIN largest USING (hour, job_id) LEFT JOIN periods AS p USING (hour, group_id);

CREATE TABLE wrong AS  -- pairs in a group that are not of one job
WITH known AS (
    SELECT m.hour, m.group_id, m.server, job_id, coalesce(kind, 'no job') AS kind
    FROM members AS m LEFT JOIN truth USING (hour, server)
)
SELECT a.hour, a.group_id, unnest(list_distinct(['all', a.kind, b.kind])) AS kind
FROM known AS a JOIN known AS b USING (hour, group_id)
WHERE a.server < b.server AND (a.job_id = b.job_id) IS NOT TRUE;
"""
"""Tables from those of the truth, of members of groups, and of periods."""
BY_KIND = f"""
SELECT kind, count(*) AS jobs, share(count(*) FILTER (best >= {HELD} * servers), count(*)) AS "95% in one",
    share(count(*) FILTER (best >= {HELD} * greatest(servers, whole)), count(*)) AS "and pure",
    sum(pairs(servers)) AS pairs, share(sum(together), sum(pairs(servers))) AS recall,
    share(sum(together), sum(together) + (SELECT count(*) FROM wrong WHERE wrong.kind = j.kind)) AS precision
FROM (SELECT * REPLACE (unnest([kind, 'all']) AS kind) FROM jobs) AS j
GROUP BY kind ORDER BY kind = 'all', kind
"""
BY_PERIOD = f"""
SELECT class AS "true period s", count(*) AS jobs, share(count(*) FILTER (is_held), count(*)) AS "group",
    share(count(period), count(*)) AS resolved, share(count(*) FILTER (off <= {CLOSE}), count(period)) AS "within 0.3%",
    share(count(*) FILTER (off > {WRONG}), count(period)) AS "beyond 2%",
    coalesce(printf('%.4f%%', 100 * median(off) FILTER (off <= {WRONG})), '-') AS "median error",
    share(count(*) FILTER (off <= {WRONG} AND is_stated), count(is_stated) FILTER (off <= {WRONG})) AS "in stated 68%"
FROM (
    SELECT *, unnest([kind, 'all', CASE WHEN seconds < 0.8 THEN NULL WHEN seconds < 2.2 THEN '0.8 to 2.2'
        WHEN seconds < 4 THEN '2.2 to 4' WHEN seconds < 16 THEN '4 to 16' WHEN seconds < 120 THEN '16 to 120'
        WHEN seconds < 400 THEN '120 to 400' END]) AS class
    FROM jobs WHERE seconds IS NOT NULL
)
WHERE class IS NOT NULL GROUP BY class
ORDER BY TRY_CAST(split_part(class, ' ', 1) AS DOUBLE) NULLS LAST, class = 'all', class
"""
TOTALS = """
SELECT (SELECT count(DISTINCT (hour, group_id)) FROM members) AS "groups",
    (SELECT count(DISTINCT (hour, group_id)) FROM wrong) AS "with a false pair",
    sum(odd) AS "members on other rails", sum(odd_found) AS "of them found" FROM jobs
"""


def _planted(seed: int) -> Hour:
    rails, truth = planted(seed)
    found = find(rails, phases(seed, rails["switch"].to_pylist()))
    return [
        table.append_column("hour", pa.array([seed] * len(table))) for table in (pa.Table.from_pylist(truth), *found)
    ]


def score(hours: Sequence[Hour]) -> duckdb.DuckDBPyConnection:
    """Compare hours with their truth, whose jobs of one server are no groups; return the tables of `SCORES`."""
    connection = duckdb.connect()
    for name, tables in zip(("truth", "members", "periods"), zip(*hours, strict=True), strict=True):
        connection.register(name, pa.concat_tables(tables, promote_options="permissive"))
    connection.execute(SCORES)
    return connection


# hours without a job ------------------------------------------------------------------------------


def _null(seed: int) -> tuple[str, int]:
    """Return a kind of hour without a job, and its number of groups."""
    kind = NULLS[seed % len(NULLS)]
    plan = partial(plan_traffic, jobs=False) if kind == "unrelated" else plan_traffic
    rails, _ = planted(seed, plan=plan)
    if kind != "unrelated":
        rails = (shifted if kind == "shifted" else surrogate)(rails, np.random.default_rng(seed))
    return kind, count_of(rails, phases(seed, rails["switch"].to_pylist()))


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
    from scipy import stats  # takes a second to import

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
    found = [count_of(shifted(rails, np.random.default_rng(seed)), phase) for seed in range(SHIFTS)]
    print(f"{rails['cluster'][0]} {rails['hour_utc'][0]}: {count_of(rails, phase)} groups")
    print(f"{sum(found)} groups in {SHIFTS} hours with each server shifted, in {sum(map(bool, found))} of them")


if __name__ == "__main__":
    main()
