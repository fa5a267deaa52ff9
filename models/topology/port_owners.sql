/* ---
about: Server that owns the bytes of a leaf port, from the workbook and data/port_owners.csv only, independent of traffic.
grain: [cluster, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR the leaf
  port: VARCHAR port of the leaf, full name
  server: VARCHAR GPU-n; GPU-121/122 means one of these two
  nic: VARCHAR the server's NIC; Leaf-n:1/0/p:h where no source names it
  hca: VARCHAR adapter of the NIC, mlx5_n; NULL where no source names it
  evidence: VARCHAR workbook, inferred:candidate_port (reviewed, data/port_owners.csv) or inferred:slot
checks:
  - evidence in ('workbook', 'inferred:slot', 'inferred:candidate_port')
  - not null(server, nic)
  - "none: SELECT cluster, server, nic FROM this WHERE starts_with(port, 'TwoHundredGigE') GROUP BY ALL HAVING count(*) > 1"
  - "none: SELECT cluster, server, hca FROM this WHERE starts_with(port, 'TwoHundredGigE') AND hca IS NOT NULL GROUP BY ALL HAVING count(*) > 1"
  - "none: SELECT cluster, switch, port, server FROM staging.cluster_topology ANTI JOIN this USING (cluster, switch, port, server)"
sources: docs/metrics/topology.md
--- */
WITH listed AS (               -- rows of the topology sheet; a missing NIC name comes from the rail order
    SELECT t.cluster, t.switch, t.port, t.server, coalesce(n.nic, t.nic) AS nic, n.hca, 'workbook' AS evidence
    FROM staging.cluster_topology AS t
    -- check, grain
    LEFT JOIN topology.nic_ports AS n ON n.cluster = t.cluster AND n.switch = t.switch AND n.port = t.port
),

reviewed AS (
    SELECT r.cluster, r.switch, r.port, r.server, r.nic, n.hca, r.evidence
    FROM reference.port_owners AS r
    SEMI JOIN topology.sheet_servers AS s ON s.cluster = r.cluster AND s.server = r.server  -- filter
    -- check of nic_ports, grain, once
    LEFT JOIN staging.gpu_nics AS n ON n.cluster = r.cluster AND n.server = r.server AND n.nic = r.nic
    ANTI JOIN listed AS l ON l.cluster = r.cluster AND l.switch = r.switch AND l.port = r.port  -- grain, filter
),

homeless AS (                  -- servers of the NIC sheet without a port; cage c holds slots 2c - 1 and 2c
    SELECT
        cluster,
        home_group,
        server,
        (slot + 1) // 2 AS cage,
        server_number - (slot + 1) % 2 AS first_number,
        server_number + slot % 2 AS second_number,
        'GPU-' || (server_number - 1 + 2 * (slot % 2)) AS mate
    FROM topology.sheet_servers
    WHERE NOT in_topology_sheet AND slot <= 60
),

cages AS (                     -- cages with such a server, and if the other server of the cage is plugged in somewhere
    SELECT
        h.cluster,
        h.home_group,
        h.cage,
        'GPU-' || h.first_number || '/' || h.second_number AS pair,
        min(h.server) AS server,
        min(h.mate) AS mate,
        bool_or(coalesce(s.in_topology_sheet, false)) AS mate_is_plugged
    FROM homeless AS h
    LEFT JOIN topology.sheet_servers AS s ON s.cluster = h.cluster AND s.server = h.mate  -- once
    GROUP BY ALL
),

leaves AS (
    SELECT DISTINCT cluster, switch, {{ leaf_group('switch') }} AS leaf_group
    FROM staging.cluster_topology
),

halves AS (                    -- both ports of each such cage, on each leaf of the group
    SELECT
        c.cluster,
        l.switch,
        'TwoHundredGigE1/0/' || c.cage || ':' || h.half AS port,
        'TwoHundredGigE1/0/' || c.cage || ':' || (3 - h.half) AS other_port,
        c.pair,
        c.server,
        c.mate,
        c.mate_is_plugged
    FROM cages AS c
    JOIN leaves AS l ON l.cluster = c.cluster AND l.leaf_group = c.home_group  -- whole
    CROSS JOIN (VALUES (1), (2)) AS h (half)  -- grain
),

placed AS (                    -- the half that the other server leaves free; with no server plugged in, one of the two servers
    SELECT
        h.cluster,
        h.switch,
        h.port,
        CASE WHEN h.mate_is_plugged THEN h.server ELSE h.pair END AS server,
        CAST(NULL AS VARCHAR) AS nic,
        CAST(NULL AS VARCHAR) AS hca,
        'inferred:slot' AS evidence
    FROM halves AS h
    LEFT JOIN listed AS o ON o.cluster = h.cluster AND o.switch = h.switch AND o.port = h.other_port  -- once
    ANTI JOIN listed AS l ON l.cluster = h.cluster AND l.switch = h.switch AND l.port = h.port  -- grain, filter
    ANTI JOIN reviewed AS r ON r.cluster = h.cluster AND r.switch = h.switch AND r.port = h.port  -- grain, filter
    WHERE NOT h.mate_is_plugged OR o.server = h.mate
),

owned AS (
    SELECT cluster, switch, port, server, nic, hca, evidence FROM listed
    UNION ALL
    SELECT cluster, switch, port, server, nic, hca, evidence FROM reviewed
    UNION ALL
    SELECT cluster, switch, port, server, nic, hca, evidence FROM placed
),

told_apart AS (                -- access ports of a server that share a NIC name with another of its ports
    SELECT *, count(*) OVER (PARTITION BY cluster, server, nic, starts_with(port, 'TwoHundredGigE')) > 1 AS is_shared
    FROM owned
)

SELECT
    cluster,
    switch,
    port,
    server,
    CASE WHEN nic IS NULL OR is_shared THEN switch || ':' || {{ short_port('port') }} ELSE nic END AS nic,
    CASE WHEN NOT is_shared THEN hca END AS hca,
    evidence
FROM told_apart
