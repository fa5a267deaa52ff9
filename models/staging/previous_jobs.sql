/* ---
about: 'Jobs of earlier traces that AcmeTrace compares with, as it has them: Helios, Philly and PAI. Their files have no identity for a job that could be relied on, so a job is its place among its cluster''s rows.'
grain: [cluster, job]
columns:
  cluster: VARCHAR helios, philly or pai; a second file of one of them by its own name, as philly_merge_retry
  job: BIGINT [1] place among the cluster's rows, in the order of all that is known of each
  num_gpus: DOUBLE [1] GPUs; PAI asks for hundredths of one
  num_cpus: DOUBLE [1] CPUs
  state: VARCHAR how it ended, by the reviewed table job_states; as written where that does not know it
  state_raw: VARCHAR how it ended, as written
  outcome: VARCHAR completed, cancelled or failed; NULL for other ends
  published_duration_seconds: DOUBLE [s] duration as published
  published_queue_seconds: DOUBLE [s] time in the queue as published
  submit_time: VARCHAR as written, without a zone
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
