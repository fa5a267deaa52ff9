/* ---
about: ITP jobs as input of ElasticFlow's simulator. Model, batch size, iterations and deadline are synthetic.
grain: [cluster, job_id]
columns:
  cluster: VARCHAR cluster01 to cluster10
  job_id: VARCHAR the job, as in itp_jobs
  submission_seconds: BIGINT [s] submission time, counted from 2021-03-04
  duration_seconds: BIGINT [s] run time of the job
  num_gpus: BIGINT [1] GPUs
  model_name: VARCHAR model that the simulated job trains
  batch_size: BIGINT [1] batch size of the simulated job
  iterations: BIGINT [1] iterations of the simulated job
  deadline_seconds: BIGINT [s] deadline, counted from 2021-03-04
checks:
  - unique(job_id)
sources: docs/formats/itp.md
--- */
SELECT
    f.cluster,
    r.job_id,
    r.submission_time AS submission_seconds,
    r.duration AS duration_seconds,
    r.num_gpu AS num_gpus,
    r.model_name,
    r.batch_size,
    r.num_iteration AS iterations,
    r.deadline AS deadline_seconds
FROM raw.itp_elasticflow_jobs AS r
JOIN raw.files AS f ON f.read_path = r.filename
