/* ---
about: Jobs of the ten ITP clusters. The trace has no start times, so queueing times are unknown.
materialize: view
grain: [cluster, job_id]
columns:
  cluster: VARCHAR cluster01 to cluster10
  job_id: VARCHAR the job
  submission_seconds: BIGINT [s] submission time, counted from epoch_utc
  submit_utc: TIMESTAMP submission time
  duration_seconds: BIGINT [s] run time of the job
  num_gpus: BIGINT [1] GPUs
  epoch_utc: 'TIMESTAMP time that seconds are counted from: 2021-03-04 by the README, which states no zone; UTC is assumed'
sources: docs/formats/itp.md
--- */
SELECT
    cluster,
    job_id,
    submit_seconds AS submission_seconds,
    submit_utc,
    run_seconds AS duration_seconds,
    CAST(round(num_gpus) AS BIGINT) AS num_gpus,
    origin_utc AS epoch_utc
FROM staging.trace_jobs
WHERE trace = 'itp'
