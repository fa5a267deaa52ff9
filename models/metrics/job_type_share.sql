/* ---
about: 'Number and GPU time of a cluster''s jobs by type, for GPU jobs and for CPU jobs.'
grain: [trace, cluster, kind, job_type]
columns:
  trace: VARCHAR acme, the only trace with job types
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  job_type: VARCHAR Eval, Pretrain and so on, as published; `none` where it is blank
  jobs: BIGINT [1] jobs
  gpu_seconds: DOUBLE [s] sum of GPUs x (end - start)
  published_gpu_seconds: DOUBLE [s] sum of the GPU time as published
  job_share: DOUBLE [1] share of the cluster's jobs of this kind
  gpu_time_share: DOUBLE [1] share of the sum of gpu_seconds
  published_gpu_time_share: DOUBLE [1] share of the sum of published_gpu_seconds
measures:
  jobs: sum
  gpu_seconds, published_gpu_seconds: sum, shown in h
  job_share, gpu_time_share, published_gpu_time_share: sum except over trace, cluster, kind, shown in %
checks:
  - kind in ('gpu', 'cpu')
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
WITH grouped AS (
    SELECT
        trace,
        cluster,
        kind,
        coalesce(job_type, 'none') AS job_type,
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds,
        coalesce(sum(published_gpu_seconds), 0) AS published_gpu_seconds
    FROM staging.job_sizes
    WHERE trace = 'acme'
    GROUP BY trace, cluster, kind, coalesce(job_type, 'none')
)

SELECT
    trace,
    cluster,
    kind,
    job_type,
    jobs,
    gpu_seconds::DOUBLE AS gpu_seconds,
    published_gpu_seconds::DOUBLE AS published_gpu_seconds,
    jobs / (sum(jobs) OVER whole) AS job_share,
    {{ share_of_sum('gpu_seconds', 'whole') }} AS gpu_time_share,
    {{ share_of_sum('published_gpu_seconds', 'whole') }} AS published_gpu_time_share
FROM grouped
WINDOW whole AS (PARTITION BY trace, cluster, kind)
