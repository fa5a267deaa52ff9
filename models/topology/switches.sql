/* ---
about: The switches of each cluster: leaves, storage leaves and spines.
grain: [cluster, switch]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name
  device_name: VARCHAR the switch's name for itself; NULL for a spine that no file names
  switch_ip: VARCHAR management address, from the workbook
  role: VARCHAR leaf, storage_leaf or spine
  leaf_group: VARCHAR the leaves that share their servers; NULL for spines
  has_counters: BOOLEAN whether counter files of it are loaded
checks:
  - role in ('leaf', 'storage_leaf', 'spine')
sources: docs/metrics/topology.md
--- */
WITH addresses AS (            -- rows without an address are filled from the leaf's other rows
    SELECT cluster, switch, min(switch_ip) AS switch_ip
    FROM staging.cluster_topology
    GROUP BY cluster, switch
),

leaves AS (
    SELECT
        p.cluster,
        p.switch,
        min(p.device_name) AS device_name,
        min(a.switch_ip) AS switch_ip,
        p.role,
        {{ leaf_group('p.switch') }} AS leaf_group,
        bool_or(p.has_counters) AS has_counters
    FROM staging.switch_ports AS p
    LEFT JOIN addresses AS a ON a.cluster = p.cluster AND a.switch = p.switch
    GROUP BY p.cluster, p.switch, p.role
),

spines AS (
    SELECT
        u.cluster,
        u.spine AS switch,
        min(l.device_name) AS device_name,
        CAST(NULL AS VARCHAR) AS switch_ip,
        'spine' AS role,
        CAST(NULL AS VARCHAR) AS leaf_group,
        false AS has_counters
    FROM topology.uplinks AS u
    LEFT JOIN staging.hour_link AS l ON l.cluster = u.cluster AND l.switch = u.spine
    GROUP BY u.cluster, u.spine
)

SELECT cluster, switch, device_name, switch_ip, role, leaf_group, has_counters
FROM leaves
UNION ALL
SELECT cluster, switch, device_name, switch_ip, role, leaf_group, has_counters
FROM spines
