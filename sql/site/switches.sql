/* ---
about: Every switch, with its role and the number of its ports in use.
--- */
WITH ends AS (                 -- each cable, seen from both of its switches
    SELECT cluster, switch, port_class, server, peer_switch
    FROM topology.ports
    UNION ALL BY NAME
    SELECT cluster, peer_switch AS switch, port_class, NULL AS server, switch AS peer_switch
    FROM topology.ports
    WHERE peer_switch IS NOT NULL
),

counted AS (
    SELECT
        cluster,
        switch,
        count(DISTINCT server) FILTER (WHERE NOT starts_with(server, 'unlisted:')) AS servers,
        count(*) FILTER (WHERE port_class IN ('access', 'storage_access')) AS access_ports,
        count(*) FILTER (WHERE port_class IN ('uplink', 'storage_uplink')) AS uplinks
    FROM ends
    GROUP BY cluster, switch
)

SELECT
    s.cluster,
    s.switch,
    s.role,
    s.device_name,
    s.switch_ip,
    s.leaf_group,
    s.has_counters,
    coalesce(c.servers, 0) AS servers,
    coalesce(c.access_ports, 0) AS access_ports,
    coalesce(c.uplinks, 0) AS uplinks
FROM topology.switches AS s
LEFT JOIN counted AS c USING (cluster, switch)
