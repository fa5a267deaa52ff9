/* ---
about: 'Share of a cluster''s GPU jobs and GPU time by job size: jobs of exactly num_gpus GPUs, and of at most num_gpus.'
grain: [trace, cluster, num_gpus]
columns:
  trace: VARCHAR acme, itp, helios, philly or pai
  cluster: VARCHAR the cluster
  num_gpus: DOUBLE [1] GPUs of a job
  jobs: BIGINT [1] jobs of this size
  gpu_seconds: DOUBLE [s] sum of GPUs x (end - start)
  published_gpu_seconds: DOUBLE [s] sum of the GPU time as published
  job_share: DOUBLE [1] share of the cluster's GPU jobs
  gpu_time_share: DOUBLE [1] share of the sum of gpu_seconds
  published_gpu_time_share: DOUBLE [1] share of the sum of published_gpu_seconds
  job_share_up_to: DOUBLE [1] share of the cluster's GPU jobs, this size and all smaller sizes
  gpu_time_share_up_to: DOUBLE [1] share of the sum of gpu_seconds, this size and all smaller sizes
  published_gpu_time_share_up_to: DOUBLE [1] share of the sum of published_gpu_seconds, this size and all smaller sizes
measures:
  jobs: sum
  gpu_seconds, published_gpu_seconds: sum, shown in h
  job_share, gpu_time_share, published_gpu_time_share: sum except over trace, cluster, shown in %
  job_share_up_to, gpu_time_share_up_to, published_gpu_time_share_up_to: none, shown in %
checks:
  - num_gpus > 0
  - job_share_up_to between job_share and 1
sources: docs/metrics/jobs.md
--- */
WITH sizes AS (
    SELECT
        trace,
        cluster,
        num_gpus,
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds,
        coalesce(sum(published_gpu_seconds), 0) AS published_gpu_seconds
    FROM staging.job_sizes
    WHERE kind = 'gpu'
    GROUP BY ALL
),

summed AS (
    SELECT
        *,
        sum(jobs) OVER whole AS all_jobs,
        nullif(sum(gpu_seconds) OVER whole, 0)::DOUBLE AS all_gpu_seconds,
        nullif(sum(published_gpu_seconds) OVER whole, 0)::DOUBLE AS all_published_gpu_seconds,
        sum(jobs) OVER up_to AS jobs_up_to,
        (sum(gpu_seconds) OVER up_to)::DOUBLE AS gpu_seconds_up_to,
        (sum(published_gpu_seconds) OVER up_to)::DOUBLE AS published_gpu_seconds_up_to
    FROM sizes
    WINDOW
        whole AS (PARTITION BY trace, cluster),
        up_to AS (PARTITION BY trace, cluster ORDER BY num_gpus ROWS UNBOUNDED PRECEDING)
)

SELECT
    trace,
    cluster,
    num_gpus,
    jobs,
    gpu_seconds::DOUBLE AS gpu_seconds,
    published_gpu_seconds::DOUBLE AS published_gpu_seconds,
    jobs / all_jobs AS job_share,
    gpu_seconds::DOUBLE / all_gpu_seconds AS gpu_time_share,
    published_gpu_seconds::DOUBLE / all_published_gpu_seconds AS published_gpu_time_share,
    jobs_up_to / all_jobs AS job_share_up_to,
    gpu_seconds_up_to / all_gpu_seconds AS gpu_time_share_up_to,
    published_gpu_seconds_up_to / all_published_gpu_seconds AS published_gpu_time_share_up_to
FROM summed
