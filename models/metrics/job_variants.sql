/* ---
about: 'Jobs of every list of a trace. Lists repeat each other: never sum over variants. metrics.jobs has the default list.'
materialize: view
grain: [trace, cluster, variant, job_id]
columns:
  trace: VARCHAR the trace, by the name of its mapping
  cluster: VARCHAR the cluster
  variant: VARCHAR list of jobs, where a trace has several; default for the one that counts
  job_id: VARCHAR job ID of the trace
  num_gpus: DECIMAL(12, 3) [1] GPUs, also parts of one; 0 for a job that uses CPUs only
  gpu_model: VARCHAR models of GPU that the job asks for, with | between; NULL for any
  job_type: VARCHAR purpose of the job, as published; for Alibaba its quality of service
  state: VARCHAR end state; state_raw where neither the mapping nor reference.job_states has it
  submit_seconds: BIGINT [s] submission, counted from the origin of the trace
  start_seconds: BIGINT [s] start, counted from the same origin
  end_seconds: BIGINT [s] end, counted from the same origin
  run_seconds: BIGINT [s] end - start
  gpu_seconds: DECIMAL(20, 3) [s] num_gpus x run_seconds
  extra: VARCHAR other columns that the mapping keeps, as a JSON object
dimensions: [trace, cluster, variant, gpu_model, job_type, state]
measures:
  gpu_seconds: sum except over variant, shown in h
  run_seconds: mean, shown in h
  num_gpus: mean
  others: none
sources: docs/traces.md
--- */
SELECT
    trace,
    cluster,
    variant,
    job_id,
    num_gpus,
    gpu_model,
    job_type,
    state,
    submit_seconds,
    start_seconds,
    end_seconds,
    run_seconds,
    gpu_seconds,
    extra
FROM staging.trace_jobs
