/* ---
about: GPUs in use, as the mean of each ten minutes, and their share of the cluster, for every trace with start times. A job uses its GPUs from start to end; a job without an end, until the last end in its cluster. Jobs that were running before the trace begins are not in it, so its first slots are too low.
grain: [trace, cluster, time_seconds]
columns:
  trace: VARCHAR acme, alibaba_v2023 or a trace of your own; ITP has no start times
  cluster: VARCHAR seren, kalos, openb or one of your own
  time_seconds: BIGINT [s] start of the ten minutes, counted from the origin of the trace; since 1970 where it has clock times
  time_utc: TIMESTAMP start of the ten minutes; NULL where the trace has no published origin
  gpu_seconds: DECIMAL(20, 3) [s] GPUs x seconds in use
  mean_gpus: DOUBLE [1] gpu_seconds / 600
  cluster_gpus: BIGINT [1] GPUs of the cluster, from reference.job_clusters, else from metrics.nodes
  cluster_gpu_seconds: BIGINT [s] cluster_gpus x 600
  allocation_share: DOUBLE [1] mean_gpus / cluster_gpus
  largest_jobs: VARCHAR the five largest jobs that run in the ten minutes, with their GPUs; NULL where allocation_share is at most 1
measures:
  gpu_seconds, cluster_gpu_seconds: sum, shown in h
  mean_gpus: mean except over cluster
  allocation_share: gpu_seconds / cluster_gpu_seconds, shown in %
  others: none
checks:
  - gpu_seconds >= 0
  - warn: allocation_share <= 1 or allocation_share is null
    says: "{cluster}, {time_utc} ({time_seconds:,} s): {mean_gpus:,.1f} GPUs are in use, the cluster has {cluster_gpus:,}; the largest jobs are {largest_jobs}"
sources: docs/metrics/capacity.md
--- */
WITH timed AS (
    SELECT
        trace,
        cluster,
        job_id,
        num_gpus,
        coalesce(epoch_us(start_utc) // 1000000, start_seconds) AS begins,
        coalesce(epoch_us(end_utc) // 1000000, end_seconds) AS written_end,
        start_utc IS NOT NULL AS has_clock
    FROM metrics.jobs
    WHERE num_gpus > 0 AND (start_utc IS NOT NULL OR start_seconds IS NOT NULL)
),

closed AS (
    SELECT
        * EXCLUDE (written_end),
        coalesce(written_end, max(written_end) OVER (PARTITION BY trace, cluster)) AS ends
    FROM timed
),

events AS (                    -- GPUs taken and released
    SELECT trace, cluster, has_clock, unnest([begins, ends]) AS at_second, unnest([num_gpus, -num_gpus]) AS gpus
    FROM closed
    WHERE ends > begins        -- not a job of no length, nor one without an end that begins after the last end
),

slots AS (                     -- an event counts for the rest of its ten minutes, and in full for later slots
    SELECT
        trace,
        cluster,
        has_clock,
        at_second // 600 AS slot,
        sum(gpus) AS gpus,
        sum(gpus * (600 - at_second % 600)) AS gpu_seconds
    FROM events
    GROUP BY ALL
),

all_slots AS (                 -- from the first event of a cluster to its last, with the slots in which none falls
    SELECT trace, cluster, has_clock, unnest(range(min(slot), max(slot) + 1)) AS slot
    FROM slots
    GROUP BY trace, cluster, has_clock
),

used AS (
    SELECT
        e.trace,
        e.cluster,
        e.has_clock,
        e.slot,
        coalesce(s.gpu_seconds, 0)
        + 600 * coalesce(sum(s.gpus) OVER (
            PARTITION BY e.trace, e.cluster ORDER BY e.slot ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS gpu_seconds
    FROM all_slots AS e
    LEFT JOIN slots AS s USING (trace, cluster, has_clock, slot)
),

node_gpus AS (
    SELECT trace, cluster, CAST(sum(num_gpus) AS BIGINT) AS gpus
    FROM metrics.nodes
    GROUP BY trace, cluster
),

sized AS (
    SELECT u.*, coalesce(c.gpus, n.gpus) AS cluster_gpus
    FROM used AS u
    LEFT JOIN reference.job_clusters AS c USING (trace, cluster)
    LEFT JOIN node_gpus AS n USING (trace, cluster)
),

causes AS (                    -- jobs of the slots above 100 %
    SELECT
        s.trace,
        s.cluster,
        s.slot,
        array_to_string(
            list_slice(list(concat(j.job_id, ' (', j.num_gpus, ')') ORDER BY j.num_gpus DESC, j.job_id), 1, 5), ', '
        ) AS largest_jobs
    FROM sized AS s
    JOIN closed AS j ON j.trace = s.trace AND j.cluster = s.cluster AND j.begins < s.slot * 600 + 600 AND j.ends > s.slot * 600
    WHERE s.gpu_seconds > s.cluster_gpus * 600
    GROUP BY ALL
)

SELECT
    s.trace,
    s.cluster,
    s.slot * 600 AS time_seconds,
    CASE WHEN s.has_clock THEN make_timestamp(s.slot * 600000000) END AS time_utc,
    s.gpu_seconds,
    s.gpu_seconds / 600 AS mean_gpus,
    s.cluster_gpus,
    s.cluster_gpus * 600 AS cluster_gpu_seconds,
    s.gpu_seconds / 600 / s.cluster_gpus AS allocation_share,
    c.largest_jobs
FROM sized AS s
LEFT JOIN causes AS c USING (trace, cluster, slot)
