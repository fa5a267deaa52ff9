/* ---
about: Every switch, with its role, the number of its ports in use, and its bytes in the latest hour of its cluster.
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
        nullif(count(DISTINCT server) FILTER (WHERE NOT starts_with(server, 'unlisted:')), 0) AS servers,
        nullif(count(*) FILTER (WHERE port_class IN ('uplink', 'storage_uplink')), 0) AS uplinks
    FROM ends
    GROUP BY cluster, switch
),

latest AS (
    SELECT cluster, max(hour_utc) AS hour_utc
    FROM metrics.leaf_hour
    GROUP BY cluster
)

SELECT
    s.cluster,
    s.switch AS name,
    s.role,
    s.leaf_group,
    c.servers,
    c.uplinks,
    h.access_in_bytes,
    h.access_out_bytes,
    h.leaving_share
FROM topology.switches AS s
LEFT JOIN counted AS c USING (cluster, switch)
LEFT JOIN latest AS l USING (cluster)
LEFT JOIN metrics.leaf_hour AS h ON h.cluster = s.cluster AND h.switch = s.switch AND h.hour_utc = l.hour_utc
ORDER BY
    s.cluster,
    list_position(['leaf', 'storage_leaf', 'spine'], s.role),
    try_cast(regexp_extract(s.switch, '[0-9]+') AS INTEGER),
    s.switch
