/* ---
about: 'Ten minutes with the largest share of a cluster''s GPUs in use, and the largest jobs of those above 100 %; seconds count from the origin of the trace. Without a known size of the cluster there is no share.'
question: How long do jobs run and wait?
aliases: [gpus-in-use, over-allocation]
params:
  trace: VARCHAR = null only this trace, as acme or alibaba_v2023
  cluster: VARCHAR = null only this cluster
  limit: INTEGER = 14 number of slots of ten minutes, the fullest first
answer: [trace, cluster, time_utc, time_seconds, mean_gpus, cluster_gpus, percent]
ranked: percent desc
--- */
SELECT trace, cluster, time_utc, time_seconds, round(mean_gpus, 1) AS mean_gpus, cluster_gpus,
    round(100 * allocation_share, 2) AS percent, largest_jobs
FROM metrics.gpu_allocation
WHERE ($trace IS NULL OR trace = $trace) AND ($cluster IS NULL OR cluster = $cluster)
ORDER BY allocation_share DESC NULLS LAST, gpu_seconds DESC, trace, cluster, time_seconds
LIMIT $limit
