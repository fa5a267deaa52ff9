/* ---
about: 'Nodes by GPUs that no job held, as means over time; all nodes together (all) where a trace does not say where jobs ran.'
question: How long do jobs run and wait?
aliases: [idle-nodes]
params:
  trace: VARCHAR = null only this trace
  cluster: VARCHAR = null only this cluster
  limit: INTEGER = 20 number of nodes, the idlest first
answer: [trace, cluster, node, gpu_model, node_gpus, hours, mean_free_gpus, mean_percent]
ranked: mean_free_gpus desc
--- */
WITH nodes AS (
    SELECT trace, cluster, node, max(gpu_model) AS gpu_model, max(node_gpus) AS node_gpus, max(gpus) AS most_gpus,
        max(sharing_jobs) AS most_sharing_jobs, sum(end_seconds - begin_seconds) AS seconds,
        sum(gpus * (end_seconds - begin_seconds))::DOUBLE / sum(end_seconds - begin_seconds) AS held
    FROM metrics.node_allocation
    WHERE end_seconds IS NOT NULL AND ($trace IS NULL OR trace = $trace) AND ($cluster IS NULL OR cluster = $cluster)
    GROUP BY trace, cluster, node
)
SELECT trace, cluster, node, gpu_model, node_gpus, round(seconds / 3600, 1) AS hours,
    round(node_gpus - held, 3) AS mean_free_gpus, round(100 * held / node_gpus, 2) AS mean_percent, most_gpus, most_sharing_jobs
FROM nodes
ORDER BY node_gpus - held DESC, trace, cluster, node
LIMIT $limit
