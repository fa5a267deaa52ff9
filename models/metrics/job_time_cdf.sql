/* ---
about: Number and GPU time of a cluster's jobs that ran or waited at most 1, 2, 4 .. 2^21 seconds, for all jobs and for each type.
grain: [trace, cluster, kind, job_type, quantity, up_to_seconds]
columns:
  trace: VARCHAR acme, itp, helios, philly or pai
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on; the value all means every type
  quantity: VARCHAR duration (as published), run (end - start) or queue (wait as published; not for ITP)
  up_to_seconds: BIGINT [s] a power of two
  jobs: BIGINT [1] jobs that ran or waited at most up_to_seconds
  job_share: DOUBLE [1] share of all jobs of this kind and type, including jobs without such a time
  gpu_seconds: DOUBLE [s] GPU time of these jobs, GPUs x (end - start); of the quantity duration the GPU time as published
  gpu_time_share: DOUBLE [1] share of the GPU time of all jobs of this kind and type
measures:
  jobs: sum except over kind, job_type, quantity, up_to_seconds
  gpu_seconds: sum except over kind, job_type, quantity, up_to_seconds, shown in h
  job_share, gpu_time_share: none, shown in %
checks:
  - quantity in ('duration', 'run', 'queue')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
WITH times AS (
    SELECT trace, cluster, kind, job_type, 'duration' AS quantity, duration_seconds AS seconds, published_gpu_seconds AS gpu_seconds
    FROM staging.job_sizes
    UNION ALL
    SELECT trace, cluster, kind, job_type, 'run' AS quantity, run_seconds AS seconds, gpu_seconds
    FROM staging.job_sizes
    WHERE trace NOT IN ('helios', 'philly', 'pai')
    UNION ALL
    SELECT trace, cluster, kind, job_type, 'queue' AS quantity, queue_seconds AS seconds, gpu_seconds
    FROM staging.job_sizes
    WHERE trace <> 'itp'
),

counted AS (                   -- jobs between two powers of two; until is NULL for longer times and for none
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        quantity,
        {{ power_of_two('seconds') }} AS until,
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds
    FROM times
    GROUP BY ALL
),

typed AS (                     -- each type, and all types together
    SELECT * FROM counted
    WHERE trace = 'acme'
    UNION ALL
    SELECT * REPLACE ('all' AS job_type) FROM counted
),

summed AS (
    SELECT
        t.* EXCLUDE (until, jobs, gpu_seconds),
        p.up_to_seconds,
        coalesce(sum(t.jobs) FILTER (WHERE t.until <= p.up_to_seconds), 0) AS jobs,
        coalesce(sum(t.gpu_seconds) FILTER (WHERE t.until <= p.up_to_seconds), 0) AS gpu_seconds,
        sum(t.jobs) AS all_jobs,
        nullif(sum(t.gpu_seconds), 0) AS all_gpu_seconds
    FROM typed AS t
    CROSS JOIN unnest({{ powers_of_two() }}) AS p (up_to_seconds)
    GROUP BY ALL
)

SELECT
    * EXCLUDE (jobs, gpu_seconds, all_jobs, all_gpu_seconds),
    jobs,
    jobs / all_jobs AS job_share,
    gpu_seconds::DOUBLE AS gpu_seconds,
    gpu_seconds::DOUBLE / all_gpu_seconds::DOUBLE AS gpu_time_share
FROM summed
