/* ---
about: 'The 195 jobs of ElasticFlow''s testbed. They repeat a part of cluster02 and are therefore kept apart from all other jobs.'
grain: [job_id]
columns:
  job_id: VARCHAR the job, as in itp_jobs
  submission_seconds: BIGINT [s] submission time, counted from 2021-03-04
  duration_seconds: BIGINT [s] run time of the job
  num_gpus: BIGINT [1] GPUs
  model_name: VARCHAR model that the simulated job trains
  batch_size: BIGINT [1] batch size of the simulated job
  iterations: BIGINT [1] iterations of the simulated job
  deadline_seconds: BIGINT [s] deadline, counted from 2021-03-04
sources: docs/formats/itp.md
--- */
SELECT
    r.job_id,
    r.submission_time AS submission_seconds,
    r.duration AS duration_seconds,
    r.num_gpu AS num_gpus,
    r.model_name,
    r.batch_size,
    r.num_iteration AS iterations,
    r.deadline AS deadline_seconds
FROM raw.itp_testbed_jobs AS r
