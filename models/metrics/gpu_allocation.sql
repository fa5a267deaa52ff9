/* ---
about: GPUs in use, as the mean of each ten minutes, and their share of the cluster. A job uses its GPUs from start to end; a job without an end, until the last end in the trace.
grain: [trace, cluster, time_utc]
columns:
  trace: VARCHAR acme; ITP has no start times
  cluster: VARCHAR seren or kalos
  time_utc: TIMESTAMP start of the ten minutes
  gpu_seconds: DECIMAL(20, 3) [s] GPUs x seconds in use
  mean_gpus: DOUBLE [1] gpu_seconds / 600
  cluster_gpus: BIGINT [1] GPUs of the cluster, from reference.job_clusters
  cluster_gpu_seconds: BIGINT [s] cluster_gpus x 600
  allocation_share: DOUBLE [1] mean_gpus / cluster_gpus
measures:
  gpu_seconds, cluster_gpu_seconds: sum, shown in h
  mean_gpus: mean except over cluster
  allocation_share: gpu_seconds / cluster_gpu_seconds, shown in %
  others: none
checks:
  - gpu_seconds >= 0
  - warn: allocation_share <= 1 or allocation_share is null
    says: "{cluster}, {time_utc}: {mean_gpus:,.1f} GPUs are in use, the cluster has {cluster_gpus:,}"
sources: docs/metrics/jobs.md
--- */
WITH closed AS (
    SELECT
        trace,
        cluster,
        num_gpus,
        epoch_us(start_utc) // 1000000 AS begins,
        epoch_us(coalesce(end_utc, max(end_utc) OVER (PARTITION BY trace, cluster))) // 1000000 AS ends
    FROM metrics.jobs
    WHERE num_gpus > 0 AND start_utc IS NOT NULL
),

events AS (                    -- GPUs taken and released
    SELECT trace, cluster, unnest([begins, ends]) AS second, unnest([num_gpus, -num_gpus]) AS gpus
    FROM closed
    WHERE ends > begins
),

slots AS (                     -- an event counts for the rest of its ten minutes, and in full for later slots
    SELECT
        trace,
        cluster,
        second // 600 AS slot,
        sum(gpus) AS gpus,
        sum(gpus * (600 - second % 600)) AS gpu_seconds
    FROM events
    GROUP BY ALL
),

every AS (
    SELECT trace, cluster, unnest(range(min(slot), max(slot) + 1)) AS slot
    FROM slots
    GROUP BY trace, cluster
),

used AS (
    SELECT
        e.trace,
        e.cluster,
        e.slot,
        coalesce(s.gpu_seconds, 0)
        + 600 * coalesce(sum(s.gpus) OVER (
            PARTITION BY e.trace, e.cluster ORDER BY e.slot ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS gpu_seconds
    FROM every AS e
    LEFT JOIN slots AS s USING (trace, cluster, slot)
)

SELECT
    u.trace,
    u.cluster,
    make_timestamp(u.slot * 600000000) AS time_utc,
    u.gpu_seconds,
    u.gpu_seconds / 600 AS mean_gpus,
    c.gpus AS cluster_gpus,
    c.gpus * 600 AS cluster_gpu_seconds,
    u.gpu_seconds / 600 / c.gpus AS allocation_share
FROM used AS u
LEFT JOIN reference.job_clusters AS c USING (trace, cluster)
