/* ---
about: 'GPUs in use as a share of the cluster, per day: mean, and the fullest ten minutes.'
question: How long do jobs run and wait?
params:
  cluster: VARCHAR = null only this cluster
  limit: INTEGER = 14 number of days, the fullest first
answer: [cluster, day, mean_gpus, most_gpus, cluster_gpus, mean_percent]
ranked: mean_percent desc
--- */
-- mean_percent: mean_gpus of cluster_gpus
SELECT cluster, time_utc::DATE AS day, round(sum(gpu_seconds) / count(*) / 600, 1) AS mean_gpus,
    round(max(mean_gpus), 1) AS most_gpus, max(cluster_gpus) AS cluster_gpus,
    round(100 * sum(gpu_seconds) / count(*) / 600 / max(cluster_gpus), 2) AS mean_percent,
    round(100 * max(allocation_share), 2) AS most_percent
FROM metrics.gpu_allocation
WHERE time_utc IS NOT NULL AND ($cluster IS NULL OR cluster = $cluster)
GROUP BY cluster, day
ORDER BY sum(gpu_seconds) / count(*) / max(cluster_gpus) DESC, cluster, day
LIMIT $limit
