/* ---
about: 'Dimension of clusters: every cluster that a loaded table or a reviewed table of data/ names.'
grain: [cluster]
columns:
  cluster: VARCHAR the cluster's folder or name; the key
  label: VARCHAR display name
  sort_key: VARCHAR sorts labels in natural order
  leaves: INTEGER [1] leaf switches of the whole cluster, from reference.clusters
  storage_leaves: INTEGER [1] storage leaf switches of the whole cluster
  spines: INTEGER [1] spine switches of the whole cluster
  gpus: BIGINT [1] GPUs, from reference.job_clusters
  gpu_model: VARCHAR model of the GPUs
checks:
  - referenced(cluster) by metrics.flow_locality_hour(cluster)
  - referenced(cluster) by metrics.flow_pairs(cluster)
  - referenced(cluster) by metrics.gpu_allocation(cluster)
  - referenced(cluster) by metrics.idle_gpus(cluster)
  - referenced(cluster) by metrics.job_time_cdf(cluster)
  - referenced(cluster) by metrics.job_pauses(cluster)
  - referenced(cluster) by metrics.job_periods(cluster)
  - referenced(cluster) by metrics.job_share(cluster)
  - referenced(cluster) by metrics.job_totals(cluster)
  - referenced(cluster) by metrics.jobs(cluster)
  - referenced(cluster) by metrics.leaf_matrix(cluster)
  - referenced(cluster) by metrics.node_allocation(cluster)
  - referenced(cluster) by metrics.nodes(cluster)
  - referenced(cluster) by metrics.task_checkpoints(cluster)
  - referenced(cluster) by metrics.task_expected_bytes(cluster)
  - referenced(cluster) by metrics.task_iteration_traffic(cluster)
  - referenced(cluster) by metrics.task_iterations(cluster)
  - referenced(cluster) by metrics.task_lines(cluster)
  - referenced(cluster) by metrics.task_restarts(cluster)
  - referenced(cluster) by metrics.task_startup(cluster)
  - referenced(cluster) by metrics.task_summary(cluster)
  - referenced(cluster) by metrics.traffic_jobs(cluster)
  - referenced(cluster) by metrics.traffic_matrix(cluster)
  - referenced(cluster) by metrics.traffic_matrix_minute(cluster)
  - referenced(cluster) by metrics.utilization_distribution(cluster)
  - referenced(cluster) by metrics.utilization_minute(cluster)
  - referenced(cluster) by metrics.utilization_quality(cluster)
  - referenced(cluster) by metrics.utilization_shares(cluster)
  - referenced(cluster) by topology.ring_edges(cluster)
  - referenced(cluster) by topology.task_communicators(cluster)
  - referenced(cluster) by topology.task_edges(cluster)
sources: docs/star.md
--- */
WITH named AS (
    SELECT cluster FROM reference.clusters
    UNION
    SELECT cluster FROM reference.job_clusters
    UNION
    SELECT cluster FROM topology.switches
    UNION
    SELECT cluster FROM topology.servers
    UNION
    SELECT cluster FROM topology.task_pods
    UNION
    SELECT cluster FROM metrics.nic_hour
    UNION
    SELECT cluster FROM staging.hour_port
    UNION
    SELECT cluster FROM staging.trace_jobs
    UNION
    SELECT cluster FROM staging.trace_nodes
    UNION
    SELECT cluster FROM staging.elasticflow_jobs
    UNION
    SELECT 'testbed' AS cluster FROM staging.testbed_jobs
    UNION
    SELECT cluster FROM staging.previous_jobs
    UNION
    SELECT cluster FROM metrics.utilization_quality
    UNION
    SELECT cluster FROM staging.server_power
    UNION
    SELECT cluster FROM staging.published_points
),

sizes AS (                     -- a cluster name that two traces share has no size
    SELECT
        cluster,
        CASE WHEN count(*) = 1 THEN min(gpus) END AS gpus,
        CASE WHEN min(gpu_model) = max(gpu_model) THEN min(gpu_model) END AS gpu_model
    FROM reference.job_clusters
    GROUP BY cluster
)

SELECT
    n.cluster,
    n.cluster AS label,
    {{ natural('n.cluster') }} AS sort_key,
    c.leaves,
    c.storage_leaves,
    c.spines,
    s.gpus,
    coalesce(c.gpu_model, s.gpu_model) AS gpu_model
FROM named AS n
LEFT JOIN reference.clusters AS c USING (cluster)  -- once
LEFT JOIN sizes AS s USING (cluster)  -- once
WHERE n.cluster IS NOT NULL
