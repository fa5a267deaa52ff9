/* ---
about: Number and GPU time of a cluster's jobs by job type and by end state, for GPU jobs and for CPU jobs.
grain: [trace, cluster, kind, quantity, name]
columns:
  trace: VARCHAR acme, helios, philly or pai; ITP has neither types nor states
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  quantity: VARCHAR job_type (AcmeTrace only) or state
  name: VARCHAR Eval, Pretrain and so on, as published, or COMPLETED, CANCELLED, FAILED and so on; `none` where it is blank
  jobs: BIGINT [1] jobs
  gpu_seconds: DOUBLE [s] sum of GPUs x (end - start)
  published_gpu_seconds: DOUBLE [s] sum of the GPU time as published
  job_share: DOUBLE [1] share of the cluster's jobs of this kind
  gpu_time_share: DOUBLE [1] share of the sum of gpu_seconds
  published_gpu_time_share: DOUBLE [1] share of the sum of published_gpu_seconds
measures:
  jobs: sum except over quantity
  gpu_seconds, published_gpu_seconds: sum except over quantity, shown in h
  job_share, gpu_time_share, published_gpu_time_share: sum except over trace, cluster, kind, quantity, shown in %
checks:
  - job_share between 0 and 1
sources: docs/metrics/jobs.md
--- */
WITH named AS (
    SELECT trace, cluster, kind, 'job_type' AS quantity, coalesce(job_type, 'none') AS name, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE trace = 'acme'
    UNION ALL
    SELECT trace, cluster, kind, 'state' AS quantity, coalesce(state, 'none') AS name, gpu_seconds, published_gpu_seconds
    FROM staging.job_sizes
    WHERE trace <> 'itp'
),

summed AS (
    SELECT
        * EXCLUDE (gpu_seconds, published_gpu_seconds),
        count(*) AS jobs,
        coalesce(sum(gpu_seconds), 0) AS gpu_seconds,
        coalesce(sum(published_gpu_seconds), 0) AS published_gpu_seconds
    FROM named
    GROUP BY ALL
)

SELECT
    * REPLACE (gpu_seconds::DOUBLE AS gpu_seconds, published_gpu_seconds::DOUBLE AS published_gpu_seconds),
    jobs / (sum(jobs) OVER whole) AS job_share,
    {{ share_of_sum('gpu_seconds', 'whole') }} AS gpu_time_share,
    {{ share_of_sum('published_gpu_seconds', 'whole') }} AS published_gpu_time_share
FROM summed
WINDOW whole AS (PARTITION BY trace, cluster, kind, quantity)
