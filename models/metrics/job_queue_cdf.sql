/* ---
about: How many of a cluster's jobs waited at most 1, 2, 4 .. 2^21 seconds, by the queue as published; of all jobs and of each type.
grain: [trace, cluster, kind, job_type, up_to_seconds]
columns:
  trace: VARCHAR acme, helios, philly or pai; ITP has no start
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; all for the jobs of every type
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that waited at most so long
  job_share: DOUBLE [1] of all jobs of this kind and type, those without a published queue included
measures:
  jobs: sum except over job_type, up_to_seconds
  job_share: none, shown in %
checks:
  - kind in ('gpu', 'cpu')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
WITH measured AS (
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        {{ power_of_two('queue_seconds') }} AS up_to_seconds,
        count(*) AS jobs
    FROM staging.job_sizes
    WHERE trace <> 'itp'
    GROUP BY trace, cluster, kind, job_type, up_to_seconds
),

typed AS (                     -- each type, and all types together
    SELECT *
    FROM measured
    WHERE trace = 'acme'
    UNION ALL
    SELECT
        trace,
        cluster,
        kind,
        'all' AS job_type,
        up_to_seconds,
        sum(jobs) AS jobs
    FROM measured
    GROUP BY trace, cluster, kind, up_to_seconds
),

points AS (
    SELECT
        t.trace,
        t.cluster,
        t.kind,
        t.job_type,
        p.up_to_seconds,
        sum(t.jobs) AS all_jobs
    FROM typed AS t
    CROSS JOIN unnest({{ powers_of_two() }}) AS p(up_to_seconds)
    GROUP BY t.trace, t.cluster, t.kind, t.job_type, p.up_to_seconds
)

SELECT
    p.trace,
    p.cluster,
    p.kind,
    p.job_type,
    p.up_to_seconds,
    coalesce(sum(m.jobs), 0) AS jobs,
    coalesce(sum(m.jobs), 0) / p.all_jobs AS job_share
FROM points AS p
LEFT JOIN typed AS m
    ON
        m.trace = p.trace AND m.cluster = p.cluster AND m.kind = p.kind
        AND m.job_type = p.job_type AND m.up_to_seconds <= p.up_to_seconds
GROUP BY p.trace, p.cluster, p.kind, p.job_type, p.up_to_seconds, p.all_jobs
