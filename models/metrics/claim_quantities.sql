/* ---
about: Our values of published quantities, one row per quantity; published_claims compares the claims with them. Includes the sum of jobs, the smallest and the largest value over both Acme clusters and over all five clusters.
grain: [quantity]
columns:
  quantity: VARCHAR name of the quantity, from general to specific, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with; days since 1970 for a day
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md, docs/metrics/utilization.md
--- */
WITH counts AS (               -- a kind without jobs counts 0 jobs
    SELECT
        cluster,
        sum(jobs)::DOUBLE AS jobs,
        coalesce(sum(jobs) FILTER (WHERE kind = 'gpu'), 0)::DOUBLE AS gpu_jobs,
        coalesce(sum(jobs) FILTER (WHERE kind = 'cpu'), 0)::DOUBLE AS cpu_jobs
    FROM metrics.job_totals
    GROUP BY cluster
),

end_shares AS (                -- as in cluster_summary: a job that neither completed nor was cancelled counts as failed
    SELECT
        concat_ws('/', s.cluster, s.kind, if(s.outcome IN ('completed', 'cancelled'), s.outcome, 'failed')) AS prefix,
        coalesce(sum(s.published_gpu_seconds), 0)::DOUBLE AS ended_seconds,
        count(*) / t.jobs AS job_share,
        ended_seconds / nullif(t.published_gpu_seconds, 0) AS gpu_time_share,
        100 * job_share AS job_percent,
        100 * gpu_time_share AS gpu_time_percent
    FROM staging.job_sizes AS s
    JOIN metrics.job_totals AS t USING (cluster, kind)
    WHERE s.trace <> 'itp' AND s.cluster <> 'pai'   -- states of PAI are not end states
    GROUP BY prefix, t.jobs, t.published_gpu_seconds
),

true_to_name AS (              -- ended jobs whose published columns are what their names say; Kalos's duration begins with the submission
    SELECT
        cluster,
        100 * count(*) FILTER (WHERE published_duration_seconds = run_seconds) / count(*) AS duration_is_run,
        100 * count(*) FILTER (WHERE published_duration_seconds = run_seconds + queue_seconds) / count(*) AS duration_is_stay,
        100 * count(*) FILTER (WHERE published_queue_seconds = queue_seconds) / count(*) AS queue_is_wait,
        100 * count(*) FILTER (WHERE published_gpu_seconds = published_duration_seconds * num_gpus) / count(*) AS gpu_time_is_product
    FROM metrics.jobs
    WHERE trace = 'acme' AND run_seconds IS NOT NULL
    GROUP BY cluster
),

boxes AS (                     -- GPUs of jobs of each type as in a box plot, jobs without GPUs too
    SELECT
        cluster,
        coalesce(job_type, 'none') AS job_type,
        quantile_cont(num_gpus, 0.25) AS q1,
        median(num_gpus) AS median,
        quantile_cont(num_gpus, 0.75) AS q3,
        list(DISTINCT num_gpus ORDER BY num_gpus) AS sizes,
        -- whiskers reach the outermost job within 1.5 interquartile ranges
        list_min(list_filter(sizes, LAMBDA n: n >= q1 - 1.5e0 * (q3 - q1))) AS whisker_low,
        list_max(list_filter(sizes, LAMBDA n: n <= q3 + 1.5e0 * (q3 - q1))) AS whisker_high
    FROM staging.job_sizes
    WHERE trace = 'acme' AND num_gpus IS NOT NULL
    GROUP BY ALL
),

acme AS (                      -- months in China's time zone, UTC+8
    SELECT
        count(DISTINCT cluster)::DOUBLE AS clusters,
        count(DISTINCT state)::DOUBLE AS states,
        count(DISTINCT date_trunc('month', submit_utc + INTERVAL '8 hours'))::DOUBLE AS months
    FROM metrics.jobs
    WHERE trace = 'acme'
    GROUP BY trace
    HAVING count(DISTINCT cluster) = 2
),

