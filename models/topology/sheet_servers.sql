/* ---
about: Every GPU server that a sheet of the workbook names, with the slot derived from its number.
grain: [cluster, server]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  server_number: INTEGER [1] n of GPU-n
  sysname: VARCHAR the server's own system name; NULL where only the NIC sheet lists the server
  host_ip: VARCHAR address of the server; NULL where only the topology sheet lists the server
  in_topology_sheet: BOOLEAN true if the sheet `cluster topology` lists the server
  in_nic_sheet: BOOLEAN true if the NIC sheet lists the server
  nic_family: VARCHAR ens10 (ens10, 11, 18, 19) or ens24 (ens24, 25, 30, 31)
  leaf_group: VARCHAR the leaves that the server is plugged into by the sheet
  group_base: INTEGER [1] server number minus slot in that group, the most common value over its rows; the slot is the last octet of a NIC's address, 10.107.(221 + leaf).slot
  home_group: VARCHAR the leaves that its number belongs to; NULL where no group, or more than one, begins below that number
  slot: INTEGER [1] place in that group, server number minus the base of the group
checks:
  - none: SELECT cluster, server FROM staging.cluster_topology ANTI JOIN this USING (cluster, server)
  - none: SELECT cluster, server FROM staging.gpu_nics ANTI JOIN this USING (cluster, server)
sources: docs/metrics/topology.md
--- */
WITH plugged AS (
    SELECT
        cluster,
        server,
        min(server_number) AS server_number,
        min(sysname) AS sysname,
        min(nic) AS nic,
        min({{ leaf_group('switch') }}) AS leaf_group
    FROM staging.cluster_topology
    GROUP BY cluster, server
),

equipped AS (
    SELECT cluster, server, min(server_number) AS server_number, min(host_ip) AS host_ip, min(nic) AS nic
    FROM staging.gpu_nics
    GROUP BY cluster, server
),

servers AS (
    SELECT
        coalesce(p.cluster, e.cluster) AS cluster,
        coalesce(p.server, e.server) AS server,
        coalesce(p.server_number, e.server_number) AS server_number,
        p.sysname,
        e.host_ip,
        p.server IS NOT NULL AS in_topology_sheet,
        e.server IS NOT NULL AS in_nic_sheet,
        {{ nic_family('coalesce(e.nic, p.nic)') }} AS nic_family,
        p.leaf_group
    FROM plugged AS p
    FULL JOIN equipped AS e ON e.cluster = p.cluster AND e.server = p.server  -- check, grain
),

groups AS (
    SELECT
        cluster,
        {{ leaf_group('switch') }} AS leaf_group,
        server_number - CAST(nullif(regexp_extract(nic_ip, '^[0-9]+[.][0-9]+[.][0-9]+[.]([0-9]{1,3})$', 1), '') AS INTEGER) AS base
    FROM staging.cluster_topology
    GROUP BY cluster, leaf_group, base
    HAVING base IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY cluster, leaf_group ORDER BY count(*) DESC, base) = 1
),

bases AS (                     -- groups that share a base are left out, since a number could belong to both
    SELECT cluster, base, min(leaf_group) AS leaf_group
    FROM groups
    GROUP BY cluster, base
    HAVING count(*) = 1
),

homes AS (                     -- group with the largest base below the server's number
    SELECT s.cluster, s.server, max(g.base) AS base
    FROM servers AS s
    JOIN groups AS g ON g.cluster = s.cluster AND g.base < s.server_number  -- filter
    GROUP BY s.cluster, s.server
)

SELECT
    s.*,
    g.base AS group_base,
    b.leaf_group AS home_group,
    s.server_number - b.base AS slot
FROM servers AS s
LEFT JOIN groups AS g ON g.cluster = s.cluster AND g.leaf_group = s.leaf_group  -- once
LEFT JOIN homes AS h ON h.cluster = s.cluster AND h.server = s.server  -- once
LEFT JOIN bases AS b ON b.cluster = h.cluster AND b.base = h.base  -- once
