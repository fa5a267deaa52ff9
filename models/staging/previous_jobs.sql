/* ---
about: 'Jobs of the earlier traces Helios, Philly and PAI, as AcmeTrace publishes them for comparison. Their files have no reliable job ID, so a job is identified by its place among its cluster''s rows.'
grain: [cluster, job]
columns:
  cluster: VARCHAR helios, philly or pai; a second file of a trace has its own name, as philly_merge_retry
  job: BIGINT [1] place among the cluster's rows, ordered by all columns
  num_gpus: DOUBLE [1] GPUs; PAI jobs request hundredths of a GPU
  num_cpus: DOUBLE [1] CPUs
  state: VARCHAR end state by reference.job_states; state_raw where that table lacks it
  state_raw: VARCHAR end state as written
  outcome: VARCHAR completed, cancelled or failed; NULL for other end states
  published_duration_seconds: DOUBLE [s] duration as published
  published_queue_seconds: DOUBLE [s] time in the queue as published
  submit_time: VARCHAR submission time as written, without a zone
checks:
  - none: SELECT * FROM raw.acme_previous_jobs WHERE job_id IS NOT NULL OR job_name IS NOT NULL GROUP BY ALL HAVING count(*) > 1
sources: docs/formats/acme_jobs.md
--- */
WITH typed AS (
    SELECT
        f.cluster,
        coalesce(r.gpu_num, r.plan_gpu / 100) AS num_gpus,
        coalesce(r.cpu_num, r.plan_cpu / 100) AS num_cpus,
        coalesce(r.state, r.status) AS state_raw,
        r.duration AS published_duration_seconds,
        coalesce(r.queue, r.wait_time) AS published_queue_seconds,
        r.submit_time
    FROM raw.acme_previous_jobs AS r
    JOIN raw.files AS f ON f.read_path = r.filename
)

SELECT
    t.cluster,
    row_number() OVER (
        PARTITION BY t.cluster
        ORDER BY
            t.submit_time, t.published_duration_seconds, t.published_queue_seconds, t.num_gpus, t.num_cpus, t.state_raw
    ) AS job,
    t.num_gpus,
    t.num_cpus,
    coalesce(s.state, t.state_raw) AS state,
    t.state_raw,
    s.outcome,
    t.published_duration_seconds,
    t.published_queue_seconds,
    t.submit_time
FROM typed AS t
LEFT JOIN reference.job_states AS s
    ON s.trace = split_part(t.cluster, '_', 1) AND s.state_raw = upper(t.state_raw)
