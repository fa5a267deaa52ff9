/* ---
about: Every server with a name, with its bytes and its traffic group in the latest hour of its cluster.
--- */
WITH latest AS (
    SELECT cluster, max(hour_utc) AS hour_utc
    FROM metrics.server_hour
    GROUP BY cluster
)

SELECT
    s.cluster,
    s.server AS name,
    'server' AS role,
    s.evidence,
    s.leaf_group,
    h.rails_used,
    h.rx_bytes,
    h.tx_bytes,
    g.group_id
FROM topology.servers AS s
LEFT JOIN latest AS l USING (cluster)
LEFT JOIN metrics.server_hour AS h ON h.cluster = s.cluster AND h.server = s.server AND h.hour_utc = l.hour_utc
LEFT JOIN metrics.traffic_groups AS g ON g.cluster = s.cluster AND g.server = s.server AND g.hour_utc = l.hour_utc
WHERE NOT starts_with(s.server, 'unlisted:')
ORDER BY s.cluster, try_cast(regexp_extract(s.server, '[0-9]+') AS INTEGER), s.server
