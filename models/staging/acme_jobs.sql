/* ---
about: Jobs of Seren and Kalos with types. Times are UTC, converted by the written offset. Durations as the trace publishes them are in published_ columns.
materialize: view
grain: [cluster, job_id]
columns:
  cluster: VARCHAR seren or kalos
  job_id: VARCHAR the job, as its scheduler names it
  user_id: VARCHAR user who submitted the job
  num_nodes: BIGINT [1] nodes
  num_gpus: BIGINT [1] GPUs; 0 for a job that uses CPUs only
  num_cpus: BIGINT [1] CPUs
  job_type: VARCHAR Eval, Pretrain, SFT, MLLM, Debug, Other, CPU as published
  state: VARCHAR end state by reference.job_states; state_raw where that table lacks it
  state_raw: VARCHAR end state as written
  outcome: VARCHAR completed, cancelled or failed; NULL for other end states or none
  submit_utc: TIMESTAMP when the job was submitted
  start_utc: TIMESTAMP when the job started
  end_utc: TIMESTAMP when the job ended; NULL while it runs
  fail_utc: TIMESTAMP when the job failed (Kalos)
  stop_utc: TIMESTAMP when the job was stopped (Kalos)
  published_duration_seconds: 'DOUBLE [s] duration as published: end - start in Seren, end - submit in Kalos'
  published_queue_seconds: DOUBLE [s] queue as published
  published_gpu_seconds: DOUBLE [s] gpu_time as published, GPUs x duration
  pod_memory_gb: DOUBLE [GB] memory of a pod (Kalos)
  pod_shared_memory_gb: DOUBLE [GB] shared memory of a pod (Kalos)
sources: docs/formats/acme_jobs.md
--- */
SELECT
    cluster,
    job_id,
    user_id,
    num_nodes,
    CAST(round(num_gpus) AS BIGINT) AS num_gpus,
    num_cpus,
    job_type,
    state,
    state_raw,
    outcome,
    submit_utc,
    start_utc,
    end_utc,
    CAST((extra ->> 'fail_utc') AS TIMESTAMP) AS fail_utc,
    CAST((extra ->> 'stop_utc') AS TIMESTAMP) AS stop_utc,
    published_duration_seconds,
    published_queue_seconds,
    published_gpu_seconds,
    CAST((extra ->> 'pod_memory_gb') AS DOUBLE) AS pod_memory_gb,
    CAST((extra ->> 'pod_shared_memory_gb') AS DOUBLE) AS pod_shared_memory_gb
FROM staging.trace_jobs
WHERE trace = 'acme'
