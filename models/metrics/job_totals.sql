/* ---
about: Number, run time, size and queueing time of a cluster's jobs, for GPU jobs and for CPU jobs.
grain: [trace, cluster, kind]
columns:
  trace: VARCHAR acme, itp, helios, philly, pai, or another trace of metrics.jobs
  cluster: VARCHAR the cluster
  kind: VARCHAR gpu or cpu
  jobs: BIGINT [1] jobs
  running_jobs: BIGINT [1] jobs without a run time, which still ran or never started; 0 for Helios, Philly and PAI, whose ends AcmeTrace's copy lacks
  gpu_seconds: DOUBLE [s] sum of GPUs x (end - start)
  published_gpu_seconds: DOUBLE [s] sum of the GPU time as published; GPUs x duration where none is published
  mean_run_seconds: DOUBLE [s] mean of end - start
  median_run_seconds: DOUBLE [s] median of end - start
  max_run_seconds: DOUBLE [s] largest end - start
  mean_duration_seconds: DOUBLE [s] mean of the duration as published
  median_duration_seconds: DOUBLE [s] median of the duration as published
  max_duration_seconds: DOUBLE [s] largest duration as published
  mean_queue_seconds: DOUBLE [s] mean of the queue as published; NULL for ITP, which publishes neither queueing nor start times
  median_queue_seconds: DOUBLE [s] median of the queue as published; NULL for ITP, which publishes neither queueing nor start times
  mean_gpus: DOUBLE [1] mean number of GPUs per job
  median_gpus: DOUBLE [1] median number of GPUs per job
  max_gpus: DOUBLE [1] number of GPUs of the largest job
measures:
  jobs, running_jobs: sum
  gpu_seconds, published_gpu_seconds: sum, shown in h
  max_run_seconds, max_duration_seconds: max, shown in h
  max_gpus: max
  others: none
sources: docs/metrics/jobs.md
--- */
SELECT
    trace,
    cluster,
    kind,
    count(*) AS jobs,
    count(*) FILTER (WHERE run_seconds IS NULL AND trace NOT IN ('helios', 'philly', 'pai')) AS running_jobs,
    sum(gpu_seconds)::DOUBLE AS gpu_seconds,
    sum(published_gpu_seconds)::DOUBLE AS published_gpu_seconds,
    sum(run_seconds::DECIMAL(18, 3))::DOUBLE / count(run_seconds) AS mean_run_seconds,
    median(run_seconds) AS median_run_seconds,
    max(run_seconds) AS max_run_seconds,
    sum(duration_seconds::DECIMAL(18, 3))::DOUBLE / count(duration_seconds) AS mean_duration_seconds,
    median(duration_seconds) AS median_duration_seconds,
    max(duration_seconds) AS max_duration_seconds,
    sum(queue_seconds::DECIMAL(18, 3))::DOUBLE / count(queue_seconds) AS mean_queue_seconds,
    median(queue_seconds) AS median_queue_seconds,
    sum(num_gpus::DECIMAL(18, 3))::DOUBLE / count(num_gpus) AS mean_gpus,
    median(num_gpus) AS median_gpus,
    max(num_gpus) AS max_gpus
FROM staging.job_sizes
GROUP BY ALL
