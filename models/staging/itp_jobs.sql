/* ---
about: Jobs of the ten ITP clusters. The trace has no start times, so queueing times are unknown.
grain: [cluster, job_id]
columns:
  cluster: VARCHAR cluster01 to cluster10
  job_id: VARCHAR the job
  submission_seconds: BIGINT [s] submission time, counted from epoch_utc
  submit_utc: TIMESTAMP submission time
  duration_seconds: BIGINT [s] run time of the job
  num_gpus: BIGINT [1] GPUs
  epoch_utc: 'TIMESTAMP time that seconds are counted from: 2021-03-04 by the README, which states no zone; UTC is assumed'
checks:
  - regexp_matches(job_id, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$')
  - least(submission_seconds, duration_seconds, num_gpus) >= 0
  - num_gpus < 1000000
  - not null(submission_seconds, duration_seconds, num_gpus)
  - unique(job_id)
sources: docs/formats/itp.md
--- */
SELECT
    f.cluster,
    r.job_id,
    r.submission_time AS submission_seconds,
    TIMESTAMP '2021-03-04 00:00:00' + r.submission_time * INTERVAL '1 second' AS submit_utc,
    r.duration AS duration_seconds,
    r.num_gpu AS num_gpus,
    TIMESTAMP '2021-03-04 00:00:00' AS epoch_utc
FROM raw.itp_jobs AS r
JOIN raw.files AS f ON f.read_path = r.filename
