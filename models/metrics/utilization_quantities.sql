/* ---
about: Utilization and power quantities with published figures, from the distributions that the release's own figures draw. Quantities over both clusters exist only when both clusters are loaded.
grain: [quantity]
columns:
  quantity: VARCHAR name of the quantity, from general to specific, as seren/utilization/gpu_util/median_percent
  value: DOUBLE our value, in the unit that the name ends with
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md, docs/metrics/utilization.md
--- */
WITH drawn AS (
    SELECT * FROM metrics.published_distribution
    WHERE figure IS NOT NULL
),

medians AS (                   -- gpu_util, sm_active
    SELECT cluster, lower(metric) AS name, p50 AS value
    FROM drawn
    WHERE metric IN ('GPU_UTIL', 'SM_ACTIVE')
),

power AS (                     -- one row over all servers and GPUs, if there are any
    SELECT
        count(DISTINCT cluster) FILTER (WHERE metric = 'POWER_USAGE') AS clusters,
        max(max_value) FILTER (WHERE metric = 'POWER_USAGE') AS gpu_max,
        max(max_value) FILTER (WHERE metric = 'GPU_SERVER_POWER') AS gpu_server_max,
        max(max_value) FILTER (WHERE metric = 'CPU_SERVER_POWER') AS cpu_server_max,
        max(mean_of_points) FILTER (WHERE metric = 'GPU_SERVER_POWER') AS gpu_server_mean,
        max(mean_of_points) FILTER (WHERE metric = 'CPU_SERVER_POWER') AS cpu_server_mean,
        count(DISTINCT cluster) FILTER (WHERE metric = 'NODE_MEMORY_UTILIZATION') AS memory_clusters,
        max(max_value) FILTER (WHERE metric = 'NODE_MEMORY_UTILIZATION') AS memory_max,
        max(points) AS points
    FROM drawn
    HAVING count(*) > 0
),

idle AS (                      -- the mean of both clusters; a GPU is idle at 70 W or less
    SELECT sum(CAST(at_most_share AS DECIMAL(18, 12)))::DOUBLE / count(*) * 100 AS gpus
    FROM metrics.utilization_shares
    WHERE figure IS NOT NULL AND metric = 'POWER_USAGE' AND threshold = 70
    HAVING count(*) = 2
),

named AS (
    SELECT concat(cluster, '/utilization/', name, '/median_percent') AS quantity, value
    FROM medians
    UNION ALL
    SELECT 'acme/utilization/sm_active/largest_median_percent' AS quantity, max(value) AS value
    FROM medians
    WHERE name = 'sm_active'
    HAVING count(*) = 2
    UNION ALL
    SELECT 'acme/utilization/gpu_power/max_watts' AS quantity, gpu_max AS value FROM power WHERE clusters = 2
    UNION ALL
    SELECT 'seren/utilization/gpu_server_power/max_watts' AS quantity, gpu_server_max AS value FROM power
    UNION ALL
    SELECT 'seren/utilization/cpu_server_power/max_watts' AS quantity, cpu_server_max AS value FROM power
    UNION ALL
    SELECT 'seren/utilization/server_power/gpu_over_cpu' AS quantity, gpu_server_mean / cpu_server_mean AS value FROM power
    UNION ALL
    SELECT 'acme/utilization/cpu_memory/max_percent' AS quantity, memory_max AS value FROM power WHERE memory_clusters = 2
    UNION ALL
    SELECT 'acme/utilization/cdf_points' AS quantity, points::DOUBLE AS value FROM power
    UNION ALL
    SELECT 'acme/utilization/gpu_power/idle_percent' AS quantity, gpus AS value FROM idle
    UNION ALL
    SELECT concat(cluster, '/utilization/gpu_power/over_400_percent') AS quantity, over_share * 100 AS value
    FROM metrics.utilization_shares
    WHERE figure IS NOT NULL AND metric = 'POWER_USAGE' AND threshold = 400
    UNION ALL
    SELECT concat(cluster, '/utilization/gpu_memory/over_75_percent') AS quantity, over_share * 100 AS value
    FROM metrics.utilization_shares
    WHERE figure IS NOT NULL AND metric = 'FB_USED' AND threshold = 75
    UNION ALL
    SELECT concat(cluster, '/utilization/ib/idle_percent') AS quantity, min(at_most_share) * 100 AS value
    FROM metrics.utilization_shares
    WHERE figure IS NOT NULL AND metric IN ('NODE_IB_SEND', 'NODE_IB_RECEIVE') AND threshold = 0
    GROUP BY cluster
    UNION ALL
    SELECT 'acme/utilization/interval_seconds' AS quantity, median(step_seconds) AS value
    FROM metrics.utilization_quality
    HAVING count(*) > 0
)

SELECT quantity, value
FROM named
WHERE value IS NOT NULL
