/* ---
about: Number and GPU time of a cluster's jobs that ran or waited at most 1, 2, 4 .. 2^21 seconds, for all jobs and for each type.
grain: [trace, cluster, kind, job_type, basis, up_to_seconds]
columns:
  trace: VARCHAR acme, itp, helios, philly or pai
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; the value all means every type
  basis: VARCHAR published (duration as published), run (end - start) or queue (wait as published)
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that ran or waited at most up_to_seconds
  all_jobs: BIGINT [1] jobs of this kind and type, including those without such a time
  gpu_seconds: "DECIMAL(38, 3) [s] GPU time of these jobs on the same basis; for the basis queue, GPUs x (end - start)"
  all_gpu_seconds: "DECIMAL(38, 3) [s] GPU time of all jobs of this kind and type"
checks:
  - basis in ('published', 'run', 'queue')
  - jobs <= all_jobs
sources: docs/metrics/jobs.md
--- */
WITH spans AS (                -- per job the published duration, the run time and the wait
    SELECT trace, cluster, kind, job_type, 'published' AS basis, duration_seconds AS seconds, published_gpu_seconds AS gpu_seconds
    FROM staging.job_sizes
    UNION ALL
    SELECT trace, cluster, kind, job_type, 'run' AS basis, run_seconds AS seconds, gpu_seconds
    FROM staging.job_sizes
    WHERE trace NOT IN ('helios', 'philly', 'pai')
    UNION ALL
    SELECT trace, cluster, kind, job_type, 'queue' AS basis, queue_seconds AS seconds, gpu_seconds
    FROM staging.job_sizes
    WHERE trace <> 'itp'
),

measured AS (
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        basis,
        {{ power_of_two('seconds') }} AS up_to_seconds,
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds
    FROM spans
    GROUP BY ALL
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
    GROUP BY ALL
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
    GROUP BY ALL
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
    CROSS JOIN unnest({{ powers_of_two() }}) AS p (up_to_seconds)
)

SELECT
    p.trace,
    p.cluster,
    p.kind,
    p.job_type,
    p.basis,
    p.up_to_seconds,
    coalesce(sum(m.jobs), 0) AS jobs,
    p.all_jobs,
    coalesce(sum(m.gpu_seconds), 0) AS gpu_seconds,
    p.all_gpu_seconds
FROM points AS p
LEFT JOIN typed AS m
    ON
        m.trace = p.trace AND m.cluster = p.cluster AND m.kind = p.kind
        AND m.job_type = p.job_type AND m.basis = p.basis AND m.up_to_seconds <= p.up_to_seconds
GROUP BY ALL
