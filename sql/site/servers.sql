/* ---
about: Every server with a name, with its bytes in the latest hour of its cluster.
--- */
WITH latest AS (
    SELECT cluster, max(hour_utc) AS hour_utc
    FROM metrics.server_hour
    GROUP BY cluster
)

SELECT
    s.cluster,
    s.server,
    s.evidence,
    s.leaf_group,
    h.rails_used,
    h.rx_bytes,
    h.tx_bytes
FROM topology.servers AS s
LEFT JOIN latest AS l USING (cluster)
LEFT JOIN metrics.server_hour AS h ON h.cluster = s.cluster AND h.server = s.server AND h.hour_utc = l.hour_utc
WHERE NOT starts_with(s.server, 'unlisted:')
