/* ---
about: 'Check of the published columns of Acme''s jobs: number of jobs whose duration is end - start, and whose duration is end - submit.'
grain: [cluster]
columns:
  cluster: VARCHAR seren or kalos
  jobs: BIGINT [1] jobs
  without_end: BIGINT [1] jobs that still ran or have no start
  duration_is_run: BIGINT [1] other jobs with duration = end - start
  duration_is_stay: BIGINT [1] other jobs with duration = end - submit, but not end - start
  duration_is_neither: BIGINT [1] other jobs with any other duration
  queue_is_wait: BIGINT [1] jobs with queue = start - submit
  queue_is_not_wait: BIGINT [1] jobs with another queue or a blank
  gpu_time_is_product: BIGINT [1] jobs with gpu_time = duration x GPUs
  gpu_time_is_not_product: BIGINT [1] jobs with another gpu_time or a blank
measures:
  jobs, without_end, duration_is_run, duration_is_stay, duration_is_neither: sum
  queue_is_wait, queue_is_not_wait, gpu_time_is_product, gpu_time_is_not_product: sum
checks:
  - without_end + duration_is_run + duration_is_stay + duration_is_neither = jobs
  - warn: duration_is_neither = 0
    says: "{cluster}: of {duration_is_neither:,} of {jobs:,} jobs the published duration is neither end - start nor end - submit"
  - warn: queue_is_not_wait = 0
    says: "{cluster}: of {queue_is_not_wait:,} of {jobs:,} jobs the published queue is not start - submit"
  - warn: gpu_time_is_not_product = 0
    says: "{cluster}: of {gpu_time_is_not_product:,} of {jobs:,} jobs the published GPU time is not duration x GPUs"
sources: docs/metrics/jobs.md
--- */
WITH compared AS (
    SELECT
        cluster,
        run_seconds IS NOT NULL AS has_end,
        coalesce(published_duration_seconds = run_seconds, false) AS is_run,
        coalesce(published_duration_seconds = run_seconds + queue_seconds, false) AS is_stay,
        coalesce(published_queue_seconds = queue_seconds, false) AS is_wait,
        coalesce(published_gpu_seconds = published_duration_seconds * num_gpus, false) AS is_product
    FROM metrics.jobs
    WHERE trace = 'acme'
)

SELECT
    cluster,
    count(*) AS jobs,
    count(*) FILTER (WHERE NOT has_end) AS without_end,
    count(*) FILTER (WHERE has_end AND is_run) AS duration_is_run,
    count(*) FILTER (WHERE has_end AND is_stay AND NOT is_run) AS duration_is_stay,
    count(*) FILTER (WHERE has_end AND NOT is_stay AND NOT is_run) AS duration_is_neither,
    count(*) FILTER (WHERE has_end AND is_wait) AS queue_is_wait,
    count(*) FILTER (WHERE has_end AND NOT is_wait) AS queue_is_not_wait,
    count(*) FILTER (WHERE has_end AND is_product) AS gpu_time_is_product,
    count(*) FILTER (WHERE has_end AND NOT is_product) AS gpu_time_is_not_product
FROM compared
GROUP BY cluster
