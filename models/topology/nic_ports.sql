/* ---
about: Leaf port of each GPU NIC. The two sheets of the workbook share no address; they are joined by server number and NIC name.
grain: [cluster, server, hca]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hca: VARCHAR the adapter, mlx5_n
  nic: VARCHAR network interface of the NIC
  nic_ip: VARCHAR address of the NIC, from the topology sheet
  switch: VARCHAR the leaf; NULL when unresolved
  port: VARCHAR the leaf's port; NULL when unresolved
  status: VARCHAR resolved (both sheets agree), inferred (a rule filled a gap) or unresolved
  reason: VARCHAR NULL, no_topology_row, or ambiguous where several unlisted ports fit
  evidence: VARCHAR workbook, or inferred:rail_order
checks:
  - status in ('resolved', 'inferred', 'unresolved')
  - (status = 'unresolved') = (port is null)
  - unique(cluster, server, nic)
  - references(cluster, switch, port) -> staging.cluster_topology(cluster, switch, port)
sources: docs/metrics/topology.md
--- */
WITH plugged AS (
    SELECT t.cluster, t.server, t.nic, t.nic_ip, t.switch, t.port, s.nic_family
    FROM staging.cluster_topology AS t
    JOIN topology.sheet_servers AS s USING (cluster, server)  -- check of sheet_servers
    WHERE starts_with(t.switch, 'Leaf-')
),

rail_order AS (                -- NIC name per leaf and family, where all named rows of the leaf agree
    SELECT cluster, switch, nic_family, min(nic) AS nic
    FROM plugged
    WHERE nic IS NOT NULL
    GROUP BY cluster, switch, nic_family
    HAVING count(DISTINCT nic) = 1
),

named AS (                     -- rows of the topology sheet; rows without a NIC name get it from the rail order
    SELECT
        p.cluster,
        p.server,
        coalesce(p.nic, r.nic) AS nic,
        p.nic_ip,
        p.switch,
        p.port,
        CASE WHEN p.nic IS NULL THEN 'inferred:rail_order' ELSE 'workbook' END AS evidence
    FROM plugged AS p
    LEFT JOIN rail_order AS r USING (cluster, switch, nic_family)  -- once
),

told_apart AS (                -- a NIC name that the server has in another row, too, is not used for a row without a name
    SELECT cluster, server, nic, nic_ip, switch, port, evidence
    FROM named
    QUALIFY evidence = 'workbook' OR count(*) OVER (PARTITION BY cluster, server, nic) = 1
),

leaves AS (
    SELECT DISTINCT cluster, switch, {{ leaf_group('switch') }} AS leaf_group
    FROM staging.cluster_topology
),

listed AS (                    -- halves of each physical access port that the sheet assigns to a server
    SELECT cluster, switch, {{ port_number('port') }} AS port_number, count(*) AS halves
    FROM staging.cluster_topology
    WHERE {{ port_class('switch', 'port') }} = 'access'
    GROUP BY ALL
),

candidates AS (                -- halves that fit an unresolved NIC, on the leaf of its home group with most of them
    SELECT s.cluster, s.server, max(2 - coalesce(p.halves, 0)) AS ports
    FROM topology.sheet_servers AS s
    JOIN leaves AS l ON l.cluster = s.cluster AND l.leaf_group = s.home_group  -- filter
    LEFT JOIN listed AS p  -- once
        ON p.cluster = s.cluster AND p.switch = l.switch AND p.port_number = (s.slot + 1) // 2
    WHERE s.slot <= 60
    GROUP BY s.cluster, s.server
)

SELECT
    n.cluster,
    n.server,
    n.hca,
    n.nic,
    t.nic_ip,
    t.switch,
    t.port,
    CASE
        WHEN t.port IS NULL THEN 'unresolved'
        WHEN t.evidence = 'workbook' THEN 'resolved'
        ELSE 'inferred'
    END AS status,
    CASE
        WHEN t.port IS NOT NULL THEN NULL
        WHEN f.ports > 1 THEN 'ambiguous'
        ELSE 'no_topology_row'
    END AS reason,
    t.evidence
FROM staging.gpu_nics AS n
LEFT JOIN told_apart AS t USING (cluster, server, nic)  -- check, once
LEFT JOIN candidates AS f USING (cluster, server)  -- once
