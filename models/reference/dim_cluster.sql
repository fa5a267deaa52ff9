/* ---
about: 'Dimension of clusters: every cluster that a loaded table or a reviewed table names.'
grain: [cluster]
columns:
  cluster: VARCHAR the cluster's folder or name; the key
  label: VARCHAR the same, for people
  sort_key: VARCHAR sorts labels in natural order
  leaves: INTEGER [1] leaf switches of the whole cluster, from reference.clusters
  storage_leaves: INTEGER [1] storage leaf switches of the whole cluster
  spines: INTEGER [1] spine switches of the whole cluster
  gpus: BIGINT [1] GPUs, from reference.job_clusters
  gpu_model: VARCHAR what the GPUs are
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
    SELECT cluster FROM staging.hour_flow
    UNION
    SELECT cluster FROM staging.hour_nic
    UNION
    SELECT cluster FROM staging.hour_port
    UNION
    SELECT cluster FROM staging.acme_jobs
    UNION
    SELECT cluster FROM staging.itp_jobs
    UNION
    SELECT cluster FROM staging.elasticflow_jobs
    UNION
    SELECT 'testbed' AS cluster FROM staging.testbed_jobs
    UNION
    SELECT cluster FROM staging.previous_jobs
    UNION
    SELECT cluster FROM staging.utilization_files
    UNION
    SELECT cluster FROM staging.server_power
    UNION
    SELECT cluster FROM staging.published_points
),

sizes AS (                     -- a name that two traces share has no size of its own
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
LEFT JOIN reference.clusters AS c ON c.cluster = n.cluster  -- noqa: ST11
LEFT JOIN sizes AS s ON s.cluster = n.cluster  -- noqa: ST11
WHERE n.cluster IS NOT NULL
