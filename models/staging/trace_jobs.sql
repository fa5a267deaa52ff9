/* ---
about: 'Jobs of every trace with the same columns, by the mappings of data/traces; columns that a trace lacks are NULL. Lists of jobs that repeat each other are variants: sum over one of them alone.'
grain: [trace, cluster, variant, job_id]
columns:
  trace: VARCHAR the trace, by the name of its mapping
  cluster: VARCHAR the cluster
  variant: VARCHAR list of jobs, where a trace has several; default for the one that counts
  job_id: VARCHAR the job
  user_id: VARCHAR user who submitted the job
  num_nodes: BIGINT [1] nodes
  num_gpus: DECIMAL(12, 3) [1] GPUs, also parts of one; 0 for a job that uses CPUs only
  num_cpus: BIGINT [1] CPUs
  node: VARCHAR node that the job ran on, where the trace says it
  gpu_model: VARCHAR model of GPU that the job asks for; several with | between
  job_type: VARCHAR purpose of the job, as published
  state: VARCHAR end state by the mapping or reference.job_states; state_raw where neither has it
  state_raw: VARCHAR end state as written
  outcome: VARCHAR completed, cancelled or failed; NULL for other end states or none
  submit_seconds: BIGINT [s] submission, where the trace counts seconds from an origin
  start_seconds: BIGINT [s] start, counted from the same origin
  end_seconds: BIGINT [s] end, counted from the same origin
  origin_utc: TIMESTAMP time that seconds are counted from; NULL where none is published
  submit_utc: TIMESTAMP when the job was submitted; NULL without a published origin
  start_utc: TIMESTAMP when the job started
  end_utc: TIMESTAMP when the job ended
  queue_seconds: BIGINT [s] start - submit
  run_seconds: BIGINT [s] end - start; the published duration where a trace has no start
  published_duration_seconds: DOUBLE [s] duration as published
  published_queue_seconds: DOUBLE [s] queue as published
  gpu_seconds: DECIMAL(20, 3) [s] num_gpus x run_seconds
  published_gpu_seconds: DOUBLE [s] GPU time as published
  extra: VARCHAR other columns that the mapping keeps, as a JSON object
checks:
  - end_utc >= start_utc or start_utc is null or end_utc is null
  - end_seconds >= start_seconds or start_seconds is null or end_seconds is null
  - coalesce(least(num_nodes, num_gpus, num_cpus, run_seconds), 0) >= 0
  - "none: SELECT job_id FROM staging.trace_jobs WHERE trace = 'itp' GROUP BY job_id HAVING count(*) > 1"
sources: docs/traces.md
--- */
WITH mapped AS (
    SELECT
        m.*,
        coalesce(m.state, s.state, m.state_raw) AS known_state,
        coalesce(m.outcome, s.outcome) AS known_outcome,
        coalesce(m.submit_utc, m.origin_utc + m.submit_seconds * INTERVAL '1 second') AS submitted,
        coalesce(m.start_utc, m.origin_utc + m.start_seconds * INTERVAL '1 second') AS started,
        coalesce(m.end_utc, m.origin_utc + m.end_seconds * INTERVAL '1 second') AS ended,
        coalesce(m.run_seconds, m.end_seconds - m.start_seconds, date_diff('second', m.start_utc, m.end_utc)) AS ran
    FROM ({{ mapped('jobs') }}) AS m
    LEFT JOIN reference.job_states AS s ON s.trace = m.trace AND s.state_raw = upper(m.state_raw)
)

SELECT
    trace,
    cluster,
    variant,
    job_id,
    user_id,
    num_nodes,
    num_gpus,
    num_cpus,
    node,
    gpu_model,
    job_type,
    known_state AS state,
    state_raw,
    known_outcome AS outcome,
    submit_seconds,
    start_seconds,
    end_seconds,
    origin_utc,
    submitted AS submit_utc,
    started AS start_utc,
    ended AS end_utc,
    coalesce(start_seconds - submit_seconds, date_diff('second', submitted, started)) AS queue_seconds,
    ran AS run_seconds,
    published_duration_seconds,
    published_queue_seconds,
    num_gpus * ran AS gpu_seconds,
    published_gpu_seconds,
    extra
FROM mapped
