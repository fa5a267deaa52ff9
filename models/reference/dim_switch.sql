/* ---
about: 'Dimension of switches: leaves, storage leaves and spines that any loaded table names.'
grain: [cluster, switch]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  switch_key: VARCHAR cluster/switch, one column for tools that join on one
  label: VARCHAR the switch's short name
  sort_key: VARCHAR sorts labels in natural order
  role: VARCHAR leaf, storage_leaf or spine; NULL where the name shows no role
  leaf_group: VARCHAR the leaves that share their servers; NULL for spines
  has_counters: BOOLEAN true if counter files of the switch are loaded
checks:
  - unique(switch_key)
  - references(cluster) -> reference.dim_cluster(cluster)
  - referenced(cluster, switch) by metrics.leaf_hour(cluster, switch)
  - referenced(cluster, switch) by metrics.sampling_quality(cluster, switch)
  - referenced(cluster, switch) by metrics.spine_hour(cluster, spine)
  - referenced(cluster, switch) by metrics.uplink_balance(cluster, switch)
  - referenced(cluster, switch) by metrics.uplink_balance_minute(cluster, switch)
sources: docs/star.md
--- */
WITH named AS (                -- hour tables name switches that neither workbook nor counter files have
    SELECT cluster, switch FROM topology.switches
    UNION
    SELECT cluster, switch FROM staging.hour_port
    UNION
    SELECT cluster, switch FROM staging.hour_link
)

SELECT
    n.cluster,
    n.switch,
    n.cluster || '/' || n.switch AS switch_key,
    n.switch AS label,
    {{ natural('n.switch') }} AS sort_key,
    coalesce(
        s.role,
        CASE
            WHEN starts_with(n.switch, 'spine-') THEN 'spine'
            WHEN starts_with(n.switch, 'ST-') THEN 'storage_leaf'
            WHEN starts_with(n.switch, 'Leaf-') THEN 'leaf'
        END
    ) AS role,
    coalesce(s.leaf_group, {{ leaf_group('n.switch') }}) AS leaf_group,
    coalesce(s.has_counters, false) AS has_counters
FROM named AS n
LEFT JOIN topology.switches AS s USING (cluster, switch)  -- check, once
WHERE n.cluster IS NOT NULL AND n.switch IS NOT NULL
