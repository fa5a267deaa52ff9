/* ---
about: Quantities of jobs that figures were published of.
grain: [quantity]
columns:
  quantity: VARCHAR its name, from the whole to the part, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with; days since 1970 for a day
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md
--- */
WITH totals AS (               -- one list a row of job_totals
    SELECT
        concat(cluster, '/', kind, '/') AS prefix,
        unnest([
            struct_pack(name := 'jobs', value := jobs::DOUBLE),
            struct_pack(name := 'mean_duration_seconds', value := mean_duration_seconds),
            struct_pack(name := 'median_duration_seconds', value := median_duration_seconds),
            struct_pack(name := 'max_duration_seconds', value := max_duration_seconds),
            struct_pack(name := 'mean_queue_seconds', value := mean_queue_seconds),
            struct_pack(name := 'median_queue_seconds', value := median_queue_seconds),
            struct_pack(name := 'mean_gpus', value := mean_gpus),
            struct_pack(name := 'median_gpus', value := median_gpus),
            struct_pack(name := 'max_gpus', value := max_gpus)
        ]) AS one
    FROM metrics.job_totals
),

itp AS (
    SELECT
        max(epoch_us(submit_utc) // 1000000 + duration_seconds) AS last_end,
        min(epoch_us(submit_utc) // 1000000) AS first_submit,
        count(*) AS jobs,
        count(DISTINCT cluster) AS clusters,
        sum(num_gpus * duration_seconds) AS gpu_seconds
    FROM staging.itp_jobs
    GROUP BY epoch_utc
),

itp_totals AS (
    SELECT unnest([
        struct_pack(name := 'itp/jobs', value := jobs::DOUBLE),
        struct_pack(name := 'itp/clusters', value := clusters::DOUBLE),
        struct_pack(name := 'itp/gpu_hours', value := gpu_seconds / 3600),
        struct_pack(name := 'itp/first_day', value := (first_submit // 86400)::DOUBLE),
        struct_pack(name := 'itp/last_day', value := (last_end // 86400 + 1)::DOUBLE),
        struct_pack(name := 'itp/months', value := (last_end - first_submit) / (86400 * 30.4375e0))
    ]) AS one
    FROM itp
),

named AS (
    SELECT
        concat(prefix, one.name) AS quantity,
        one.value
    FROM totals
    UNION ALL
    SELECT
        concat(cluster, '/jobs') AS quantity,
        sum(jobs)::DOUBLE AS value
    FROM metrics.job_totals
    GROUP BY cluster
    UNION ALL
    SELECT
        one.name AS quantity,
        one.value
    FROM itp_totals
    UNION ALL
    SELECT
        CASE format
            WHEN 'itp.jobs' THEN 'itp/raw_files'
            WHEN 'itp.elasticflow_jobs' THEN 'itp/simulation_files'
            ELSE 'itp/testbed_files'
        END AS quantity,
        count(*)::DOUBLE AS value
    FROM raw.files
    WHERE format IN ('itp.jobs', 'itp.elasticflow_jobs', 'itp.testbed_jobs') AND status IN ('read', 'partial')
    GROUP BY format
)

SELECT
    quantity,
    value
FROM named
WHERE value IS NOT NULL
