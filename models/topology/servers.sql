/* ---
about: Every GPU server that either sheet of the workbook names.
grain: [cluster, server]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  sysname: VARCHAR the server's name for itself; NULL where only the NIC sheet has it
  host_ip: VARCHAR address of the server; NULL where only the topology sheet has it
  in_topology_sheet: BOOLEAN whether the sheet `cluster topology` has it
  in_nic_sheet: BOOLEAN whether the sheet of NICs has it
  nic_family: VARCHAR ens10 (ens10, 11, 18, 19) or ens24 (ens24, 25, 30, 31)
  leaf_group: VARCHAR the leaves it is plugged into, as the sheet places it
checks:
  - in_topology_sheet or in_nic_sheet
sources: docs/metrics/topology.md
--- */
WITH plugged AS (
    SELECT
        t.cluster,
        t.server,
        min(t.sysname) AS sysname,
        min(t.nic) AS nic,
        min(s.leaf_group) AS leaf_group
    FROM staging.cluster_topology AS t
    JOIN topology.switches AS s ON s.cluster = t.cluster AND s.switch = t.switch
    GROUP BY t.cluster, t.server
),

equipped AS (
    SELECT cluster, server, min(host_ip) AS host_ip, min(nic) AS nic
    FROM staging.gpu_nics
    GROUP BY cluster, server
)

SELECT
    coalesce(p.cluster, e.cluster) AS cluster,
    coalesce(p.server, e.server) AS server,
    p.sysname,
    e.host_ip,
    p.server IS NOT NULL AS in_topology_sheet,
    e.server IS NOT NULL AS in_nic_sheet,
    CASE
        WHEN regexp_matches(coalesce(e.nic, p.nic), '^ens1[0189]') THEN 'ens10'
        WHEN regexp_matches(coalesce(e.nic, p.nic), '^ens(24|25|30|31)') THEN 'ens24'
    END AS nic_family,
    p.leaf_group
FROM plugged AS p
FULL JOIN equipped AS e ON e.cluster = p.cluster AND e.server = p.server
