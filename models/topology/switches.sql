/* ---
about: 'The switches of each cluster: leaves, storage leaves and spines.'
grain: [cluster, switch]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name
  device_name: VARCHAR the switch's own device name; NULL for a spine that no link table names
  switch_ip: VARCHAR management address, from the workbook
  role: VARCHAR leaf, storage_leaf or spine
  leaf_group: VARCHAR the leaves that share their servers; NULL for spines
  has_counters: BOOLEAN true if counter files of the switch are loaded
checks:
  - role in ('leaf', 'storage_leaf', 'spine')
  - none: SELECT cluster, spine FROM topology.uplinks AS u ANTI JOIN this AS s ON s.cluster = u.cluster AND s.switch = u.spine
sources: docs/metrics/topology.md
--- */
WITH addresses AS (            -- rows without an address are filled from the leaf's other rows
    SELECT cluster, switch, min(switch_ip) AS switch_ip
    FROM staging.cluster_topology
    GROUP BY ALL
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
    LEFT JOIN addresses AS a USING (cluster, switch)  -- once
    GROUP BY p.cluster, p.switch, p.role
),

linked AS (                    -- switches at either end of a link table's rows
    SELECT cluster, switch, device_name FROM staging.hour_link
    UNION ALL
    SELECT cluster, peer_switch AS switch, peer_device AS device_name
    FROM staging.hour_link
    WHERE peer_switch IS NOT NULL
    UNION ALL
    SELECT cluster, spine AS switch, CAST(NULL AS VARCHAR) AS device_name FROM topology.uplinks
),

others AS (                    -- spines, which have no counter files, and leaves known only from links
    SELECT
        n.cluster,
        n.switch,
        min(n.device_name) AS device_name,
        CASE
            WHEN starts_with(n.switch, 'spine-') THEN 'spine'
            WHEN starts_with(n.switch, 'ST-') THEN 'storage_leaf'
            ELSE 'leaf'
        END AS role,
        {{ leaf_group('n.switch') }} AS leaf_group
    FROM linked AS n
    ANTI JOIN leaves AS l USING (cluster, switch)  -- check, grain
    WHERE {{ named_switch('n.switch') }} IS NOT NULL       -- an address alone says no role
    GROUP BY n.cluster, n.switch
)

SELECT cluster, switch, device_name, switch_ip, role, leaf_group, has_counters
FROM leaves
UNION ALL BY NAME
SELECT cluster, switch, device_name, NULL AS switch_ip, role, leaf_group, false AS has_counters
FROM others
