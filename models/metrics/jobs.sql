/* ---
about: Every job of AcmeTrace and ITP in one shape, NULL where its trace lacks the column. Jobs that still run are here, without an end.
materialize: view
grain: [trace, cluster, job_id]
columns:
  trace: VARCHAR acme or itp
  cluster: VARCHAR seren, kalos, or cluster01 to cluster10
  job_id: VARCHAR the job, as its trace names it
  user_id: VARCHAR who submitted it; NULL for ITP, which does not publish users
  num_nodes: BIGINT [1] nodes; NULL for ITP, which publishes GPUs alone
  num_gpus: BIGINT [1] GPUs; 0 of a job on CPUs alone
  num_cpus: BIGINT [1] CPUs; NULL for ITP, which publishes GPUs alone
  job_type: VARCHAR what it was for, as published; NULL for ITP, which does not publish it
  state: VARCHAR how it ended, by the reviewed table job_states; as written where that does not know it; NULL for ITP, which does not publish how jobs ended
  state_raw: VARCHAR how it ended, as written; NULL for ITP, which does not publish it
  outcome: VARCHAR completed, cancelled or failed; NULL for other ends and none, and for ITP, which does not publish how jobs ended
  submit_utc: TIMESTAMP when it was submitted
  start_utc: TIMESTAMP when it started; NULL for jobs without a start, and for ITP, which does not publish start times
  end_utc: TIMESTAMP when it ended; NULL for jobs that still ran, and for ITP, which does not publish end times
  queue_seconds: BIGINT [s] start - submit; NULL for jobs without a start, and for ITP, which does not publish start times
  run_seconds: BIGINT [s] end - start; of ITP the duration, which is all there is
  published_duration_seconds: DOUBLE [s] duration as published; of Kalos it begins with the submission
  published_queue_seconds: DOUBLE [s] queue as published; NULL for ITP, which publishes neither queueing nor start times
  gpu_seconds: BIGINT [s] num_gpus x run_seconds
  published_gpu_seconds: DOUBLE [s] gpu_time as published; of ITP num_gpus x duration
time: submit_utc
dimensions: [trace, cluster, user_id, job_type, state, outcome]
measures:
  gpu_seconds, published_gpu_seconds: sum, shown in h
  queue_seconds, published_queue_seconds: mean, shown in min
  run_seconds, published_duration_seconds: mean, shown in h
  num_gpus, num_nodes, num_cpus: mean
sources: docs/metrics/jobs.md
--- */
SELECT
    'acme' AS trace,
    cluster,
    job_id,
    user_id,
    num_nodes,
    num_gpus,
    num_cpus,
    job_type,
    state,
    state_raw,
    outcome,
    submit_utc,
    start_utc,
    end_utc,
    date_diff('second', submit_utc, start_utc) AS queue_seconds,
    date_diff('second', start_utc, end_utc) AS run_seconds,
    published_duration_seconds,
    published_queue_seconds,
    num_gpus * date_diff('second', start_utc, end_utc) AS gpu_seconds,
    published_gpu_seconds
FROM staging.acme_jobs
UNION ALL BY NAME
SELECT
    'itp' AS trace,
    cluster,
    job_id,
    num_gpus,
    submit_utc,
    duration_seconds AS run_seconds,
    duration_seconds AS published_duration_seconds,
    num_gpus * duration_seconds AS gpu_seconds,
    num_gpus * duration_seconds AS published_gpu_seconds
FROM staging.itp_jobs
