/* ---
about: Number of jobs submitted in each hour of the day, over all days of the trace. Traces without a published origin have none.
grain: [trace, cluster, kind, hour_of_day]
columns:
  trace: VARCHAR acme or itp
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  hour_of_day: BIGINT [h] 0 to 23, UTC; China's hour is 8 later, the zone of ITP is not stated
  jobs: BIGINT [1] jobs submitted in this hour of any day
  job_share: DOUBLE [1] share of the cluster's jobs of this kind
  days: BIGINT [1] days from the first submission of the cluster to the last, both included
  jobs_per_day: DOUBLE [1] jobs / days
measures:
  jobs: sum
  job_share: sum except over trace, cluster, kind, shown in %
  others: none
checks:
  - hour_of_day between 0 and 23
sources: docs/metrics/jobs.md
--- */
WITH submitted AS (
    SELECT
        trace,
        cluster,
        CASE WHEN num_gpus > 0 THEN 'gpu' ELSE 'cpu' END AS kind,
        epoch_us(submit_utc) // 3600000000 AS hour
    FROM metrics.jobs
    WHERE submit_utc IS NOT NULL
),

days AS (
    SELECT
        trace,
        cluster,
        max(hour) // 24 - min(hour) // 24 + 1 AS days
    FROM submitted
    GROUP BY ALL
),

hours AS (
    SELECT
        trace,
        cluster,
        kind,
        hour % 24 AS hour_of_day,
        count(*) AS jobs
    FROM submitted
    GROUP BY ALL
)

SELECT
    h.trace,
    h.cluster,
    h.kind,
    h.hour_of_day,
    h.jobs,
    h.jobs / (sum(h.jobs) OVER (PARTITION BY h.trace, h.cluster, h.kind)) AS job_share,
    d.days,
    h.jobs / d.days AS jobs_per_day
FROM hours AS h
JOIN days AS d USING (trace, cluster)
