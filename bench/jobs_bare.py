"""Bare DuckDB queries that `bench.jobs` compares with: python -m bench.jobs_bare RELEASE DATABASE."""

from __future__ import annotations

import sys

import duckdb

from warehouse.sample.acme_jobs import KALOS_HEADER, SEREN_HEADER

TIMES = ("submit_time", "start_time", "end_time", "fail_time", "stop_time")
TEXTS = ("job_id", "user", "type", "state")
KIND = "CASE WHEN gpu_num > 0 THEN 'gpu' ELSE 'cpu' END AS kind"
RUN = "date_diff('second', start_time, end_time)"
CDF = """
    SELECT cluster, kind, type, up_to, sum(jobs), sum(gpu_time)
    FROM (
        SELECT cluster, {kind}, type, ceil(log2(greatest({seconds}, 1))) AS power, count(*) AS jobs,
            sum({gpu}) AS gpu_time
        FROM jobs GROUP BY ALL),
    unnest([2**k FOR k IN range(22)]) AS p(up_to)
    WHERE 2**power <= up_to GROUP BY ALL
"""
QUERIES = (
    f"""SELECT cluster, {KIND}, count(*), sum(gpu_num * {RUN}), sum(gpu_time), avg({RUN}), median({RUN}), max({RUN}),
            avg(duration), median(duration), max(duration), avg(queue), median(queue), avg(gpu_num), median(gpu_num),
            max(gpu_num)
        FROM jobs GROUP BY ALL""",
    f"""SELECT *, sum(jobs) OVER (PARTITION BY cluster ORDER BY gpu_num)
        FROM (SELECT cluster, gpu_num, count(*) AS jobs, sum(gpu_time), sum(gpu_num * {RUN})
              FROM jobs WHERE gpu_num > 0 GROUP BY ALL)""",
    f"SELECT cluster, {KIND}, type, count(*), sum(gpu_time), sum(gpu_num * {RUN}) FROM jobs GROUP BY ALL",
    f"SELECT cluster, {KIND}, state, count(*), sum(gpu_time), sum(gpu_num * {RUN}) FROM jobs GROUP BY ALL",
    CDF.format(kind=KIND, seconds="duration", gpu="gpu_time"),
    CDF.format(kind=KIND, seconds=RUN, gpu=f"gpu_num * {RUN}"),
    CDF.format(kind=KIND, seconds="queue", gpu="0"),
    "SELECT cluster, type, quantile_cont(gpu_num, [0, 0.25, 0.5, 0.75, 1]) FROM jobs GROUP BY ALL",
    f"SELECT cluster, {KIND}, hour(submit_time), count(*) FROM jobs GROUP BY ALL",
    f"""SELECT cluster, count(*) FILTER (WHERE duration = {RUN}),
            count(*) FILTER (WHERE queue = date_diff('second', submit_time, start_time)),
            count(*) FILTER (WHERE gpu_time = duration * gpu_num)
        FROM jobs GROUP BY ALL""",
    """WITH events AS (
            SELECT cluster, epoch(start_time)::BIGINT AS second, gpu_num AS gpus FROM jobs WHERE gpu_num > 0
            UNION ALL
            SELECT cluster, epoch(end_time)::BIGINT, -gpu_num FROM jobs WHERE gpu_num > 0)
        SELECT cluster, slot, sum(gpus) OVER (PARTITION BY cluster ORDER BY slot), held
        FROM (SELECT cluster, second // 600 AS slot, sum(gpus) AS gpus, sum(gpus * (600 - second % 600)) AS held
              FROM events GROUP BY ALL)""",
)


def scan(release: str, cluster: str, header: str) -> str:
    """Return a SELECT of one CSV with declared columns."""
    kinds = {
        name: "TIMESTAMPTZ" if name in TIMES else "VARCHAR" if name in TEXTS else "DOUBLE" for name in header.split(",")
    }
    path = f"{release}/data/job_trace/trace_{cluster}.csv"
    return (
        f"SELECT '{cluster}' AS cluster, job_id, user, gpu_num, type, state, submit_time, start_time, end_time, "
        f"duration, queue, gpu_time FROM read_csv('{path}', auto_detect=false, header=true, delim=',', columns={kinds})"
    )


def main(release: str, database: str) -> None:
    """Load both CSVs and run the queries."""
    connection = duckdb.connect(database)
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    seren, kalos = scan(release, "seren", SEREN_HEADER), scan(release, "kalos", KALOS_HEADER)
    connection.execute(f"CREATE TABLE jobs AS {seren} UNION ALL {kalos}")
    for query in QUERIES:
        connection.execute(query).fetchall()
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
