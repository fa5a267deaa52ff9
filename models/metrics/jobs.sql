/* ---
about: Every job of the mapped traces (AcmeTrace, ITP and others) with the same columns; columns that a trace lacks are NULL. Jobs that still run are included, without an end. Of a trace with several lists of jobs, the default list.
materialize: view
grain: [trace, cluster, job_id]
columns:
  trace: VARCHAR the trace, by the name of its mapping, as acme, itp or alibaba_v2023
  cluster: VARCHAR seren, kalos, cluster01 to cluster10, openb
  job_id: VARCHAR job ID of the trace
  user_id: VARCHAR user who submitted the job; NULL for ITP, which does not publish users
  num_nodes: BIGINT [1] nodes; NULL for ITP, which publishes GPUs alone
  num_gpus: DECIMAL(12, 3) [1] GPUs, also parts of one; 0 for a job that uses CPUs only
  num_cpus: BIGINT [1] CPUs; NULL for ITP, which publishes GPUs alone
  node: VARCHAR node that the job ran on; NULL where the trace does not say it
  gpu_model: VARCHAR models of GPU that the job asks for, with | between; NULL for any, and where the trace does not say it
  job_type: VARCHAR purpose of the job, as published; for Alibaba its quality of service; NULL for ITP, which does not publish it
  state: VARCHAR end state by reference.job_states; state_raw where that table lacks it; NULL for ITP, which does not publish end states
  state_raw: VARCHAR end state as written; NULL for ITP, which does not publish it
  outcome: VARCHAR completed, cancelled or failed; NULL for other end states or none, and for ITP, which does not publish end states
  submit_seconds: BIGINT [s] submission, counted from the origin of the trace; NULL where the trace has clock times
  start_seconds: BIGINT [s] start, counted from the same origin
  end_seconds: BIGINT [s] end, counted from the same origin
  submit_utc: TIMESTAMP when the job was submitted; NULL for Alibaba, which does not publish its origin
  start_utc: TIMESTAMP when the job started; NULL for jobs without a start, and for ITP, which does not publish start times
  end_utc: TIMESTAMP when the job ended; NULL for jobs that still ran, and for ITP, which does not publish end times
  queue_seconds: BIGINT [s] start - submit; NULL for jobs without a start, and for ITP, which does not publish start times
  run_seconds: BIGINT [s] end - start; for ITP the published duration
  published_duration_seconds: DOUBLE [s] duration as published; for Kalos it begins with the submission
  published_queue_seconds: DOUBLE [s] queue as published; NULL for ITP, which publishes neither queueing nor start times
  gpu_seconds: DECIMAL(20, 3) [s] num_gpus x run_seconds
  published_gpu_seconds: DOUBLE [s] gpu_time as published; for ITP num_gpus x duration
  extra: VARCHAR other columns that the mapping keeps, as a JSON object
time: submit_utc
dimensions: [trace, cluster, user_id, node, gpu_model, job_type, state, outcome]
measures:
  gpu_seconds, published_gpu_seconds: sum, shown in h
  queue_seconds, published_queue_seconds: mean, shown in min
  run_seconds, published_duration_seconds: mean, shown in h
  num_gpus, num_nodes, num_cpus: mean
  submit_seconds, start_seconds, end_seconds: none
sources: docs/metrics/jobs.md
--- */
SELECT
    trace,
    cluster,
    job_id,
    user_id,
    num_nodes,
    num_gpus,
    num_cpus,
    node,
    gpu_model,
    job_type,
    state,
    state_raw,
    outcome,
    submit_seconds,
    start_seconds,
    end_seconds,
    submit_utc,
    start_utc,
    end_utc,
    queue_seconds,
    run_seconds,
    published_duration_seconds,
    published_queue_seconds,
    gpu_seconds,
    published_gpu_seconds,
    extra
FROM staging.trace_jobs
WHERE variant = 'default'
