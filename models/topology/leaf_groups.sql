/* ---
about: 'Groups of leaves that share their servers, with the base of their server numbers: GPU-n has slot n - base.'
grain: [cluster, leaf_group]
columns:
  cluster: VARCHAR the cluster's folder
  leaf_group: VARCHAR the group, Leaf-1..4
  base: INTEGER [1] server number minus slot, the most common value over the group's rows
  servers: BIGINT [1] servers that the sheet places in the group
sources: docs/metrics/topology.md
--- */
-- The slot is the last octet of a NIC's address: 10.107.(221 + leaf).slot.
WITH placed AS (
    SELECT
        cluster,
        {{ leaf_group('switch') }} AS leaf_group,
        server,
        server_number - CAST(nullif(regexp_extract(nic_ip, '^[0-9]+[.][0-9]+[.][0-9]+[.]([0-9]{1,3})$', 1), '') AS INTEGER) AS base
    FROM staging.cluster_topology
),

commonest AS (
    SELECT cluster, leaf_group, base
    FROM placed
    WHERE base IS NOT NULL
    GROUP BY cluster, leaf_group, base
    QUALIFY row_number() OVER (PARTITION BY cluster, leaf_group ORDER BY count(*) DESC, base) = 1
),

sizes AS (
    SELECT cluster, leaf_group, count(DISTINCT server) AS servers
    FROM placed
    GROUP BY ALL
)

SELECT c.cluster, c.leaf_group, c.base, s.servers
FROM commonest AS c
JOIN sizes AS s USING (cluster, leaf_group)  -- whole
