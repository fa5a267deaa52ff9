/* ---
about: Jobs of Seren and Kalos with types. Times are UTC, converted by the written offset. Durations as the trace publishes them are in published_ columns.
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
checks:
  - regexp_matches(job_id, '^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$')
  - not null(submit_utc)
  - end_utc >= start_utc or start_utc is null or end_utc is null
  - coalesce(least(num_nodes, num_gpus, num_cpus, published_duration_seconds, published_queue_seconds, published_gpu_seconds, pod_memory_gb, pod_shared_memory_gb), 0) >= 0
  - coalesce(greatest(num_nodes, num_gpus, num_cpus, published_duration_seconds, published_queue_seconds, pod_memory_gb, pod_shared_memory_gb), 0) < 1e12
  - coalesce(greatest(num_nodes, num_gpus, num_cpus), 0) < 1000000
  - regexp_matches(user_id, '^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,99}$') or user_id is null
  - regexp_matches(job_type, '^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,99}$') or job_type is null
  - regexp_matches(state_raw, '^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,99}$') or state_raw is null
sources: docs/formats/acme_jobs.md
--- */
SELECT
    f.cluster,
    r.job_id,
    r.user AS user_id,
    {{ count_of('r.node_num') }} AS num_nodes,
    {{ count_of('r.gpu_num') }} AS num_gpus,
    {{ count_of('r.cpu_num') }} AS num_cpus,
    r.type AS job_type,
    coalesce(s.state, r.state) AS state,
    r.state AS state_raw,
    s.outcome,
    {{ utc_of('r.submit_time') }} AS submit_utc,
    {{ utc_of('r.start_time') }} AS start_utc,
    {{ utc_of('r.end_time') }} AS end_utc,
    {{ utc_of('r.fail_time') }} AS fail_utc,
    {{ utc_of('r.stop_time') }} AS stop_utc,
    r.duration AS published_duration_seconds,
    r.queue AS published_queue_seconds,
    r.gpu_time AS published_gpu_seconds,
    r.mem_per_pod_gb AS pod_memory_gb,
    r.shared_mem_per_pod AS pod_shared_memory_gb
FROM raw.acme_jobs AS r
JOIN raw.files AS f ON f.read_path = r.filename
LEFT JOIN reference.job_states AS s ON s.trace = 'acme' AND s.state_raw = upper(r.state)
