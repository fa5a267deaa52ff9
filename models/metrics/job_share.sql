/* ---
about: Number and GPU time of a cluster's jobs by job type, end state, number of GPUs, and hour of the day, for GPU jobs and for CPU jobs.
grain: [trace, cluster, kind, quantity, name]
columns:
  trace: VARCHAR acme, itp, helios and so on; ITP has neither types nor states
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  quantity: VARCHAR job_type (AcmeTrace only), state, num_gpus (GPU jobs only) or submit_hour (traces with a published origin)
  name: VARCHAR Eval, Pretrain and so on, as published, or COMPLETED, CANCELLED, FAILED and so on; `none` where it is blank; else the number
  value: DOUBLE the number, GPUs of a job, or hour of its submission in UTC (China's is 8 later, the zone of ITP is not stated); NULL for a type or state
  jobs: BIGINT [1] jobs
  gpu_seconds: DOUBLE [s] sum of GPUs x (end - start)
  published_gpu_seconds: DOUBLE [s] sum of the GPU time as published
  job_share: DOUBLE [1] share of the cluster's jobs of this kind
  gpu_time_share: DOUBLE [1] share of the sum of gpu_seconds
  published_gpu_time_share: DOUBLE [1] share of the sum of published_gpu_seconds
  job_share_up_to: DOUBLE [1] share of the jobs, this value and all smaller values; NULL for a type or state, which have no order
  gpu_time_share_up_to: DOUBLE [1] share of the sum of gpu_seconds, this value and all smaller values
  published_gpu_time_share_up_to: DOUBLE [1] share of the sum of published_gpu_seconds, this value and all smaller values
dimensions: [trace, cluster, kind, quantity, name, value]
measures:
  jobs: sum except over quantity
  gpu_seconds, published_gpu_seconds: sum except over quantity, shown in h
  job_share, gpu_time_share, published_gpu_time_share: sum except over trace, cluster, kind, quantity, shown in %
  job_share_up_to, gpu_time_share_up_to, published_gpu_time_share_up_to: none, shown in %
checks:
  - job_share between 0 and 1
  - job_share_up_to between job_share and 1 or value is null
sources: docs/metrics/jobs.md
--- */
WITH named AS (
    SELECT trace, cluster, kind, 'job_type' AS quantity, coalesce(job_type, 'none') AS name, NULL::DOUBLE AS value, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE trace = 'acme'
    UNION ALL
    SELECT trace, cluster, kind, 'state' AS quantity, coalesce(state, 'none') AS name, NULL AS value, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE trace <> 'itp'
    UNION ALL
    SELECT trace, cluster, kind, 'num_gpus' AS quantity, NULL AS name, num_gpus AS value, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE kind = 'gpu'
    UNION ALL
    SELECT trace, cluster, kind, 'submit_hour' AS quantity, NULL AS name, submit_hour AS value, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE submit_hour IS NOT NULL
),

summed AS (
    SELECT
        * EXCLUDE (gpu_seconds, published_gpu_seconds),
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds,
        coalesce(sum(published_gpu_seconds), 0) AS published_gpu_seconds
    FROM named
    GROUP BY ALL
),

up_to AS (
    SELECT
        *,
        CASE WHEN value IS NOT NULL THEN sum(jobs) OVER values_up_to END AS jobs_up_to,
        CASE WHEN value IS NOT NULL THEN sum(gpu_seconds) OVER values_up_to END AS gpu_seconds_up_to,
        CASE WHEN value IS NOT NULL THEN sum(published_gpu_seconds) OVER values_up_to END AS published_gpu_seconds_up_to,
        sum(jobs) OVER whole AS all_jobs,
        nullif(sum(gpu_seconds) OVER whole, 0)::DOUBLE AS all_gpu_seconds,
        nullif(sum(published_gpu_seconds) OVER whole, 0)::DOUBLE AS all_published_gpu_seconds
    FROM summed
    WINDOW
        whole AS (PARTITION BY trace, cluster, kind, quantity),
        values_up_to AS (PARTITION BY trace, cluster, kind, quantity ORDER BY value ROWS UNBOUNDED PRECEDING)
)

SELECT
    trace,
    cluster,
    kind,
    quantity,
    coalesce(name, regexp_replace(value::VARCHAR, '[.]0$', '')) AS name,
    value,
    jobs,
    gpu_seconds::DOUBLE AS gpu_seconds,
    published_gpu_seconds::DOUBLE AS published_gpu_seconds,
    jobs / all_jobs AS job_share,
    gpu_seconds::DOUBLE / all_gpu_seconds AS gpu_time_share,
    published_gpu_seconds::DOUBLE / all_published_gpu_seconds AS published_gpu_time_share,
    jobs_up_to / all_jobs AS job_share_up_to,
    gpu_seconds_up_to::DOUBLE / all_gpu_seconds AS gpu_time_share_up_to,
    published_gpu_seconds_up_to::DOUBLE / all_published_gpu_seconds AS published_gpu_time_share_up_to
FROM up_to
