/* ---
about: 'Job quantities with published figures: shares by type and size, box plots, distributions.'
grain: [quantity]
columns:
  quantity: VARCHAR name of the quantity, from general to specific, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md
--- */
WITH drawn AS (                -- job types that the published figure shows
    SELECT
        cluster,
        job_type,
        jobs,
        published_gpu_seconds::DECIMAL(38, 3) AS gpu_seconds
    FROM metrics.job_type_share
    WHERE
        kind = 'gpu'
        AND (
            (cluster = 'seren' AND job_type IN ('Eval', 'SFT', 'Other', 'MLLM', 'Debug', 'Pretrain'))
            OR (cluster = 'kalos' AND job_type IN ('Eval', 'Pretrain', 'Debug', 'Other'))
        )
),

drawn_shares AS (
    SELECT
        cluster,
        job_type,
        jobs,
        100 * jobs / (sum(jobs) OVER (PARTITION BY cluster)) AS job_percent,
        100 * gpu_seconds::DOUBLE / (sum(gpu_seconds) OVER (PARTITION BY cluster))::DOUBLE AS gpu_time_percent
    FROM drawn
),

drawn_lists AS (
    SELECT
        concat(cluster, '/drawn/', job_type, '/') AS prefix,
        unnest([
            { name: 'jobs', value: jobs::DOUBLE },
            { name: 'job_percent', value: job_percent },
            { name: 'gpu_time_percent', value: gpu_time_percent }
        ]) AS one
    FROM drawn_shares
),

box_lists AS (
    SELECT
        concat(cluster, '/', job_type, '/gpus/') AS prefix,
        unnest([
            { name: 'whisker_low', value: whisker_low },
            { name: 'q1', value: q1 },
            { name: 'median', value: median },
            { name: 'q3', value: q3 },
            { name: 'whisker_high', value: whisker_high }
        ]) AS one
    FROM metrics.job_gpus_box
),

sizes AS (
    SELECT
        s.cluster,
        n.gpus,
        coalesce(100 * max(s.job_share_up_to) FILTER (WHERE s.num_gpus <= n.gpus), 0) AS job_percent,
        coalesce(100 * max(s.published_gpu_time_share_up_to) FILTER (WHERE s.num_gpus <= n.gpus), 0) AS gpu_time_percent
    FROM metrics.job_size_share AS s
    CROSS JOIN unnest([1, 8, 64, 255, 512]) AS n (gpus)
    GROUP BY ALL
),

size_lists AS (
    SELECT
        concat(cluster, '/gpu/') AS prefix,
        unnest([
            { name: concat('up_to_', gpus, '/job_percent'), value: job_percent },
            { name: concat('up_to_', gpus, '/gpu_time_percent'), value: gpu_time_percent },
            { name: concat('over_', gpus, '/job_percent'), value: 100 - job_percent },
            { name: concat('over_', gpus, '/gpu_time_percent'), value: 100 - gpu_time_percent }
        ]) AS one
    FROM sizes
)

SELECT concat(cluster, '/drawn/jobs') AS quantity, sum(jobs)::DOUBLE AS value
FROM drawn
GROUP BY cluster
UNION ALL
SELECT concat(prefix, one.name) AS quantity, one.value
FROM drawn_lists
UNION ALL
SELECT concat(prefix, one.name) AS quantity, one.value
FROM box_lists
UNION ALL
SELECT concat(prefix, one.name) AS quantity, one.value
FROM size_lists
UNION ALL
SELECT
    concat(
        cluster, '/', kind, '/', CASE WHEN job_type <> 'all' THEN concat(job_type, '/') ELSE '' END,
        'duration_up_to_', up_to_seconds, '/job_percent'
    ) AS quantity,
    100 * job_share AS value
FROM metrics.job_duration_cdf
WHERE basis = 'published'
UNION ALL
SELECT
    concat(
        cluster, '/', kind, '/', CASE WHEN job_type <> 'all' THEN concat(job_type, '/') ELSE '' END,
        'queue_up_to_', up_to_seconds, '/job_percent'
    ) AS quantity,
    100 * job_share AS value
FROM metrics.job_queue_cdf
