/* ---
about: Which leaf port each GPU NIC uses. The two sheets of the workbook share no address; they meet in server number and NIC name.
grain: [cluster, server, hca]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hca: VARCHAR the adapter, mlx5_n
  nic: VARCHAR its network interface
  nic_ip: VARCHAR address of the NIC, from the topology sheet
  switch: VARCHAR the leaf; NULL when unresolved
  port: VARCHAR the leaf's port; NULL when unresolved
  status: VARCHAR resolved (both sheets agree), inferred (a rule filled a gap) or unresolved
  reason: VARCHAR NULL, no_topology_row, or ambiguous where several unlisted ports would fit
  evidence: VARCHAR workbook, or inferred:rail_order
checks:
  - status in ('resolved', 'inferred', 'unresolved')
  - (status = 'unresolved') = (port is null)
  - unique(cluster, server, nic)
  - references(cluster, switch, port) -> topology.ports(cluster, switch, port)
sources: docs/metrics/topology.md
--- */
WITH leaves AS (               -- position of a leaf in its group, 1..4
    SELECT
        cluster,
        switch,
        leaf_group,
        row_number() OVER (
            PARTITION BY cluster, leaf_group ORDER BY {{ number_of('switch') }}
        ) AS rail
    FROM topology.switches
    WHERE role = 'leaf'
),

plugged AS (
    SELECT t.cluster, t.server, t.nic, t.nic_ip, t.switch, t.port, l.leaf_group, l.rail
    FROM staging.cluster_topology AS t
    JOIN leaves AS l ON l.cluster = t.cluster AND l.switch = t.switch
),

rail_order AS (                -- which NIC of a family a leaf has, wherever all named rows of the group agree
    SELECT p.cluster, p.leaf_group, s.nic_family, p.rail, min(p.nic) AS nic
    FROM plugged AS p
    JOIN topology.servers AS s ON s.cluster = p.cluster AND s.server = p.server
    WHERE p.nic IS NOT NULL
    GROUP BY p.cluster, p.leaf_group, s.nic_family, p.rail
    HAVING count(DISTINCT p.nic) = 1
),

named AS (                     -- rows of the topology sheet, nameless ones named by the rail order
    SELECT
        p.cluster,
        p.server,
        coalesce(p.nic, r.nic) AS nic,
        p.nic_ip,
        p.switch,
        p.port,
        CASE WHEN p.nic IS NULL THEN 'inferred:rail_order' ELSE 'workbook' END AS evidence
    FROM plugged AS p
    JOIN topology.servers AS s ON s.cluster = p.cluster AND s.server = p.server
    LEFT JOIN rail_order AS r
        ON
            r.cluster = p.cluster
            AND r.leaf_group = p.leaf_group
            AND r.nic_family = s.nic_family
            AND r.rail = p.rail
),

told_apart AS (                -- a name that the server has in another row, too, says nothing of a nameless one
    SELECT cluster, server, nic, nic_ip, switch, port, evidence
    FROM named
    QUALIFY evidence = 'workbook' OR count(*) OVER (PARTITION BY cluster, server, nic) = 1
),

homes AS (                     -- the group that a server's number belongs to, and its slot there
    SELECT
        n.cluster,
        n.server,
        max(g.base) AS base,
        max(n.server_number) - max(g.base) AS slot
    FROM staging.gpu_nics AS n
    JOIN topology.leaf_groups AS g ON g.cluster = n.cluster AND g.base < n.server_number
    GROUP BY n.cluster, n.server
),

halves AS (                    -- the two halves of each physical access port: how many the sheet gives to a server,
    SELECT                     -- and how many counter files know that it does not
        p.cluster,
        p.switch,
        p.port_number,
        count(t.port) AS listed,
        count(*) - count(t.port) AS unlisted
    FROM staging.switch_ports AS p
    LEFT JOIN staging.cluster_topology AS t ON t.cluster = p.cluster AND t.switch = p.switch AND t.port = p.port
    WHERE p.port_class = 'access'
    GROUP BY p.cluster, p.switch, p.port_number
),

candidates AS (                -- ports that would fit an unresolved NIC, on the leaf of its home group with most of them
    SELECT
        h.cluster,
        h.server,
        max(
            CASE
                WHEN s.has_counters THEN coalesce(u.unlisted, 0)
                WHEN h.slot <= 60 THEN 2 - coalesce(u.listed, 0)
                ELSE 0
            END
        ) AS ports
    FROM homes AS h
    JOIN topology.leaf_groups AS g ON g.cluster = h.cluster AND g.base = h.base
    JOIN leaves AS l ON l.cluster = h.cluster AND l.leaf_group = g.leaf_group
    JOIN topology.switches AS s ON s.cluster = l.cluster AND s.switch = l.switch
    LEFT JOIN halves AS u
        ON u.cluster = h.cluster AND u.switch = l.switch AND u.port_number = (h.slot + 1) // 2
    GROUP BY h.cluster, h.server
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
LEFT JOIN told_apart AS t ON t.cluster = n.cluster AND t.server = n.server AND t.nic = n.nic
LEFT JOIN candidates AS f ON f.cluster = n.cluster AND f.server = n.server
