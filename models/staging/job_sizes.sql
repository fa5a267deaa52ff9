/* ---
about: 'Every job of all traces with its kind, times and GPU time: metrics.jobs, and the jobs of Helios, Philly and PAI as AcmeTrace publishes them for comparison. Input of the tables of shares and distributions.'
materialize: view
grain: [trace, cluster, job]
columns:
  trace: VARCHAR acme, itp or another trace of metrics.jobs; helios, philly or pai for AcmeTrace's copies
  cluster: VARCHAR the cluster; for AcmeTrace's copies (staging.previous_jobs) the copy, which is helios, philly, philly_merge_retry or pai
  job: VARCHAR the job
  kind: VARCHAR gpu, or cpu where the job requested no GPU
  num_gpus: DOUBLE [1] GPUs; PAI jobs request hundredths of a GPU
  job_type: VARCHAR purpose of the job as published; NULL where the trace has none
  state: VARCHAR end state by reference.job_states
  outcome: VARCHAR completed, cancelled or failed; NULL for other end states or none
  submit_hour: BIGINT [h] hour of the day of the submission, 0 to 23, UTC; NULL where a trace publishes no date, and for AcmeTrace's copies
  run_seconds: DOUBLE [s] end - start; for ITP the published duration, NULL for AcmeTrace's copies, which have no ends
  duration_seconds: DOUBLE [s] duration as published; end - start where a trace publishes none
  queue_seconds: DOUBLE [s] queue as published; start - submit where a trace publishes none
  gpu_seconds: "DECIMAL(18, 3) [s] GPUs x run_seconds"
  published_gpu_seconds: "DECIMAL(18, 3) [s] GPU time as published; where a trace publishes none, GPUs x run_seconds, for AcmeTrace's copies GPUs x duration"
sources: docs/metrics/jobs.md
--- */
-- Acme publishes durations and queues of its own, and leaves some blank: a blank stays NULL. Where another trace publishes
-- none, the differences of its times are the same quantities.
SELECT
    trace,
    cluster,
    job_id AS job,
    CASE WHEN num_gpus > 0 THEN 'gpu' ELSE 'cpu' END AS kind,
    num_gpus,
    job_type,
    state,
    outcome,
    hour(submit_utc) AS submit_hour,
    run_seconds,
    coalesce(published_duration_seconds, CASE WHEN trace <> 'acme' THEN run_seconds END) AS duration_seconds,
    coalesce(published_queue_seconds, CASE WHEN trace <> 'acme' THEN queue_seconds END) AS queue_seconds,
    gpu_seconds,
    coalesce(published_gpu_seconds, CASE WHEN trace <> 'acme' THEN gpu_seconds END) AS published_gpu_seconds
FROM metrics.jobs
UNION ALL BY NAME
SELECT
    split_part(cluster, '_', 1) AS trace,                      -- philly_merge_retry is another file of philly's jobs: compare by cluster, never add them
    cluster,
    CAST(job AS VARCHAR) AS job,
    CASE WHEN num_gpus > 0 THEN 'gpu' ELSE 'cpu' END AS kind,
    num_gpus,
    NULL AS job_type,
    state,
    outcome,
    NULL AS submit_hour,
    NULL AS run_seconds,
    published_duration_seconds AS duration_seconds,
    published_queue_seconds AS queue_seconds,
    NULL AS gpu_seconds,
    CAST(num_gpus AS DECIMAL(18, 2)) * CAST(published_duration_seconds AS DECIMAL(16, 3)) AS published_gpu_seconds
FROM staging.previous_jobs