itp AS (
    SELECT
        count(*)::DOUBLE AS jobs,
        count(DISTINCT cluster)::DOUBLE AS clusters,
        sum(num_gpus * duration_seconds) / 3600 AS gpu_hours,
        min(epoch_us(submit_utc) // 1000000) AS first_submit,
        max(epoch_us(submit_utc) // 1000000 + duration_seconds) AS last_end,
        (first_submit // 86400)::DOUBLE AS first_day,
        (last_end // 86400 + 1)::DOUBLE AS last_day,
        (last_end - first_submit) / (86400 * 30.4375e0) AS months
    FROM staging.itp_jobs
    HAVING count(*) > 0
),

drawn AS (                     -- job types that the published figure shows
    SELECT
        cluster,
        name AS job_type,
        jobs::DOUBLE AS jobs,
        100 * jobs / (sum(jobs) OVER whole) AS job_percent,
        100 * published_gpu_seconds / (sum(published_gpu_seconds::DECIMAL(38, 3)) OVER whole)::DOUBLE AS gpu_time_percent
    FROM metrics.job_share
    WHERE
        kind = 'gpu' AND quantity = 'job_type'
        AND (
            (cluster = 'seren' AND name IN ('Eval', 'SFT', 'Other', 'MLLM', 'Debug', 'Pretrain'))
            OR (cluster = 'kalos' AND name IN ('Eval', 'Pretrain', 'Debug', 'Other'))
        )
    WINDOW whole AS (PARTITION BY cluster)
),

sizes AS (
    SELECT
        s.cluster,
        n.gpus,
        coalesce(100 * max(s.job_share_up_to) FILTER (WHERE s.value <= n.gpus), 0) AS job_percent,
        coalesce(100 * max(s.published_gpu_time_share_up_to) FILTER (WHERE s.value <= n.gpus), 0) AS gpu_time_percent
    FROM metrics.job_share AS s
    CROSS JOIN unnest([1, 8, 64, 255, 512]) AS n (gpus)
    WHERE s.quantity = 'num_gpus'
    GROUP BY ALL
),

size_sides AS (
    SELECT concat(cluster, '/gpu/up_to_', gpus) AS prefix, job_percent, gpu_time_percent
    FROM sizes
    UNION ALL
    SELECT concat(cluster, '/gpu/over_', gpus) AS prefix, 100 - job_percent AS job_percent, 100 - gpu_time_percent AS gpu_time_percent
    FROM sizes
),

pickles AS (                   -- published distributions that a published figure draws
    SELECT * FROM metrics.utilization_distribution
    WHERE figure IS NOT NULL
),

pickle_shares AS (
    SELECT * FROM metrics.utilization_shares
    WHERE figure IS NOT NULL
),

totals AS (                    -- of the default lists of any trace
    SELECT concat_ws('/', 'totals', trace, name) AS quantity, value
    FROM (
        SELECT trace, count(*)::DOUBLE AS jobs, count(DISTINCT cluster)::DOUBLE AS clusters, sum(gpu_seconds)::DOUBLE AS gpu_seconds,
            sum(gpu_seconds)::DOUBLE / 3600 AS gpu_hours
        FROM metrics.jobs
        GROUP BY trace
    ) UNPIVOT (value FOR name IN (jobs, clusters, gpu_seconds, gpu_hours))
    UNION ALL
    SELECT concat_ws('/', 'totals', trace, name) AS quantity, value
    FROM (
        SELECT trace, count(*)::DOUBLE AS nodes, sum(num_gpus)::DOUBLE AS gpus FROM metrics.nodes GROUP BY trace
    ) UNPIVOT (value FOR name IN (nodes, gpus))
),

own AS (
    SELECT concat(cluster, '/', name) AS quantity, value
    FROM counts UNPIVOT (value FOR name IN (jobs, gpu_jobs AS 'gpu/jobs', cpu_jobs AS 'cpu/jobs'))
    UNION ALL
    SELECT concat_ws('/', cluster, kind, name) AS quantity, value
    FROM metrics.job_totals UNPIVOT (value FOR name IN (
        mean_duration_seconds, median_duration_seconds, max_duration_seconds,
        mean_queue_seconds, median_queue_seconds, mean_gpus, median_gpus, max_gpus
    ))
    UNION ALL
    SELECT concat(prefix, '/', name) AS quantity, value
    FROM end_shares UNPIVOT (value FOR name IN (
        ended_seconds AS 'gpu_seconds', job_share, job_percent, gpu_time_share, gpu_time_percent
    ))
    UNION ALL
    SELECT concat(cluster, '/', name, '/job_percent') AS quantity, value
    FROM true_to_name UNPIVOT (value FOR name IN (duration_is_run, duration_is_stay, queue_is_wait, gpu_time_is_product))
    UNION ALL
    SELECT concat(cluster, '/gpu/over_1_day/job_percent') AS quantity, 100 * count(*) FILTER (WHERE duration_seconds > 86400) / count(*)
    FROM staging.job_sizes
    WHERE trace = 'acme' AND kind = 'gpu'
    GROUP BY cluster
    UNION ALL
    SELECT concat('acme/', name) AS quantity, value
    FROM acme UNPIVOT (value FOR name IN (clusters, states, months))
    UNION ALL
    SELECT concat('itp/', name) AS quantity, value
    FROM itp UNPIVOT (value FOR name IN (jobs, clusters, gpu_hours, first_day, last_day, months))
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
    UNION ALL
    SELECT concat(cluster, '/drawn/jobs') AS quantity, sum(jobs::BIGINT)::DOUBLE AS value
    FROM drawn
    GROUP BY cluster
    UNION ALL
    SELECT concat_ws('/', cluster, 'drawn', job_type, name) AS quantity, value
    FROM drawn UNPIVOT (value FOR name IN (jobs, job_percent, gpu_time_percent))
    UNION ALL
    SELECT concat_ws('/', cluster, job_type, 'gpus', name) AS quantity, value
    FROM boxes UNPIVOT (value FOR name IN (whisker_low, q1, median, q3, whisker_high))
    UNION ALL
    SELECT concat(prefix, '/', name) AS quantity, value
    FROM size_sides UNPIVOT (value FOR name IN (job_percent, gpu_time_percent))
    UNION ALL
    SELECT
        concat_ws('/', cluster, kind, nullif(job_type, 'all'), concat(quantity, '_up_to_', up_to_seconds), 'job_percent') AS quantity,
        100 * job_share AS value
    FROM metrics.job_time_cdf
    WHERE quantity IN ('duration', 'queue')
    UNION ALL
    SELECT concat(cluster, '/utilization/', lower(metric), '/median_percent') AS quantity, p50 AS value
    FROM pickles
    WHERE metric IN ('GPU_UTIL', 'SM_ACTIVE')
    UNION ALL
    SELECT
        CASE metric
            WHEN 'SM_ACTIVE' THEN 'acme/utilization/sm_active/largest_median_percent'
            WHEN 'POWER_USAGE' THEN 'acme/utilization/gpu_power/max_watts'
            ELSE 'acme/utilization/cpu_memory/max_percent'
        END AS quantity,
        max(if(metric = 'SM_ACTIVE', p50, max_value)) AS value
    FROM pickles
    WHERE metric IN ('SM_ACTIVE', 'POWER_USAGE', 'NODE_MEMORY_UTILIZATION')
    GROUP BY metric
    HAVING count(DISTINCT cluster) = 2
    UNION ALL
    SELECT concat('seren/utilization/', lower(metric), '/max_watts') AS quantity, max(max_value) AS value
    FROM pickles
    WHERE metric IN ('GPU_SERVER_POWER', 'CPU_SERVER_POWER')
    GROUP BY metric
    UNION ALL
    SELECT 'seren/utilization/server_power/gpu_over_cpu' AS quantity, max(gpu.mean) / max(cpu.mean) AS value
    FROM pickles AS gpu
    CROSS JOIN pickles AS cpu
    WHERE gpu.metric = 'GPU_SERVER_POWER' AND cpu.metric = 'CPU_SERVER_POWER'
    HAVING count(*) > 0
    UNION ALL
    SELECT 'acme/utilization/cdf_points' AS quantity, max(points)::DOUBLE AS value
    FROM pickles
    HAVING count(*) > 0
    UNION ALL
    -- the mean of both clusters; a GPU is idle at 70 W or less
    SELECT
        'acme/utilization/gpu_power/idle_percent' AS quantity,
        sum(at_most_share::DECIMAL(18, 12))::DOUBLE / count(*) * 100 AS value
    FROM pickle_shares
    WHERE metric = 'POWER_USAGE' AND threshold = 70
    HAVING count(*) = 2
    UNION ALL
    SELECT
        concat(cluster, '/utilization/', CASE metric WHEN 'FB_USED' THEN 'gpu_memory/over_75' ELSE 'gpu_power/over_400' END, '_percent')
            AS quantity,
        over_share * 100 AS value
    FROM pickle_shares
    WHERE (metric = 'POWER_USAGE' AND threshold = 400) OR (metric = 'FB_USED' AND threshold = 75)
    UNION ALL
    SELECT concat(cluster, '/utilization/ib/idle_percent') AS quantity, min(at_most_share) * 100 AS value
    FROM pickle_shares
    WHERE metric IN ('NODE_IB_SEND', 'NODE_IB_RECEIVE') AND threshold = 0
    GROUP BY cluster
    UNION ALL
    SELECT 'acme/utilization/interval_seconds' AS quantity, median(step_seconds) AS value
    FROM metrics.utilization_quality
    HAVING count(*) > 0
),

parts AS (
    SELECT split_part(quantity, '/', 1) AS cluster, regexp_replace(quantity, '^[^/]*/', '') AS rest, value
    FROM own
),

acme_ends AS (
    SELECT
        rest,
        sum(value::DECIMAL(38, 3)) FILTER (WHERE rest IN ('jobs', 'gpu/jobs', 'cpu/jobs'))::DOUBLE AS total,
        min(value) AS smallest,
        max(value) AS largest
    FROM parts
    WHERE cluster IN ('seren', 'kalos')
    GROUP BY rest
    HAVING count(*) = 2
)

SELECT quantity, value
FROM own
WHERE value IS NOT NULL
UNION ALL
SELECT quantity, value
FROM totals
UNION ALL
SELECT concat(name, rest) AS quantity, value
FROM acme_ends UNPIVOT (value FOR name IN (total AS 'acme/', smallest AS 'acme/smallest/', largest AS 'acme/largest/'))
UNION ALL
SELECT concat('all/largest/', rest) AS quantity, max(value) AS value
FROM parts
WHERE cluster IN ('seren', 'kalos', 'philly', 'helios', 'pai')
GROUP BY rest
HAVING count(*) = 5
