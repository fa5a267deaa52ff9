/* ---
about: How many of a cluster's jobs last at most 1, 2, 4 .. 2^21 seconds, and how much GPU time they take; of all jobs and of each type.
grain: [trace, cluster, kind, job_type, basis, up_to_seconds]
columns:
  trace: VARCHAR acme, itp, helios, philly or pai
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; all for the jobs of every type
  basis: VARCHAR published, by the duration as published, or run, by end - start
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that last at most so long
  job_share: DOUBLE [1] of all jobs of this kind and type, those without a duration included
  gpu_seconds: DOUBLE [s] GPU time of these jobs, by the same basis
  gpu_time_share: DOUBLE [1] of the GPU time of all jobs of this kind and type
measures:
  jobs: sum except over kind, job_type, basis, up_to_seconds
  gpu_seconds: sum except over kind, job_type, basis, up_to_seconds, shown in h
  job_share, gpu_time_share: none, shown in %
checks:
  - kind in ('gpu', 'cpu')
  - basis in ('published', 'run')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
WITH measured AS (
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        'published' AS basis,
        {{ power_of_two('duration_seconds') }} AS up_to_seconds,
        count(*) AS jobs,
        coalesce(sum(published_gpu_seconds), 0) AS gpu_seconds
    FROM staging.job_sizes
    GROUP BY trace, cluster, kind, job_type, up_to_seconds
    UNION ALL
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        'run' AS basis,
        {{ power_of_two('run_seconds') }} AS up_to_seconds,
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds
    FROM staging.job_sizes
    WHERE trace IN ('acme', 'itp')
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
        basis,
        up_to_seconds,
        sum(jobs) AS jobs,
        sum(gpu_seconds) AS gpu_seconds
    FROM measured
    GROUP BY trace, cluster, kind, basis, up_to_seconds
),

totals AS (
    SELECT
        trace,
        cluster,
        kind,
        job_type,
        basis,
        sum(jobs) AS jobs,
        sum(gpu_seconds) AS gpu_seconds
    FROM typed
    GROUP BY trace, cluster, kind, job_type, basis
),

points AS (
    SELECT
        t.trace,
        t.cluster,
        t.kind,
        t.job_type,
        t.basis,
        p.up_to_seconds,
        t.jobs AS all_jobs,
        t.gpu_seconds AS all_gpu_seconds
    FROM totals AS t
    CROSS JOIN unnest({{ powers_of_two() }}) AS p(up_to_seconds)
)

SELECT
    p.trace,
    p.cluster,
    p.kind,
    p.job_type,
    p.basis,
    p.up_to_seconds,
    coalesce(sum(m.jobs), 0) AS jobs,
    coalesce(sum(m.jobs), 0) / p.all_jobs AS job_share,
    coalesce(sum(m.gpu_seconds), 0)::DOUBLE AS gpu_seconds,
    coalesce(sum(m.gpu_seconds), 0)::DOUBLE / nullif(p.all_gpu_seconds, 0)::DOUBLE AS gpu_time_share
FROM points AS p
LEFT JOIN typed AS m
    ON
        m.trace = p.trace AND m.cluster = p.cluster AND m.kind = p.kind
        AND m.job_type = p.job_type AND m.basis = p.basis AND m.up_to_seconds <= p.up_to_seconds
GROUP BY p.trace, p.cluster, p.kind, p.job_type, p.basis, p.up_to_seconds, p.all_jobs, p.all_gpu_seconds
